// A complete body as a plain file that anything can read.

import EventLoop
import Glibc

package enum BodyFile {
    /// Writes a file that does not exist yet, every block of a stored body verified; blocks.
    /// - Returns: the length in bytes.
    /// - Throws: `SystemError` or `BodyError`; `.abandoned` for a body that still grows. The file
    ///   stays even after an error.
    package static func write(_ body: Body, to path: String) throws -> Int64 {
        let descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o644)
        guard descriptor >= 0 else { throw SystemError("open \(path)") }
        defer { close(descriptor) }
        let length = body.knownLength ?? 0
        switch body.source {
        case .chunk(let chunk): try chunk.withBytes { bytes in try write(bytes, to: descriptor, path) }
        case .file(let file, let offset, _):
            var position: Int64 = 0
            while position < length {
                let count = file.pieceCount(at: offset + position, count: length - position)
                try file.prepareNow(offset: offset + position, count: count)
                let piece = try file.read(offset: offset + position, count: count)
                try piece.withBytes { bytes in try write(bytes, to: descriptor, path) }
                position += Int64(count)
            }
        case .growing: throw BodyError.abandoned
        }
        return length
    }

    private static func write(_ bytes: UnsafeRawBufferPointer, to descriptor: Int32, _ path: String) throws {
        var done = 0
        while done < bytes.count {
            let rest = UnsafeRawBufferPointer(rebasing: bytes[done...])
            let count = Glibc.write(descriptor, rest.baseAddress, rest.count)
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { throw SystemError("write \(path)") }
            done += count
        }
    }
}
