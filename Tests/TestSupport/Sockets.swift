// Blocking sockets on loopback, each with a receive and send deadline.

import Foundation

enum Sockets {
    /// Opens a listening TCP socket on 127.0.0.1; port 0 lets the kernel choose.
    static func listen(port: Int = 0, backlog: Int32 = 1024) throws -> (descriptor: Int32, port: Int) {
        let descriptor = try check("socket", socket(AF_INET, streamType, 0))
        do {
            setOption(descriptor, SOL_SOCKET, SO_REUSEADDR, 1)
            var address = loopback(port)
            _ = try withAddress(&address) { try check("bind to port \(port)", bind(descriptor, $0, $1)) }
            _ = try check("listen", Glibc.listen(descriptor, backlog))
            _ = fcntl(descriptor, F_SETFL, O_NONBLOCK)
            return (descriptor, try boundPort(descriptor))
        } catch {
            close(descriptor)
            throw error
        }
    }

    /// Connects to 127.0.0.1.
    static func connect(port: Int, seconds: Double, receiveBuffer: Int? = nil) throws -> Int32 {
        let descriptor = try check("socket", socket(AF_INET, streamType, 0))
        do {
            if let receiveBuffer { setOption(descriptor, SOL_SOCKET, SO_RCVBUF, Int32(receiveBuffer)) }
            setOption(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, 1)
            setDeadlines(descriptor, seconds: seconds)
            var address = loopback(port)
            _ = try withAddress(&address) { try check("connect to port \(port)", Glibc.connect(descriptor, $0, $1)) }
            return descriptor
        } catch {
            close(descriptor)
            throw error
        }
    }

    /// Connects to a unix stream socket.
    static func connect(unix path: String, seconds: Double) throws -> Int32 {
        let descriptor = try check("socket", socket(AF_UNIX, streamType, 0))
        do {
            setDeadlines(descriptor, seconds: seconds)
            var address = try unixAddress(path)
            _ = try withAddress(&address) { try check("connect to \(path)", Glibc.connect(descriptor, $0, $1)) }
            return descriptor
        } catch {
            close(descriptor)
            throw error
        }
    }

    /// Binds a unix datagram socket.
    static func bindDatagram(_ path: String) throws -> Int32 {
        let type = Int32(SOCK_DGRAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
        let descriptor = try check("socket", socket(AF_UNIX, type, 0))
        do {
            var address = try unixAddress(path)
            _ = try withAddress(&address) { try check("bind \(path)", bind(descriptor, $0, $1)) }
            return descriptor
        } catch {
            close(descriptor)
            throw error
        }
    }

    /// Sends one datagram; says whether it went.
    static func sendDatagram(_ descriptor: Int32, to path: String, _ bytes: [UInt8]) -> Bool {
        guard var address = try? unixAddress(path) else { return false }
        let sent = withAddress(&address) { sendto(descriptor, bytes, bytes.count, 0, $0, $1) }
        return sent == bytes.count
    }

    /// Writes all bytes, or throws.
    static func writeAll(_ descriptor: Int32, _ bytes: UnsafeRawBufferPointer) throws {
        var sent = 0
        while sent < bytes.count {
            let count = send(
                descriptor,
                bytes.baseAddress.map { $0 + sent },
                bytes.count - sent,
                Int32(MSG_NOSIGNAL)
            )
            if count > 0 {
                sent += count
            } else if errno != EINTR {
                throw failure("send")
            }
        }
    }

    /// Writes one byte of urgent data.
    static func writeUrgent(_ descriptor: Int32, _ byte: UInt8) throws {
        var byte = byte
        _ = try check("send", Int32(send(descriptor, &byte, 1, Int32(MSG_OOB) | Int32(MSG_NOSIGNAL))))
    }

    /// Reads at least one byte; 0 at the end.
    static func read(_ descriptor: Int32, into buffer: UnsafeMutableRawBufferPointer) throws -> Int {
        while true {
            let count = recv(descriptor, buffer.baseAddress, buffer.count, 0)
            if count >= 0 { return count }
            if errno != EINTR { throw failure("receive") }
        }
    }

    /// Accepts a connection that children do not inherit; nil when the listener has been shut down.
    static func accept(_ listener: Int32) -> Int32? {
        while true {
            // The wait is outside the lock, so the accept inside it never blocks.
            var waiting = pollfd(fd: listener, events: Int16(POLLIN), revents: 0)
            if poll(&waiting, 1, -1) < 0 && errno != EINTR { return nil }
            let descriptor = withoutNewDescriptors {
                let descriptor = Glibc.accept(listener, nil, nil)
                if descriptor >= 0 { _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC) }
                return descriptor
            }
            if descriptor >= 0 { return descriptor }
            if errno != EINTR && errno != ECONNABORTED && errno != EAGAIN { return nil }
        }
    }

