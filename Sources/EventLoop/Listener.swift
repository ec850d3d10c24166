// Listening sockets, and accepting connections on a loop.

import CLinux
import Glibc

/// A bound, listening, non-blocking socket. Its owner must close it.
package struct ListeningSocket: Sendable {
    package let descriptor: Int32
    package let address: SocketAddress
    /// Whether this process made the socket's file, which it removes then; the file of an inherited socket belongs to
    /// the process that passed it.
    package private(set) var ownsFile = false

    /// Binds a numeric address, without SO_REUSEPORT: a second daemon must fail because the address is in use.
    /// - Throws: `SystemError` naming the address.
    package static func bind(_ address: SocketAddress, backlog: Int32 = 1024) throws(SystemError) -> ListeningSocket {
        let kind = Int32(SOCK_STREAM.rawValue) | Int32(SOCK_NONBLOCK.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
        let descriptor = socket(address.family, kind, 0)
        guard descriptor >= 0 else { throw SystemError("socket for \(address)") }
        var one: Int32 = 1
        if address.family != AF_UNIX { _ = setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &one, 4) }
        if address.family == AF_INET6 { _ = setsockopt(descriptor, Int32(IPPROTO_IPV6), IPV6_V6ONLY, &one, 4) }
        guard address.withPointer({ Glibc.bind(descriptor, $0, $1) }) == 0 else {
            let error = SystemError("listen on \(address)")
            close(descriptor)
            throw error
        }
        guard listen(descriptor, backlog) == 0 else {
            let error = SystemError("listen on \(address)")
            close(descriptor)
            throw error
        }
        return try adopt(descriptor)
    }

    /// Binds a unix socket at `path`. A socket file without a listener is replaced; one with a listener is an error.
    /// - Parameter mode: the file's permissions.
    /// - Throws: `SystemError` naming the path.
    package static func bind(unixPath path: String, mode: UInt32) throws(SystemError) -> ListeningSocket {
        guard let address = SocketAddress(unixPath: path) else {
            throw SystemError("listen on unix:\(path)", code: ENAMETOOLONG)
        }
        // If two daemons start at once, the second must not take the first one's file for one without a listener.
        let slash = path.lastIndex(of: "/") ?? path.startIndex
        let folder = open(slash == path.startIndex ? "/" : String(path[..<slash]), O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        if folder >= 0 { lockForAWhile(folder) }
        defer { if folder >= 0 { close(folder) } }
        if isLive(address) { throw SystemError("listen on unix:\(path)", code: EADDRINUSE) }
        var information = stat()
        if lstat(path, &information) == 0, information.st_mode & S_IFMT == S_IFSOCK { unlink(path) }
        var listening = try bind(address)
        listening.ownsFile = true
        guard chmod(path, mode) == 0 else {
            let error = SystemError("set the permissions of \(path)")
            listening.discard()
            throw error
        }
        return listening
    }

    /// Locks the folder. Waits two seconds at most, because any process that can read a folder can hold its lock.
    private static func lockForAWhile(_ folder: Int32) {
        for _ in 0..<200 where flock(folder, LOCK_EX | LOCK_NB) != 0 { usleep(10_000) }
    }

    /// Whether this process made the socket's file, and it has been removed, so that no client can connect any more.
    /// Blocks.
    package var isLost: Bool {
        var information = stat()
        return ownsFile && lstat(address.host, &information) != 0 && [ENOENT, ENOTDIR].contains(errno)
    }

    /// Closes the socket and removes its file; for sockets that no ``Listener`` has taken.
    /// - Parameter keepsFile: whether to leave the file, because another process has made one of this name.
    package func discard(keepsFile: Bool = false) {
        close(descriptor)
        if ownsFile, !keepsFile { unlink(address.host) }
    }

    /// Ends the listening for every process that has the socket, closes it, and leaves its file. The address can be bound
    /// again then, by whoever may.
    package func end() {
        _ = shutdown(descriptor, Int32(SHUT_RDWR))
        close(descriptor)
    }

    /// Takes over a listening descriptor, such as one passed by systemd.
    /// - Throws: `SystemError`; the descriptor is still open then.
    package static func adopt(_ descriptor: Int32) throws(SystemError) -> ListeningSocket {
        var storage = sockaddr_storage()
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        let address = withUnsafeMutablePointer(to: &storage) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
                getsockname(descriptor, pointer, &length) == 0 ? SocketAddress(pointer, length: length) : nil
            }
        }
        guard let address else { throw SystemError("getsockname of descriptor \(descriptor)") }
        let flags = fcntl(descriptor, F_GETFL)
        guard flags >= 0, fcntl(descriptor, F_SETFL, flags | O_NONBLOCK) == 0 else {
            throw SystemError("fcntl of descriptor \(descriptor)")
        }
        return ListeningSocket(descriptor: descriptor, address: address)
    }

    /// The same socket, whose file, if it has one, belongs to this process from now on: the one that has made it is gone.
    package var withFile: ListeningSocket {
        var socket = self
        socket.ownsFile = address.isUnix
        return socket
    }

    /// Whether a descriptor is a socket that takes connections.
    package static func listens(_ descriptor: Int32) -> Bool {
        func option(_ name: Int32) -> Int32? {
            var value: Int32 = 0
            var length = socklen_t(MemoryLayout<Int32>.size)
            return getsockopt(descriptor, SOL_SOCKET, name, &value, &length) == 0 ? value : nil
        }
        return option(SO_TYPE) == Int32(SOCK_STREAM.rawValue) && option(SO_ACCEPTCONN) == 1
    }

    private static func isLive(_ address: SocketAddress) -> Bool {
        let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { return false }
        defer { close(descriptor) }
        return address.withPointer { Glibc.connect(descriptor, $0, $1) } == 0
    }
}

