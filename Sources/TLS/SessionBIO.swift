// The BIO between OpenSSL and a session: encrypted bytes come from the session's wire, and go into its output.

import CLibssl
package import EventLoop

/// Where a session gets encrypted bytes from; loop-bound. It is called within calls of the session, and must not call it.
package protocol TLSWire: AnyObject {
    /// Reads what is there, at most `buffer.count` bytes.
    /// `.end` or `.failed` if the peer has ended the connection, or it broke.
    func receive(into buffer: UnsafeMutableRawBufferPointer) -> IOResult
}

/// The one method table of all sessions' BIOs.
enum SessionBIO {
    /// Made once and never freed or changed: OpenSSL only reads it, from any thread.
    nonisolated(unsafe) private static let method: OpaquePointer? = {
        guard let made = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "drydock") else { return nil }
        BIO_meth_set_read(made) { bio, buffer, count in
            guard let bio, let buffer, count > 0, let session = owner(bio) else { return -1 }
            c_bio_clear_retry(bio)
            switch session.receive(into: UnsafeMutableRawBufferPointer(start: buffer, count: Int(count))) {
            case .bytes(let read): return Int32(read)
            case .wouldBlock:
                c_bio_set_retry_read(bio)
                return -1
            case .end, .truncated, .failed: return 0
            }
        }
        BIO_meth_set_write(made) { bio, bytes, count in
            guard let bio, let bytes, count > 0, let session = owner(bio) else { return -1 }
            c_bio_clear_retry(bio)
            return session.output.append(UnsafeRawBufferPointer(start: bytes, count: Int(count))) ? count : -1
        }
        BIO_meth_set_ctrl(made) { bio, command, _, _ in
            switch command {
            case BIO_CTRL_FLUSH: 1
            case BIO_CTRL_EOF: bio.flatMap(owner)?.hasEnded == true ? 1 : 0
            default: 0
            }
        }
        return made
    }()

    /// A BIO of a session, which outlives it.
    static func make(for session: TLSSession) -> OpaquePointer? {
        guard let method, let bio = BIO_new(method) else { return nil }
        BIO_set_data(bio, Unmanaged.passUnretained(session).toOpaque())
        BIO_set_init(bio, 1)
        return bio
    }

    /// The session frees its BIO before it goes, so that the pointer is valid whenever OpenSSL calls.
    private static func owner(_ bio: OpaquePointer) -> TLSSession? {
        BIO_get_data(bio).map { Unmanaged<TLSSession>.fromOpaque($0).takeUnretainedValue() }
    }
}