    /// Runs `body` while no accepted descriptor is waiting to be marked close-on-exec.
    ///
    /// Glibc's `accept4` is invisible to Swift, so a process started between accept and mark would hold a connection.
    static func withoutNewDescriptors<Result>(_ body: () -> Result) -> Result {
        spawning.lock()
        defer { spawning.unlock() }
        return body()
    }

    private static let spawning = NSLock()

    /// The offset of `mark`, which begins with CR, in `bytes`.
    static func find(_ mark: StaticString, in bytes: UnsafeRawBufferPointer) -> Int? {
        var from = 0
        while bytes.count - from >= mark.utf8CodeUnitCount, let base = bytes.baseAddress {
            guard let found = memchr(base + from, 13, bytes.count - from) else { return nil }
            let index = UnsafeRawPointer(found) - base
            guard bytes.count - index >= mark.utf8CodeUnitCount else { return nil }
            if memcmp(found, mark.utf8Start, mark.utf8CodeUnitCount) == 0 { return index }
            from = index + 1
        }
        return nil
    }

    /// Makes closing send a reset instead of an orderly end.
    static func resetOnClose(_ descriptor: Int32) {
        var value = linger(l_onoff: 1, l_linger: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &value, socklen_t(MemoryLayout<linger>.size))
    }

    static func setDeadlines(_ descriptor: Int32, seconds: Double) {
        var value = timeval(tv_sec: Int(seconds), tv_usec: Int((seconds - seconds.rounded(.down)) * 1_000_000))
        let size = socklen_t(MemoryLayout<timeval>.size)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &value, size)
        setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &value, size)
    }

    static func setOption(_ descriptor: Int32, _ level: Int32, _ name: Int32, _ value: Int32) {
        var value = value
        setsockopt(descriptor, level, name, &value, socklen_t(MemoryLayout<Int32>.size))
    }

    static func check(_ call: String, _ result: Int32) throws -> Int32 {
        if result < 0 { throw TestSupportError.system(call: call, code: errno) }
        return result
    }

    private static let streamType = Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue)

    private static func failure(_ call: String) -> TestSupportError {
        errno == EAGAIN || errno == EWOULDBLOCK ? .timedOut(call) : .system(call: call, code: errno)
    }

    private static func loopback(_ port: Int) -> sockaddr_in {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = in_port_t(UInt16(truncatingIfNeeded: port)).bigEndian
        address.sin_addr.s_addr = in_addr_t(0x7F00_0001).bigEndian
        return address
    }

    private static func unixAddress(_ path: String) throws -> sockaddr_un {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        let bytes = Array(path.utf8)
        try withUnsafeMutableBytes(of: &address.sun_path) { room in
            guard bytes.count < room.count else {
                throw TestSupportError.failed("the socket path \(path) is longer than \(room.count - 1) bytes")
            }
            room.copyBytes(from: bytes)
        }
        return address
    }

    private static func withAddress<Address, Result>(
        _ address: inout Address,
        _ body: (UnsafePointer<sockaddr>, socklen_t) throws -> Result
    ) rethrows -> Result {
        let size = socklen_t(MemoryLayout<Address>.size)
        return try withUnsafePointer(to: &address) { pointer in
            // The pointer lives for the call only; every address type begins with a sockaddr.
            try pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { try body($0, size) }
        }
    }

    private static func boundPort(_ descriptor: Int32) throws -> Int {
        var address = sockaddr_in()
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        _ = try withUnsafeMutablePointer(to: &address) { pointer in
            // As above: the rebound pointer does not outlive the call.
            try pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                try check("getsockname", getsockname(descriptor, $0, &size))
            }
        }
        return Int(UInt16(bigEndian: address.sin_port))
    }
}

/// A loopback port that nobody listens on at the moment of asking.
package func freePort() throws -> Int {
    let socket = try Sockets.listen()
    close(socket.descriptor)
    return socket.port
}
