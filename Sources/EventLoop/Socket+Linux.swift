// Socket and file calls that only Linux has.

internal import CLinux
import Glibc

extension Socket {
    /// Reads bytes of a file only if they are in the page cache (RWF_NOWAIT).
    package static func readResident(
        _ file: Int32,
        into buffer: UnsafeMutableRawBufferPointer,
        offset: Int64
    ) -> IOResult {
        guard let base = buffer.baseAddress else { return .end }
        return result(isRead: true) { c_linux_read_resident(file, base, buffer.count, off_t(offset)) }
    }

    /// The user at the other end of a unix socket.
    package static func peerUser(_ descriptor: Int32) -> UInt32? {
        let user = c_linux_peer_user(descriptor)
        return user < 0 ? nil : UInt32(user)
    }
}
