// What the compiler says of the models of resources: none is guessed, and a call of one without a value needs no `_ =`.

import Foundation
import TestSupport
import Testing

@Suite struct ModelTests {
    /// What the compiler says of a program that uses the modules of these tests; warnings are errors.
    private func said(of text: String) async throws -> String {
        let folder = try TemporaryFolder("drydock-compiler")
        try Data("import Drydock\nimport DrydockServices\n\(text)".utf8)
            .write(to: URL(fileURLWithPath: folder.file("program.swift")))
        let built = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath().deletingLastPathComponent()
        let sources = URL(filePath: #filePath).appending(path: "../../../../Sources").standardizedFileURL
        // The C modules below: those of the system by the folders of their maps, and those that the build has made.
        let includes = Self.maps(in: sources).flatMap { ["-I", $0.deletingLastPathComponent().path] }
        let maps = Self.maps(in: built).flatMap { ["-Xcc", "-fmodule-map-file=\($0.path)"] }
        let output = folder.file("output")
        let process = try ChildProcess(
            "/usr/bin/env",
            ["swiftc", "-typecheck", "-swift-version", "6", "-warnings-as-errors", "-I", "\(built.path)/Modules"]
                + includes + maps + ["program.swift"],
            environment: Shell.cleanEnvironment(adding: [:]),
            folder: folder.path,
            output: output,
            errors: output
        )
        #expect(await eventually { !process.isRunning })
        let end = process.waitForEnd()
        let said = readText(output)
        #expect((end == .exited(0)) == said.isEmpty, "\(said)")
        return said
    }

    /// The maps of C modules in the folders below one.
    private static func maps(in folder: URL) -> [URL] {
        let below = (try? FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: nil)) ?? []
        return below.map { $0.appending(path: "module.modulemap") }
            .filter { FileManager.default.fileExists(atPath: $0.path) }
    }

    @Test func aResourceHasToNameItsModel() async throws {
        let said = try await said(of: "struct Unnamed: Resource { let endpoint: Endpoint = \"/x\" }")
        #expect(said.contains("ambiguous inference of associated type 'Model'"), "\(said)")
    }

    @Test func oneOfNothingIsCalledWithoutAWarning() async throws {
        let said = try await said(
            of: """
                struct Nothing: Resource {
                    typealias Model = Void
                    let endpoint: Endpoint = .delete("/x")
                }
                func call(_ manager: ServiceManager) async throws(ServiceError) { try await manager.call(Nothing()) }
                """
        )
        #expect(said == "")
    }
}
