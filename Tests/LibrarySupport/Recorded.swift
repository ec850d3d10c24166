// A program's log as its lines, and what is in the files of a folder.

import Foundation
package import Logging
package import TestSupport

/// The lines of a log, with what stands with them.
package struct RecordedLog: LogHandler {
    private let lines = Monitor<[String]>([])
    package var metadata: Logger.Metadata = [:]
    package var logLevel = Logger.Level.trace

    package init() {}

    package subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    package func log(event: LogEvent) {
        let metadata = (event.metadata ?? [:]).sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" }
        lines.update { $0.append("\(event.level) \(event.message) \(metadata.joined(separator: " "))") }
    }

    package var logger: Logger { Logger(label: "test") { _ in self } }

    package var all: [String] { lines.read { $0 } }

    /// Lines of a level with a text in them.
    package func count(_ level: Logger.Level, _ text: String) -> Int {
        all.count { $0.hasPrefix("\(level) ") && $0.contains(text) }
    }
}

extension TemporaryFolder {
    /// Whether a text is in the bytes of a file below it, or in the name of one.
    package func has(_ text: String) throws -> Bool {
        let wanted = Data(text.utf8)
        let names = try FileManager.default.subpathsOfDirectory(atPath: path)
        return try names.contains { name in
            var isFolder: ObjCBool = false
            guard FileManager.default.fileExists(atPath: file(name), isDirectory: &isFolder), !isFolder.boolValue else {
                return name.contains(text)
            }
            if name.contains(text) { return true }
            return try Data(contentsOf: URL(fileURLWithPath: file(name))).range(of: wanted) != nil
        }
    }
}
