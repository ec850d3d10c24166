// A content that is a file: read piece by piece, as a whole or not at all.

import EventLoop
import FoundationEssentials
import Glibc

enum FileContent {
    /// Bytes that are read at a time.
    private static let portion = 256 << 10

    /// Bytes of a file. It blocks.
    /// - Throws: `DownloadError.requestBody` where it is no regular file that can be looked at.
    static func length(of file: URL) throws(DownloadError) -> Int64 {
        guard file.isFileURL else { throw refuse(file, "is no file: name one by a file URL") }
        var status = stat()
        guard stat(file.path(percentEncoded: false), &status) == 0 else {
            throw refuse(file, "cannot be looked at: \(SystemError("stat"))")
        }
        return try length(of: file, status)
    }

    /// Writes a file, of the length that it has when it is opened.
    /// - Throws: `DownloadError.requestBody`, and what the sink throws.
    static func write(_ file: URL, to sink: any ContentSink, _ files: BlockingWork) async throws {
        let reader = try await files.run { try Reader(file) }
        var offset: Int64 = 0
        while offset < reader.length {
            let place = offset
            let piece = try await files.run { try reader.read(at: place, atMost: portion) }
            try await sink.put(piece)
            offset += Int64(piece.count)
        }
    }

    private static func length(of file: URL, _ status: stat) throws(DownloadError) -> Int64 {
        guard status.st_mode & S_IFMT == S_IFREG else {
            throw refuse(file, "is no regular file: send what it gives as a stream")
        }
        return Int64(status.st_size)
    }

    fileprivate static func refuse(_ file: URL, _ why: String) -> DownloadError {
        .requestBody("'\(file.isFileURL ? file.path(percentEncoded: false) : file.absoluteString)' \(why)")
    }

    /// An open file.
    ///
    /// Sendable: nothing in it changes, and a read names its place.
    private final class Reader: Sendable {
        private let file: URL
        private let descriptor: Int32
        let length: Int64

        /// - Throws: `DownloadError.requestBody`.
        init(_ file: URL) throws(DownloadError) {
            guard file.isFileURL else { throw refuse(file, "is no file: name one by a file URL") }
            // Non-blocking, so that a pipe without a writer is refused, and not waited for.
            let descriptor = open(file.path(percentEncoded: false), O_RDONLY | O_CLOEXEC | O_NONBLOCK)
            guard descriptor >= 0 else { throw refuse(file, "cannot be opened: \(SystemError("open"))") }
            var status = stat()
            do throws(DownloadError) {
                guard fstat(descriptor, &status) == 0 else {
                    throw refuse(file, "cannot be read: \(SystemError("fstat"))")
                }
                length = try FileContent.length(of: file, status)
            } catch {
                close(descriptor)
                throw error
            }
            (self.file, self.descriptor) = (file, descriptor)
        }

        deinit { close(descriptor) }

        /// - Throws: `DownloadError.requestBody`.
        func read(at offset: Int64, atMost count: Int) throws(DownloadError) -> Data {
            var data = Data(count: Int(min(Int64(count), length - offset)))
            let result = data.withUnsafeMutableBytes { room in
                while true {
                    let read = pread(descriptor, room.baseAddress, room.count, off_t(offset))
                    if read >= 0 || errno != EINTR { return read }
                }
            }
            guard result >= 0 else { throw refuse(file, "cannot be read: \(SystemError("pread"))") }
            guard result > 0 else {
                throw refuse(file, "has become shorter than its \(length) bytes while it was sent: send it again")
            }
            if result < data.count { data.removeLast(data.count - result) }
            return data
        }
    }
}
