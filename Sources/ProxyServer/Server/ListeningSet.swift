// The bound sockets for the addresses of a configuration: TCP, `localhost` in both families, unix sockets with mode and
// group.

package import Configuration
package import EventLoop
import Glibc

/// The error of an address that cannot be bound.
package struct ListeningError: Error, Sendable, CustomStringConvertible {
    package let address: ListenAddress
    package let reason: SystemError

    package var description: String { reason.description }
}

/// Binds the addresses of a configuration.
package enum ListeningSet {
    /// Binds one socket for each address; `localhost` is 127.0.0.1 and, if the machine has it, ::1 on the same port,
    /// and `*` likewise 0.0.0.0 and ::.
    ///
    /// - Parameters:
    ///   - mode: the permissions of unix sockets; missing folders above them are made.
    ///   - group: the group that owns unix sockets; nil for the group of the process.
    /// - Throws: `ListeningError` with the address; all sockets are closed then.
    package static func bind(
        _ addresses: [ListenAddress],
        mode: UInt32 = 0o660,
        group: String? = nil
    ) throws(ListeningError) -> [ListeningSocket] {
        var sockets: [ListeningSocket] = []
        for address in addresses {
            do throws(SystemError) {
                try bind(address, mode, group, &sockets)
            } catch {
                for socket in sockets { socket.discard() }
                throw ListeningError(address: address, reason: error)
            }
        }
        return sockets
    }

    /// Binds a unix socket again whose file is gone, while its old one still listens. Blocks.
    package static func bindAnew(
        _ address: SocketAddress,
        mode: UInt32,
        group: String?
    ) throws(ListeningError) -> ListeningSocket {
        let sockets = try bind([.unix(path: address.host)], mode: mode, group: group)
        guard let socket = sockets.first else {
            throw ListeningError(address: .unix(path: address.host), reason: SystemError("listen", code: ENOENT))
        }
        return socket
    }

    /// Binds the sockets of one address.
    /// - Parameter sockets: gets each socket that was bound, even if a later one fails.
    private static func bind(
        _ address: ListenAddress,
        _ mode: UInt32,
        _ group: String?,
        _ sockets: inout [ListeningSocket]
    ) throws(SystemError) {
        switch address {
        case .tcp("localhost", let port): try bind("127.0.0.1", and: "::1", port, &sockets)
        case .tcp("*", let port): try bind("0.0.0.0", and: "::", port, &sockets)
        case .tcp(let host, let port): sockets.append(try bind(host, port))
        case .unix(let path):
            makeFolder(of: path)
            sockets.append(try ListeningSocket.bind(unixPath: path, mode: mode))
            if let group { try own(path, group) }
        }
    }

    private static func bind(_ host: String, _ port: UInt16) throws(SystemError) -> ListeningSocket {
        guard let address = SocketAddress(numericHost: host, port: port) else {
            throw SystemError("listen on \(host):\(port): write a numeric address or localhost", code: EINVAL)
        }
        return try ListeningSocket.bind(address)
    }

    private static func bind(
        _ four: String,
        and six: String,
        _ port: UInt16,
        _ sockets: inout [ListeningSocket]
    ) throws(SystemError) {
        let first = try bind(four, port)
        sockets.append(first)
        do throws(SystemError) {
            sockets.append(try bind(six, first.address.port))
        } catch {
            // A machine without IPv6 has neither ::1 nor ::; with port 0, the port that the kernel chose may be in use
            // there.
            let isAbsent = error.code == EAFNOSUPPORT || error.code == EADDRNOTAVAIL
            guard isAbsent || (port == 0 && error.code == EADDRINUSE) else { throw error }
        }
    }

    /// Makes the missing folders above a unix socket; `bind` reports a failure.
    private static func makeFolder(of path: String) {
        guard let slash = path.lastIndex(of: "/"), slash > path.startIndex else { return }
        try? Folders.make(String(path[..<slash]), mode: 0o755)
    }

    private static func own(_ path: String, _ group: String) throws(SystemError) {
        guard let identifier = identifier(ofGroup: group) else {
            throw SystemError("find the group \(group) for \(path)", code: ENOENT)
        }
        guard chown(path, uid_t.max, identifier) == 0 else {
            throw SystemError("give \(path) to the group \(group)")
        }
    }

    /// The identifier of a group; nil if this machine has no such group. May block.
    package static func identifier(ofGroup name: String) -> UInt32? {
        var entry = Glibc.group()
        var buffer = [CChar](repeating: 0, count: 16384)
        var found: UnsafeMutablePointer<Glibc.group>?
        guard getgrnam_r(name, &entry, &buffer, buffer.count, &found) == 0, found != nil else { return nil }
        return entry.gr_gid
    }
}
