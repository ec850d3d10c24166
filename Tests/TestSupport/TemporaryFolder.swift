// A fresh folder under the system's temporary folder, removed when nobody holds it any more.

import Foundation
import Glibc

/// A folder of one test. Set `DRYDOCK_KEEP=1` to keep the folders for a look.
package final class TemporaryFolder: Sendable {
    package let path: String

    package init(_ name: String = "drydock") throws {
        var template = Array("\(NSTemporaryDirectory())/\(name)-XXXXXX".replacing("//", with: "/").utf8CString)
        guard let made = mkdtemp(&template) else { throw TestSupportError.system(call: "mkdtemp", code: errno) }
        path = String(cString: made)
    }

    deinit {
        if ProcessInfo.processInfo.environment["DRYDOCK_KEEP"] == nil {
            try? FileManager.default.removeItem(atPath: path)
        }
    }

    /// The absolute path of something in the folder.
    package func file(_ name: String) -> String { "\(path)/\(name)" }

    /// Writes a file, and the folders it needs; returns its absolute path.
    @discardableResult
    package func write(_ name: String, _ text: String) throws -> String {
        try write(name, Array(text.utf8))
    }

    /// Writes a file, and the folders it needs; returns its absolute path.
    @discardableResult
    package func write(_ name: String, _ bytes: [UInt8]) throws -> String {
        let url = URL(fileURLWithPath: file(name))
        try FileManager.default.createDirectory(at: url.deletingLastPathComponent(), withIntermediateDirectories: true)
        // Foundation waits until the disk has each file.
        let descriptor = open(url.path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o644)
        guard descriptor >= 0 else { throw TestSupportError.system(call: "open", code: errno) }
        defer { close(descriptor) }
        var left = bytes[...]
        while !left.isEmpty {
            let count = left.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
            guard count > 0 else { throw TestSupportError.system(call: "write", code: errno) }
            left = left.dropFirst(count)
        }
        return url.path
    }

    /// Writes `count` bytes of `Pattern` without holding them; returns the absolute path.
    @discardableResult
    package func writePattern(_ name: String, count: Int) throws -> String {
        let path = try write(name, "")
        guard let handle = FileHandle(forWritingAtPath: path) else { throw TestSupportError.missing(path) }
        defer { try? handle.close() }
        var done = 0
        while done < count {
            let piece = Pattern.withPiece(at: done, count: count - done) { Data($0) }
            try handle.write(contentsOf: piece)
            done += piece.count
        }
        return path
    }

    /// Makes a folder in the folder; returns its absolute path.
    @discardableResult
    package func folder(_ name: String) throws -> String {
        try FileManager.default.createDirectory(atPath: file(name), withIntermediateDirectories: true)
        return file(name)
    }

    /// The text of a file in the folder, empty when there is none.
    package func text(_ name: String) -> String { readText(file(name)) }
}

/// The text of a file, empty when there is none.
package func readText(_ path: String) -> String {
    FileManager.default.contents(atPath: path).map { String(decoding: $0, as: UTF8.self) } ?? ""
}

/// The bytes of a file.
package func readBytes(_ path: String) throws -> [UInt8] {
    guard let data = FileManager.default.contents(atPath: path) else { throw TestSupportError.missing(path) }
    return Array(data)
}
