// Small files that are read and written as a whole, and are on the disk when the call returns; the folders above a
// path, and the names in one.

package import EventLoop
import Glibc

/// Reads and writes whole files. All calls block, and belong on an I/O thread.
package enum WholeFile {
    /// The flags that follow no symbolic link, and do not wait for a pipe in the place of the file.
    private static let safely = O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK

    /// Reads a file that a person names: links are followed.
    package static func read(_ path: String) throws(SystemError) -> [UInt8] {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw SystemError("open \(path)") }
        defer { close(descriptor) }
        return try rest(of: descriptor, path)
    }

    /// Reads the rest of a descriptor until its end.
    /// - Parameter name: the name in errors.
    package static func rest(of descriptor: Int32, _ name: String) throws(SystemError) -> [UInt8] {
        var bytes: [UInt8] = []
        guard readToEnd(descriptor, &bytes) else { throw SystemError("read \(name)") }
        return bytes
    }

    /// Reads a file of a store's folder; empty if there is none, and the part before the error if it cannot be read to
    /// its end.
    /// - Parameter limit: the most bytes; a longer file is read as empty.
    package static func readOwn(_ path: String, atMost limit: Int = .max) -> [UInt8] {
        let descriptor = open(path, O_RDONLY | safely)
        if descriptor < 0 { return [] }
        defer { close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0, Int(status.st_size) <= limit else { return [] }
        var bytes: [UInt8] = []
        _ = readToEnd(descriptor, &bytes)
        return bytes
    }

    /// Reads a regular file of a folder that people change, too.
    /// - Throws: `ENOENT` if there is none, and the reason if it cannot be read or is not a regular file.
    package static func readEdited(_ path: String) throws(SystemError) -> [UInt8] {
        let descriptor = try openEdited(path).descriptor
        defer { close(descriptor) }
        return try rest(of: descriptor, path)
    }

    /// Opens a regular file of a folder that people change, too, for a caller that reads it later and closes the
    /// descriptor.
    /// - Returns: the descriptor and the length in bytes.
    package static func openEdited(_ path: String) throws(SystemError) -> (descriptor: Int32, length: Int64) {
        let descriptor = open(path, O_RDONLY | safely)
        guard descriptor >= 0 else { throw SystemError("open \(path)") }
        var status = stat()
        let isKnown = fstat(descriptor, &status) == 0
        guard isKnown, status.st_mode & S_IFMT == S_IFREG else {
            let error = isKnown ? SystemError("open \(path)", code: EISDIR) : SystemError("fstat \(path)")
            close(descriptor)
            throw error
        }
        return (descriptor, Int64(status.st_size))
    }

    /// Reads a descriptor to its end.
    /// - Returns: false, with `errno`, if that fails.
    private static func readToEnd(_ descriptor: Int32, _ bytes: inout [UInt8]) -> Bool {
        var part = [UInt8](repeating: 0, count: 64 * 1024)
        while true {
            let count = Glibc.read(descriptor, &part, part.count)
            if count < 0 && errno == EINTR { continue }
            if count <= 0 { return count == 0 }
            bytes += part[..<count]
        }
    }

    /// Replaces a file; a failure leaves the old one. Only the owner may read the new one.
    package static func replace(_ path: String, with bytes: [UInt8]) throws(SystemError) {
        let failure: SystemError? = bytes.withUnsafeBytes { bytes in
            do throws(SystemError) { try replace(path, with: bytes) } catch { return error }
            return nil
        }
        if let failure { throw failure }
    }

    /// Replaces a file by bytes that are not an array.
    package static func replace(_ path: String, with bytes: UnsafeRawBufferPointer) throws(SystemError) {
        let temporary = "\(path).new"
        // A file that another process has left or planted there, such as a link, or one that others can read, is never
        // written to.
        if unlink(temporary) != 0, errno != ENOENT { throw SystemError("unlink \(temporary)") }
        try write(bytes, to: temporary, O_WRONLY | O_CREAT | O_EXCL)
        guard rename(temporary, path) == 0 else { throw SystemError("rename \(temporary)") }
        try syncFolder(of: path)
    }

    /// Appends to an existing file.
    /// - Parameter isSynced: whether the bytes must be on the disk; false if it is enough that they outlive the
    ///   process.
    /// - Returns: false if there is no such file.
    package static func append(_ bytes: [UInt8], to path: String, isSynced: Bool) throws(SystemError) -> Bool {
        let descriptor = open(path, O_WRONLY | O_APPEND | safely)
        if descriptor < 0 {
            if errno == ENOENT { return false }
            throw SystemError("open \(path)")
        }
        defer { close(descriptor) }
        let failure: SystemError? = bytes.withUnsafeBytes { bytes in
            do throws(SystemError) { try write(bytes, to: descriptor, path) } catch { return error }
            return nil
        }
        if let failure { throw failure }
        if isSynced, fdatasync(descriptor) != 0 { throw SystemError("sync \(path)") }
        return true
    }

    private static func write(_ bytes: UnsafeRawBufferPointer, to path: String, _ flags: Int32) throws(SystemError) {
        let descriptor = open(path, flags | safely, 0o600)
        if descriptor < 0 { throw SystemError("open \(path)") }
        defer { close(descriptor) }
        try write(bytes, to: descriptor, path)
        guard fdatasync(descriptor) == 0 else { throw SystemError("sync \(path)") }
    }

    private static func write(
        _ bytes: UnsafeRawBufferPointer,
        to descriptor: Int32,
        _ path: String
    ) throws(SystemError) {
        var done = 0
        while done < bytes.count {
            let rest = UnsafeRawBufferPointer(rebasing: bytes[done...])
            let result = Glibc.write(descriptor, rest.baseAddress, rest.count)
            if result < 0 && errno == EINTR { continue }
            if result <= 0 { throw SystemError("write \(path)") }
            done += result
        }
    }

    private static func syncFolder(of path: String) throws(SystemError) {
        let folder = path.lastIndex(of: "/").map { String(path[..<$0]) } ?? "."
        let descriptor = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        if descriptor < 0 { throw SystemError("open \(folder)") }
        defer { close(descriptor) }
        guard fsync(descriptor) == 0 else { throw SystemError("sync \(folder)") }
    }
}

// MARK: - Folders above

/// The folders above a path.
package enum Ancestors {
    /// The folder of a path, by its text only; `/` for a name alone and for `/` itself.
    package static func parent(of path: String) -> String {
        guard let slash = path.lastIndex(of: "/"), slash != path.startIndex else { return "/" }
        return String(path[..<slash])
    }

    /// The result of `look` for the path itself, or for the nearest folder above it that has one; nil if none up to `/`
    /// has.
    package static func nearest<Found>(
        to path: String,
        _ look: (String) -> Found?
    ) -> (path: String, found: Found)? {
        var path = path
        while true {
            if let found = look(path) { return (path, found) }
            if path == "/" { return nil }
            path = parent(of: path)
        }
    }
}

// MARK: - Names in a folder

/// The names in a folder. Blocks, so it must not be called on a loop.
package enum FolderNames {
    /// The names except `.` and `..`; empty if the folder cannot be read.
    package static func of(_ path: String) -> [String] {
        guard let folder = opendir(path) else { return [] }
        defer { closedir(folder) }
        return of(folder)
    }

    /// The names that `readdir` has not returned yet; the folder stays open.
    static func of(_ folder: OpaquePointer) -> [String] {
        var names: [String] = []
        while let entry = readdir(folder) {
            let name = withUnsafeBytes(of: &entry.pointee.d_name) {
                String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)
            }
            if name != "." && name != ".." { names.append(name) }
        }
        return names
    }
}
