// The descriptors of this process that lead to one port: other tests run beside, so that a plain count would lie.

import Glibc
import TestSupport

enum Descriptors {
    static func connected(to port: Int) -> [Int32] {
        (0..<Int32(2048)).filter { descriptor in
            var address = sockaddr_in()
            var length = socklen_t(MemoryLayout<sockaddr_in>.size)
            let status = withUnsafeMutablePointer(to: &address) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { getpeername(descriptor, $0, &length) }
            }
            return status == 0 && address.sin_family == AF_INET && Int(UInt16(bigEndian: address.sin_port)) == port
        }
    }

    static func isReadable(_ descriptor: Int32) -> Bool {
        var poll = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        return Glibc.poll(&poll, 1, 0) > 0
    }

    /// Whether it comes to pass that nothing leads to the port any more.
    static func areGone(to port: Int) -> Bool { blockUntil { connected(to: port).isEmpty } }
}
