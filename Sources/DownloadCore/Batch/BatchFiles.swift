// The files that items of a batch are written to: whole or not at all, below one folder.

import CacheStore
package import EventLoop
import Glibc
import Synchronization

/// The folder for the files of items. A file has either its old bytes or all of the new ones at any moment.
///
/// Sendable: the names that are being written are under a mutex.
package final class BatchFiles: Sendable {
    private let folder: String
    /// Where files are written before they take their places.
    private let drafts: String
    private let pool: IOPool
    /// The names that items write to now.
    private let busy = Mutex<Set<String>>([])

    /// - Parameters:
    ///   - folder: an absolute path; it is created with the first file.
    ///   - drafts: a folder of the same file system, whose names are random; it exists, and its owner
    ///     removes what a killed process has left in it.
    ///   - pool: for what blocks.
    package init(folder: String, drafts: String, pool: IOPool) {
        self.folder = folder
        self.drafts = drafts
        self.pool = pool
    }

    /// Why a name cannot be that of a file below the folder; nil where it can.
    static func refusal(of name: String) -> String? {
        let segments = name.split(separator: "/", omittingEmptySubsequences: false)
        let isPath =
            name.utf8.count <= 1024
            && segments.allSatisfy { segment in
                !segment.isEmpty && segment != "." && segment != ".." && segment.utf8.count <= 240
                    && segment.utf8.allSatisfy { $0 >= 32 && $0 != 127 }
            }
        return isPath
            ? nil
            : "'\(name)' is not a relative path; write one such as maps/world.json, without empty segments or dot segments"
    }

    /// Begins a file that is to have that name, in folders that are created where they are missing.
    /// - Throws: ``BatchRefusal`` where the name is none, another item writes to it now, or no file can be made there.
    func begin(_ name: String) async throws(BatchRefusal) -> BatchFile {
        if let refusal = Self.refusal(of: name) { throw BatchRefusal(refusal) }
        guard busy.withLock({ $0.insert(name).inserted }) else {
            throw BatchRefusal("another item is being written to '\(name)'; give each its own file")
        }
        let (folder, drafts) = (folder, drafts)
        do {
            return try await pool.run { try BatchFile(folder, name, drafts, in: self) }
        } catch {
            end(name)
            throw BatchRefusal("'\(name)' is not written: \(error)")
        }
    }

    fileprivate func end(_ name: String) { _ = busy.withLock { $0.remove(name) } }

    fileprivate func blocking(_ name: String, _ work: @escaping @Sendable () throws -> Void) async throws(BatchRefusal)
    {
        do { try await pool.run(work) } catch { throw BatchRefusal("'\(name)' is not written: \(error)") }
    }
}

/// A file that is being written; ``finish()`` or ``abandon()`` ends it, once.
struct BatchFile: Sendable {
    private let files: BatchFiles
    private let name: String
    private let place: String
    private let temporary: String
    private let descriptor: Int32

    /// It blocks.
    fileprivate init(_ folder: String, _ name: String, _ drafts: String, in files: BatchFiles) throws(SystemError) {
        self.files = files
        self.name = name
        var path = folder
        for part in [""] + name.split(separator: "/").dropLast().map({ "/\($0)" }) {
            path += part
            if mkdir(path, 0o755) != 0, errno != EEXIST { throw SystemError("mkdir \(path)") }
        }
        // What stands in the way is found before anything is fetched.
        guard access("\(path)/.", W_OK) == 0 else { throw SystemError("write to \(path)") }
        place = "\(folder)/\(name)"
        // Not beside its place, where an item or a program may have a file of any name.
        temporary = "\(drafts)/\(String(UInt64.random(in: 0 ... .max), radix: 36))"
        descriptor = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o644)
        guard descriptor >= 0 else { throw SystemError("open \(temporary)") }
    }

    func append(_ piece: BodyPiece) async throws(BatchRefusal) {
        let (descriptor, temporary) = (descriptor, temporary)
        try await files.blocking(name) {
            let bytes =
                switch piece {
                case .bytes(let chunk, let range): chunk.array(range)
                case .file(let file, let offset, let count):
                    try file.read(offset: offset, count: count).array(0..<count)
                }
            var done = 0
            while done < bytes.count {
                let count = bytes[done...].withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
                if count < 0, errno == EINTR { continue }
                guard count > 0 else { throw SystemError("write \(temporary)") }
                done += count
            }
        }
    }

    /// The file takes its place when all of it has reached the disk.
    func finish() async throws(BatchRefusal) {
        defer { files.end(name) }
        let (descriptor, temporary, place) = (descriptor, temporary, place)
        try await files.blocking(name) {
            defer { unlink(temporary) }
            let isSynced = fdatasync(descriptor) == 0
            let code = errno
            close(descriptor)
            guard isSynced else { throw SystemError("sync \(temporary)", code: code) }
            guard rename(temporary, place) == 0 else { throw SystemError("rename to \(place)") }
        }
    }

    /// What is in its place stays as it is.
    func abandon() async {
        defer { files.end(name) }
        let (descriptor, temporary) = (descriptor, temporary)
        try? await files.blocking(name) {
            close(descriptor)
            unlink(temporary)
        }
    }
}