/// Accepts connections until the kernel has no more; loop-bound.
package final class Listener: IOHandler {
    package let socket: ListeningSocket
    private let accepted: (_ descriptor: Int32, _ peer: SocketAddress) -> Void
    private let failed: (SystemError) -> Void
    private var event: IOEvent?
    private var retry: LoopTimer?

    /// - Parameters:
    ///   - accepted: called with a descriptor, which it owns from then on.
    ///   - failed: called for a failure that is not the peer's, such as too many open files;
    ///     accepting continues 100 ms later.
    package init(
        on loop: isolated EventLoop,
        socket: ListeningSocket,
        accepted: @escaping (_ descriptor: Int32, _ peer: SocketAddress) -> Void,
        failed: @escaping (SystemError) -> Void
    ) {
        self.socket = socket
        self.accepted = accepted
        self.failed = failed
        let event = IOEvent(on: loop, descriptor: socket.descriptor, handler: self)
        self.event = event
        retry = LoopTimer(on: loop) { [weak event] in event?.watch(.read) }
        event.watch(.read)
    }

    /// Stops accepting and closes the socket; the file of a unix socket that was bound here is removed, too.
    /// - Parameter keepsFile: whether to leave the file, because another process has made one of this name.
    package func close(keepsFile: Bool = false) {
        guard let event else { return }
        event.cancel()
        self.event = nil
        retry?.cancel()
        retry = nil
        socket.discard(keepsFile: keepsFile)
    }

    package func ready(_ readiness: IOReadiness) {
        var peer = sockaddr_storage()
        var length = socklen_t(0)
        // The number is limited, so that a flood of connections does not starve the present ones.
        for _ in 0..<128 {
            let descriptor = c_linux_accept(socket.descriptor, &peer, &length)
            guard descriptor >= 0 else { return stopped(errno) }
            let address = withUnsafePointer(to: &peer) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { SocketAddress($0, length: length) }
            }
            accepted(descriptor, address)
        }
    }

    private func stopped(_ code: Int32) {
        switch code {
        case EAGAIN, EINTR, ECONNABORTED, EPROTO, ENETDOWN, ENETUNREACH, EHOSTUNREACH, ETIMEDOUT: return
        default:
            failed(SystemError("accept on \(socket.address)", code: code))
            event?.watch([])
            retry?.start(after: 100_000_000)
        }
    }
}

@available(*, unavailable) extension Listener: Sendable {}
