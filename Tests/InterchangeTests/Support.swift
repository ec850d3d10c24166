// What the tests of imports share: samples, one rule out of a fragment, and a look at what a configuration makes of it.

import Configuration
import Contracts
import Foundation
import Interchange
import TestSupport
import Trees

/// A file of the folder `Samples`.
func sample(_ name: String) throws -> [UInt8] {
    let folder = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "Samples")
    return [UInt8](try Data(contentsOf: folder.appending(path: name)))
}

/// Reads one text.
func imported(
    _ text: String,
    _ format: ImportFormat? = nil,
    _ options: ImportOptions = ImportOptions(),
    files: [String: String] = [:]
) throws -> ImportedConfiguration {
    try Importer.read([ImportSource(name: "x.json", bytes: Array(text.utf8))], format, options) { name in
        files[name].map { Array($0.utf8) }
    }
}

/// What Drydock's own reader says of a configuration and its bodies.
/// - Throws: the errors that it finds.
@discardableResult
func checked(_ imported: ImportedConfiguration) throws -> Configuration {
    let folder = try TemporaryFolder("import")
    try folder.folder("bodies")
    for file in imported.files { try folder.write("bodies/\(file.name)", file.bytes) }
    let path = try folder.write("drydock.yaml", imported.text(comment: ["a test"]))
    return try Configuration.load(path: path, environment: [:])
}

extension ImportedConfiguration {
    /// The notes without the name of the file.
    var told: [String] { notes.map { "\($0.location.pointer) \($0.kind.rawValue): \($0.reason)" } }

    /// The rules of the first service, each as one line of JSON without its name.
    var rulesAsJSON: [String] {
        services.first?.value(at: ["demo", "rules"]).map(Self.lines) ?? []
    }

    private static func lines(_ rules: ContentTree) -> [String] {
        guard case .array(let rules) = rules else { return [] }
        return rules.map { rule in
            let members = (rule.members ?? []).filter { $0.name != "name" }
            return String(decoding: JSONWriter.bytes(.object(members)), as: UTF8.self)
        }
    }

    /// The bytes of a body, as a text.
    func body(_ name: String) -> String? {
        files.first { $0.name == name }.map { String(decoding: $0.bytes, as: UTF8.self) }
    }
}

/// A generator whose numbers are the same in every run.
struct SeededGenerator: RandomNumberGenerator {
    private var state: UInt64

    init(_ seed: UInt64) { state = seed }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var value = (state ^ state >> 30) &* 0xBF58_476D_1CE4_E5B9
        value = (value ^ value >> 27) &* 0x94D0_49BB_1331_11EB
        return value ^ value >> 31
    }
}
