// Small files that are read and written as a whole, and that have reached the disk when the call returns.

import EventLoop
import Glibc

/// Everything here blocks, and belongs on an I/O thread.
enum WholeFile {
    /// Empty where it cannot be read.
    static func read(_ path: String) -> [UInt8] {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        if descriptor < 0 { return [] }
        defer { close(descriptor) }
        var bytes: [UInt8] = []
        var part = [UInt8](repeating: 0, count: 64 * 1024)
        while true {
            let result = Glibc.read(descriptor, &part, part.count)
            if result < 0 && errno == EINTR { continue }
            if result <= 0 { return bytes }
            bytes += part[..<result]
        }
    }

    /// Puts another file in its place; a failure leaves the old one.
    static func replace(_ path: String, with bytes: [UInt8]) throws(SystemError) {
        let temporary = "\(path).new"
        try write(bytes, to: temporary, O_WRONLY | O_CREAT | O_TRUNC)
        guard rename(temporary, path) == 0 else { throw SystemError("rename \(temporary)") }
        try syncFolder(of: path)
    }

    static func append(_ bytes: [UInt8], to path: String) throws(SystemError) {
        try write(bytes, to: path, O_WRONLY | O_CREAT | O_APPEND)
        // The name of a file that was just made.
        try syncFolder(of: path)
    }

    private static func write(_ bytes: [UInt8], to path: String, _ flags: Int32) throws(SystemError) {
        let descriptor = open(path, flags | O_CLOEXEC, 0o600)
        if descriptor < 0 { throw SystemError("open \(path)") }
        defer { close(descriptor) }
        var done = 0
        while done < bytes.count {
            let result = bytes[done...].withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
            if result < 0 && errno == EINTR { continue }
            if result <= 0 { throw SystemError("write \(path)") }
            done += result
        }
        guard fdatasync(descriptor) == 0 else { throw SystemError("sync \(path)") }
    }

    private static func syncFolder(of path: String) throws(SystemError) {
        let folder = path.lastIndex(of: "/").map { String(path[..<$0]) } ?? "."
        let descriptor = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        if descriptor < 0 { throw SystemError("open \(folder)") }
        defer { close(descriptor) }
        guard fsync(descriptor) == 0 else { throw SystemError("sync \(folder)") }
    }
}
