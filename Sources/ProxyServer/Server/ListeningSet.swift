// The sockets of addresses to listen on: bound, or taken over from the process before this one.

package import EventLoop
import Glibc

/// The error of an address that cannot be bound.
package struct ListeningError: Error, Sendable, CustomStringConvertible {
    package let address: ListenAddress
    package let reason: SystemError

    package var description: String { reason.description }
}

/// Binds the sockets of addresses to listen on.
package struct ListeningSet {
    /// The permissions of unix sockets; missing folders above them are made.
    private let mode: UInt32
    /// The group that owns unix sockets; nil for the group of the process.
    private let group: String?
    /// Sockets of the process before this one that no address has been found for yet.
    private var kept: [ListeningSocket]
    private var bound: [ListeningSocket] = []

    private init(mode: UInt32, group: String?, kept: [ListeningSocket]) {
        (self.mode, self.group, self.kept) = (mode, group, kept)
    }

    /// Binds one socket for each address; `localhost` is 127.0.0.1 and, if the machine has it, ::1 on the same port,
    /// and `*` likewise 0.0.0.0 and ::.
    ///
    /// - Parameters:
    ///   - mode: the permissions of unix sockets.
    ///   - group: the group that owns unix sockets; nil for the group of the process.
    ///   - kept: sockets of the process before this one: each is used, and taken out, where an address is its own.
    /// - Throws: `ListeningError` with the address; all sockets but those of `kept` are closed then.
    package static func bind(
        _ addresses: [ListenAddress],
        mode: UInt32 = 0o660,
        group: String? = nil,
        using kept: inout [ListeningSocket]
    ) throws(ListeningError) -> [ListeningSocket] {
        var set = ListeningSet(mode: mode, group: group, kept: kept)
        for address in addresses {
            do throws(SystemError) {
                try set.add(address)
            } catch {
                let foreign = Set(kept.map(\.descriptor))
                for socket in set.bound where !foreign.contains(socket.descriptor) { socket.discard() }
                throw ListeningError(address: address, reason: error)
            }
        }
        kept = set.kept
        return set.bound
    }

    /// Binds the sockets of addresses, all of them anew.
    package static func bind(
        _ addresses: [ListenAddress],
        mode: UInt32 = 0o660,
        group: String? = nil
    ) throws(ListeningError) -> [ListeningSocket] {
        var none: [ListeningSocket] = []
        return try bind(addresses, mode: mode, group: group, using: &none)
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

    private mutating func add(_ address: ListenAddress) throws(SystemError) {
        switch address {
        case .tcp("localhost", let port): try add("127.0.0.1", and: "::1", port)
        case .tcp("*", let port): try add("0.0.0.0", and: "::", port)
        case .tcp(let host, let port): try add(host, port)
        case .unix(let path): try add(path: path)
        }
    }

    private mutating func add(_ host: String, _ port: UInt16) throws(SystemError) {
        guard let address = SocketAddress(numericHost: host, port: port) else {
            throw SystemError("listen on \(host):\(port): write a numeric address or localhost", code: EINVAL)
        }
        if let found = keptSocket(where: { !$0.isUnix && $0.host == address.host && (port == 0 || $0.port == port) }) {
            bound.append(found)
        } else {
            bound.append(try ListeningSocket.bind(address))
        }
    }

    private mutating func add(_ four: String, and six: String, _ port: UInt16) throws(SystemError) {
        try add(four, port)
        do throws(SystemError) {
            try add(six, bound.last?.address.port ?? port)
        } catch {
            // A machine without IPv6 has neither ::1 nor ::; with port 0, the port that the kernel chose may be in use
            // there.
            let isAbsent = error.code == EAFNOSUPPORT || error.code == EADDRNOTAVAIL
            guard isAbsent || (port == 0 && error.code == EADDRINUSE) else { throw error }
        }
    }

    private mutating func add(path: String) throws(SystemError) {
        // Nobody can connect to one whose file somebody has removed.
        if access(path, F_OK) == 0, let found = keptSocket(where: { $0.isUnix && $0.host == path }) {
            bound.append(found)
            guard chmod(path, mode) == 0 else { throw SystemError("set the permissions of \(path)") }
        } else {
            Self.makeFolder(of: path)
            bound.append(try ListeningSocket.bind(unixPath: path, mode: mode))
        }
        if let group { try Self.own(path, group) }
    }

    /// Takes the first socket out of the kept ones whose address is meant; nil if there is none.
    private mutating func keptSocket(where isMeant: (SocketAddress) -> Bool) -> ListeningSocket? {
        kept.firstIndex { isMeant($0.address) }.map { kept.remove(at: $0) }
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
