// The body of an answer on the hot path: bytes in memory, or bytes of a stored file.

package import CacheStore
package import EventLoop

/// For the length of one call.
package enum HotBody {
    /// Bytes that the answer's owner holds, and the file to send them from; nil where they are to be copied.
    case memory(UnsafeRawBufferPointer, in: MemoryFile? = nil)
    /// Bytes of a stored file that `sendfile` can take now.
    case file(SharedFile, offset: Int64, count: Int)

    /// Of HEAD, and of answers without a body.
    package static var none: HotBody { .memory(UnsafeRawBufferPointer(start: nil, count: 0)) }

    var count: Int {
        switch self {
        case .memory(let bytes, _): bytes.count
        case .file(_, _, let count): count
        }
    }

    /// Nil where they are in a stored file.
    var bytes: UnsafeRawBufferPointer? {
        switch self {
        case .memory(let bytes, _): bytes
        case .file: nil
        }
    }

    /// What to call `sendfile` with; nil where the bytes are to be copied.
    /// - Parameter copiesMemory: what the transport says of itself.
    func filePart(copiesMemory: Bool) -> (descriptor: Int32, offset: Int64)? {
        switch self {
        case .memory(let bytes, let file):
            copiesMemory ? nil : file.map { ($0.descriptor, $0.offset(of: bytes)) }
        case .file(let file, let offset, _): (file.descriptor, offset)
        }
    }

    /// What follows the first `written` bytes, for the queue.
    /// - Parameter owner: holds bytes in memory from now on.
    func rest(after written: Int, owner: AnyObject) -> BodyPiece {
        switch self {
        case .memory(let bytes, let file):
            .bytes(Chunk(of: bytes, in: owner, file: file), min(written, bytes.count)..<bytes.count)
        case .file(let file, let offset, let count):
            .file(file, offset: offset + Int64(written), count: max(0, count - written))
        }
    }
}
