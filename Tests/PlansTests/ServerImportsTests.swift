// What keeps configurations out of the server refuses each way to import them there, and nowhere else.

import Foundation
import TestSupport
import Testing

@Suite struct ServerImportsTests {
    private static let script = URL(filePath: #filePath).appending(path: "../../../.ci/check-shape").standardizedFileURL

    private func findings(_ module: String, _ line: String) throws -> [String] {
        let folder = try TemporaryFolder()
        try folder.write("Sources/\(module)/One.swift", "// One.\n\nimport HTTPWire\n\(line)\n")
        try folder.write("Tests/ATests/Test.swift", "")
        return try Shell.run(Self.script.path, [folder.path]).errors.split(separator: "\n").map(String.init)
    }

    @Test(arguments: [
        "import Configuration", "package import YAML", "@testable import Interchange",
        "import struct Configuration.LogConfiguration", "private import Plans",
    ])
    func `the server imports no configuration`(line: String) throws {
        let found = try findings("ProxyServer", line)
        #expect(found.count == 1 && found[0].hasPrefix("Sources/ProxyServer/One.swift:4: "), "\(found)")
        #expect(try findings("DrydockDaemon", line) == [])
    }

    @Test func `what is only called alike is imported`() throws {
        #expect(try findings("ProxyServer", "import ConfigurationFree\n// import YAML") == [])
    }
}
