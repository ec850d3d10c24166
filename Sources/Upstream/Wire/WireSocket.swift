// The system calls on the sockets of origins, where a peer may be gone and must not be heard of by a signal.

// For the flags: an optimised build takes CLibcurl for the owner of the socket types that curl.h includes.
import CLibcurl
import EventLoop
import Glibc

enum WireSocket {
    /// Sends what the socket takes.
    static func send(_ descriptor: Int32, _ bytes: UnsafeRawBufferPointer) -> IOResult {
        while true {
            let count = Glibc.send(descriptor, bytes.baseAddress, bytes.count, Int32(MSG_NOSIGNAL))
            if count > 0 { return .bytes(count) }
            if count == 0 { return .wouldBlock }
            switch errno {
            case EINTR: continue
            case EAGAIN: return .wouldBlock
            default: return .failed(errno)
            }
        }
    }

    /// Copies what could be read into the room, from its start; it stays in the socket.
    static func peek(_ descriptor: Int32, into room: UnsafeMutableRawBufferPointer) -> IOResult {
        while true {
            let count = recv(descriptor, room.baseAddress, room.count, Int32(MSG_PEEK) | Int32(MSG_DONTWAIT))
            if count > 0 { return .bytes(count) }
            if count == 0 { return .end }
            switch errno {
            case EINTR: continue
            case EAGAIN: return .wouldBlock
            default: return .failed(errno)
            }
        }
    }

    enum Look { case nothing, bytes, end }

    /// What could be read from the socket; it stays there.
    static func peek(_ descriptor: Int32) -> Look {
        var byte: UInt8 = 0
        let count = recv(descriptor, &byte, 1, Int32(MSG_PEEK) | Int32(MSG_DONTWAIT))
        if count > 0 { return .bytes }
        return count < 0 && errno == EAGAIN ? .nothing : .end
    }

    /// Ends both directions, so that the loop hears of it where the peer has not been heard of yet.
    static func end(_ descriptor: Int32) { _ = shutdown(descriptor, Int32(SHUT_RDWR)) }
}
