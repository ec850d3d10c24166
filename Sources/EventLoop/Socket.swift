// The system calls on descriptors that the daemon makes on its loops, with results instead of errno, and the typed
// error of one that failed.

import CLinux
package import Glibc

/// The result of a non-blocking read or write.
package enum IOResult: Equatable {
    /// The number of bytes that were read or written; at least one.
    case bytes(Int)
    /// There is nothing now: wait for readiness.
    case wouldBlock
    /// The other side has finished; only for reads.
    case end
    /// The bytes of the other side have stopped, and it has not said that they would, so that some may be missing; only
    /// for reads of a transport whose end is a message, as in TLS.
    case truncated
    /// The connection cannot be used any more; the value is `errno`.
    case failed(Int32)
}

package enum Socket {
    /// Reads at most `buffer.count` available bytes. `recv` takes a shorter path through the kernel than `read`.
    package static func read(_ descriptor: Int32, into buffer: UnsafeMutableRawBufferPointer) -> IOResult {
        result(isRead: true) { recv(descriptor, buffer.baseAddress, buffer.count, 0) }
    }

    /// The same, and the bytes stay to be read.
    package static func peek(_ descriptor: Int32, into buffer: UnsafeMutableRawBufferPointer) -> IOResult {
        result(isRead: true) { recv(descriptor, buffer.baseAddress, buffer.count, Int32(MSG_PEEK)) }
    }

    /// The address that a socket has on this machine; nil if the kernel does not say.
    package static func ownAddress(of descriptor: Int32) -> SocketAddress? {
        var storage = sockaddr_storage()
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        return withUnsafeMutablePointer(to: &storage) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                getsockname(descriptor, address, &length) == 0 ? SocketAddress(address, length: length) : nil
            }
        }
    }

    /// Writes up to `count` buffers with one call.
    /// - Parameter isFollowed: whether more follows, for which these bytes wait, to be sent together (MSG_MORE).
    package static func write(
        _ descriptor: Int32,
        _ vectors: UnsafeMutablePointer<iovec>,
        count: Int,
        isFollowed: Bool = false
    ) -> IOResult {
        guard isFollowed else { return result(isRead: false) { writev(descriptor, vectors, Int32(count)) } }
        var message = msghdr()
        message.msg_iov = vectors
        message.msg_iovlen = count
        return result(isRead: false) { sendmsg(descriptor, &message, Int32(MSG_MORE | MSG_NOSIGNAL)) }
    }

    /// Writes one buffer to a socket. `send` takes a shorter path through the kernel than `write`, and `writev` the
    /// longest.
    package static func write(_ descriptor: Int32, _ bytes: UnsafeRawBufferPointer) -> IOResult {
        result(isRead: false) { send(descriptor, bytes.baseAddress, bytes.count, Int32(MSG_NOSIGNAL)) }
    }

    /// Sends `count` bytes of `file` from `offset` on, without copying them through the process.
    package static func sendFile(_ descriptor: Int32, file: Int32, offset: Int64, count: Int) -> IOResult {
        var position = off_t(offset)
        return result(isRead: true) { sendfile(descriptor, file, &position, count) }
    }

    package static func close(_ descriptor: Int32) { _ = Glibc.close(descriptor) }

    /// Ends the sending direction, so that the peer reads what was sent and then the end.
    package static func finishWriting(_ descriptor: Int32) { _ = shutdown(descriptor, Int32(SHUT_WR)) }

    /// Makes the kernel send bytes at once (TCP_NODELAY); no effect on a unix socket.
    package static func setNoDelay(_ descriptor: Int32) {
        var one: Int32 = 1
        _ = setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &one, 4)
    }

    /// The pending error of a socket (SO_ERROR), which is also the result of a `connect`; zero if there is none.
    package static func pendingError(_ descriptor: Int32) -> Int32 {
        var error: Int32 = 0
        var length = socklen_t(MemoryLayout<Int32>.size)
        guard getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &error, &length) == 0 else { return errno }
        return error
    }

    /// Begins a non-blocking connect.
    /// - Throws: `SystemError` if it fails at once.
    /// - Returns: a descriptor that becomes writable when the connect has ended; then ``pendingError(_:)`` has the
    ///   result.
    package static func connect(to address: SocketAddress) throws(SystemError) -> Int32 {
        let descriptor = socket(
            address.family,
            Int32(SOCK_STREAM.rawValue) | Int32(SOCK_NONBLOCK.rawValue) | Int32(SOCK_CLOEXEC.rawValue),
            0
        )
        guard descriptor >= 0 else { throw SystemError("socket for \(address)") }
        let status = address.withPointer { Glibc.connect(descriptor, $0, $1) }
        if status != 0, errno != EINPROGRESS {
            let error = SystemError("connect \(address)")
            close(descriptor)
            throw error
        }
        return descriptor
    }

    static func result(isRead: Bool, _ call: () -> Int) -> IOResult {
        while true {
            let count = call()
            if count > 0 { return .bytes(count) }
            if count == 0 { return isRead ? .end : .wouldBlock }
            switch errno {
            case EINTR: continue
            case EAGAIN: return .wouldBlock
            default: return .failed(errno)
            }
        }
    }
}

