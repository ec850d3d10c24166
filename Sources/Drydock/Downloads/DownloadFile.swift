// The file that a download goes to: written under another name beside it, and put in its place when it is whole.

import EventLoop
import FoundationEssentials
import Glibc
import Synchronization

/// A file that is not whole leaves nothing behind.
///
/// Sendable: the descriptor and the names never change, and whether it is finished is atomic.
final class DownloadFile: Sendable {
    private let pool: IOPool
    private let descriptor: Int32
    private let path: String
    private let temporary: String
    private let isFinished = Atomic<Bool>(false)

    private init(on pool: IOPool, descriptor: Int32, path: String, temporary: String) {
        self.pool = pool
        self.descriptor = descriptor
        self.path = path
        self.temporary = temporary
    }

    deinit {
        close(descriptor)
        if !isFinished.load(ordering: .relaxed) { unlink(temporary) }
    }

    /// Makes the folders on the way, and an empty file beside the one that is to be.
    /// - Throws: `DownloadError.invalidRequest`, `.file`.
    static func open(_ file: URL, _ pool: IOPool) async throws(DownloadError) -> DownloadFile {
        guard file.isFileURL, !file.hasDirectoryPath else {
            throw .invalidRequest("'\(file)' is not a file to download to: name one by a file URL")
        }
        let path = file.path(percentEncoded: false)
        let folder = file.deletingLastPathComponent().path(percentEncoded: false)
        return try await run(pool) {
            if access(folder, F_OK) != 0 { try Folders.make(folder, mode: 0o777) }
            let temporary = "\(folder)/.\(UInt64.random(in: 0 ... .max)).download"
            let descriptor = Glibc.open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o666)
            guard descriptor >= 0 else { throw SystemError("open \(temporary)") }
            return DownloadFile(on: pool, descriptor: descriptor, path: path, temporary: temporary)
        }
    }

    /// - Throws: `DownloadError.file`.
    func write(_ bytes: Data) async throws(DownloadError) {
        try await Self.run(pool) { [descriptor, path] in
            try bytes.withUnsafeBytes { bytes in
                var done = 0
                while done < bytes.count {
                    let part = UnsafeRawBufferPointer(rebasing: bytes[done...])
                    let count = Glibc.write(descriptor, part.baseAddress, part.count)
                    if count < 0 && errno == EINTR { continue }
                    guard count >= 0 else { throw SystemError("write \(path)") }
                    done += count
                }
            }
        }
    }

    /// Where the whole file is.
    enum Ending {
        case inPlace
        /// It could not be put there, and has the other name still.
        case left(URL, reason: String)
    }

    /// Puts the file in its place, with all its bytes on the disk.
    /// - Throws: `DownloadError.file` where its bytes do not reach the disk.
    func commit() async throws(DownloadError) -> Ending {
        try await Self.run(pool) { [self] in
            guard fsync(descriptor) == 0 else { throw SystemError("fsync \(path)") }
            // It is whole: whoever asked for it gets it, and removes it.
            isFinished.store(true, ordering: .relaxed)
            if rename(temporary, path) == 0 { return .inPlace }
            return .left(URL(filePath: temporary), reason: "\(SystemError("rename to \(path)"))")
        }
    }

    private static func run<Value: Sendable>(
        _ pool: IOPool,
        _ work: @escaping @Sendable () throws -> Value
    ) async throws(DownloadError) -> Value {
        do {
            return try await pool.run(work)
        } catch {
            throw .file("the download could not be written: \(error)")
        }
    }
}
