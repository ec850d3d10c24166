// A program's log as its lines, and requests with fields of their own.

import Drydock
import Foundation
import HTTPTypes
import Logging
import TestSupport

/// The lines of a log, with what stands with them.
struct RecordedLog: LogHandler {
    let lines = Monitor<[String]>([])
    var metadata: Logger.Metadata = [:]
    var logLevel = Logger.Level.trace

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    func log(event: LogEvent) {
        let metadata = (event.metadata ?? [:]).sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" }
        lines.update { $0.append("\(event.level) \(event.message) \(metadata.joined(separator: " "))") }
    }

    var logger: Logger { Logger(label: "test") { _ in self } }

    var all: [String] { lines.read { $0 } }

    /// Lines of a level with a text in them.
    func count(_ level: Logger.Level, _ text: String) -> Int {
        all.count { $0.hasPrefix("\(level) ") && $0.contains(text) }
    }
}

extension Origin {
    /// A request for a path on it.
    func request(_ path: String = "/a", _ fields: HTTPFields = [:], method: HTTPRequest.Method = .get) -> HTTPRequest {
        HTTPRequest(method: method, scheme: "http", authority: server.authority, path: path, headerFields: fields)
    }
}

extension TemporaryFolder {
    /// Whether a text is in the bytes of a file below it, or in the name of one.
    func has(_ text: String) throws -> Bool {
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