// MARK: - Errors

/// The error of a system call.
package struct SystemError: Error, Sendable, Equatable, CustomStringConvertible {
    /// The call and its target, such as `bind 127.0.0.1:8080`.
    package let operation: String
    /// The value of `errno` right after the call.
    package let code: Int32

    package init(_ operation: String, code: Int32 = errno) {
        self.operation = operation
        self.code = code
    }

    package var reason: String { String(cString: strerror(code)) }
    package var description: String { "\(operation): \(reason)" }
}

// MARK: - From socket to socket

/// A socket with content that can go on without a copy through this process. Whoever passes it on knows nothing of the
/// socket, and whoever takes the content does so within the call that hands it over.
package struct SpliceSource {
    // Open for as long as the call lasts: whoever hands it over owns it.
    let socket: Int32

    package init(_ socket: Int32) { self.socket = socket }

    /// As ``SocketPipe/fill(from:count:)``.
    package func fill(_ pipe: SocketPipe, count: Int) -> IOResult? { pipe.fill(from: socket, count: count) }
}

/// A pipe that is filled from one socket and emptied into another within one callback, so that it is empty between
/// callbacks. Loop-bound.
package final class SocketPipe {
    /// The size of the pipe in bytes; some pages may be partly filled.
    private static let size: Int32 = 1 << 20

    private let entry: Int32
    private let exit: Int32

    /// Makes a pipe; nil if the kernel refuses one.
    package init?() {
        var ends: [Int32] = [-1, -1]
        guard c_linux_pipe(&ends, Self.size) == 0 else { return nil }
        exit = ends[0]
        entry = ends[1]
    }

    deinit {
        close(entry)
        close(exit)
    }

    /// Moves the bytes that wait in a socket into the pipe, at most `count`. Nil if the kernel cannot do that with this
    /// socket, or has no memory for it: then the caller has to read them.
    package func fill(from socket: Int32, count: Int) -> IOResult? {
        let result = Socket.result(isRead: true) { c_linux_splice(socket, entry, count) }
        switch result {
        case .failed(EINVAL), .failed(ENOSYS), .failed(EPERM), .failed(EOPNOTSUPP), .failed(ENOMEM): return nil
        default: return result
        }
    }

    /// Moves at most `count` bytes from the pipe to a socket.
    package func empty(into socket: Int32, count: Int) -> IOResult {
        Socket.result(isRead: false) { c_linux_splice(exit, socket, count) }
    }

    /// Reads `count` bytes that a socket did not accept; fewer only if the pipe has fewer.
    package func read(_ count: Int) -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
            while filled < count {
                let room = UnsafeMutableRawBufferPointer(
                    rebasing: UnsafeMutableRawBufferPointer(buffer)[filled..<count]
                )
                guard
                    case .bytes(let read) = Socket.result(
                        isRead: true,
                        { Glibc.read(exit, room.baseAddress, room.count) }
                    )
                else { return }
                filled += read
            }
        }
    }
}

@available(*, unavailable) extension SocketPipe: Sendable {}
