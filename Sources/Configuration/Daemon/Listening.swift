// The listen addresses of the daemon, for clients and for the admin API.

package import EventLoop

extension KeyTable {
    static let admin = SectionDescriptor(
        name: "admin",
        keys: [
            KeyDescriptor(
                "listen",
                .word("none", or: .oneOrMore(.address)),
                "Where the admin API listens: unix:/PATH or a loopback address; none takes no commands.",
                required: true
            ),
            KeyDescriptor(
                "mode",
                .permissions,
                default: "0660",
                "The permissions of the admin socket if it is a unix socket, in octal."
            ),
            KeyDescriptor("group", .text(.word), "The group of the admin socket if it is a unix socket."),
        ]
    )
}

/// The settings of the admin socket.
package struct AdminConfiguration: Sendable, Equatable {
    /// The addresses of the admin API, at least one; TCP addresses are on loopback, because the admin API has no
    /// password.
    package var listen: [ListenAddress]
    /// The permissions of a unix socket. Default: 0660.
    package var mode: UInt32
    /// The group that owns a unix socket; nil for the process's own.
    package var group: String?
}

extension AdminConfiguration {
    package init(listen: [ListenAddress]) { self.init(listen: listen, SectionReader(nothingOf: KeyTable.admin)) }

    init(listen: [ListenAddress], _ reader: SectionReader) {
        self.listen = listen
        mode = UInt32(reader.int(always: "mode"))
        group = reader.text("group")
    }
}

extension Resolver {
    func addresses(_ scalars: [Scalar]) -> [ListenAddress] {
        scalars.compactMap { scalar in
            guard case .address(let address) = scalar else { return nil }
            return address
        }
    }

    mutating func admin(_ root: SectionReader, listen: [ListenAddress]) -> AdminConfiguration? {
        guard let position = root.position("admin"), !broken.contains(position) else { return nil }
        let reader = root.section("admin")
        let isNone = reader.leaf("listen")?.scalar == Scalar.none
        let result = AdminConfiguration(listen: addresses(reader.scalars("listen")), reader)
        for (item, address) in zip(reader.items("listen"), result.listen) {
            if !address.isLoopback {
                fail(
                    item.position,
                    "the admin API has no password, so it listens on a unix socket or on loopback only; write unix:/run/drydock/admin.sock"
                )
            }
            if listen.contains(where: { $0.meets(address) }) {
                fail(item.position, "\(address) is also in 'listen'; the admin API needs its own address")
            }
        }
        if result.listen.isEmpty, !isNone {
            fail(position, "'admin.listen' is an empty list; name an address, or write admin: none")
        }
        for key in ["mode", "group"] where !result.listen.contains(where: \.isUnix) {
            if let position = reader.position(key) {
                fail(position, "'admin.\(key)' is for unix sockets, and there is none under 'admin.listen'; remove it")
            }
        }
        return result
    }

    /// The addresses where monitors ask; any address, since nothing can be changed there.
    mutating func metrics(_ root: SectionReader, _ read: Configuration) -> [ListenAddress] {
        guard let position = root.position("metrics"), !broken.contains(position) else { return [] }
        let addresses = addresses(root.scalars("metrics"))
        for (index, item) in zip(addresses.indices, root.items("metrics")) {
            let address = addresses[index]
            let taken: String? =
                if read.listen.contains(where: { $0.address.meets(address) }) {
                    "'listen'"
                } else if read.admin?.listen.contains(where: { $0.meets(address) }) == true {
                    "'admin'"
                } else {
                    addresses[..<index].contains { $0.meets(address) } ? "this list" : nil
                }
            if let taken {
                fail(item.position, "\(address) is also in \(taken); 'metrics' needs an address of its own")
            }
        }
        if addresses.isEmpty { fail(position, "'metrics' is an empty list; name an address such as localhost:9090") }
        return addresses
    }

    mutating func checkListeners(_ reader: SectionReader, _ result: Configuration) {
        let items = reader.items("listen")
        if let position = reader.position("listen"), items.isEmpty, !broken.contains(position) {
            fail(position, "'listen' is an empty list; name an address such as localhost:8080")
        }
        if let position = reader.position("clients"), result.clients.isEmpty, !broken.contains(position) {
            fail(position, "'clients' is an empty list, so no client could connect; write [loopback]")
        }
        for (index, item) in zip(result.listen.indices, items) {
            let address = result.listen[index]
            guard let earlier = result.listen[..<index].first(where: { $0.address.meets(address.address) }) else {
                continue
            }
            let also = earlier == address ? "" : ", by \(earlier) too"
            fail(item.position, "\(address) is listed twice\(also); remove one")
        }
        warnOfClients(reader, result)
        guard reader.entry("clients") == nil, let index = result.listen.firstIndex(where: { !$0.address.isLoopback })
        else {
            return
        }
        guard result.forward.enabled else {
            warnings.append(
                ConfigurationError(
                    position: items[index].position,
                    message: Self.onlyThisMachine(result.listen[index].address)
                )
            )
            return
        }
        if result.forward.interception.isOn, let position = reader.section("forward").position("intercept") {
            fail(
                position,
                "'forward.intercept' on \(result.listen[index]) would read tunnels of the whole network; say who may connect (clients: [192.168.0.0/16]), or listen on localhost"
            )
            return
        }
        let position = reader.section("forward").position("enabled") ?? items[index].position
        fail(
            position,
            "forward mode on \(result.listen[index]) would be open to the whole network; say who may connect (clients: [192.168.0.0/16]), or write forward: { enabled: false }"
        )
    }
}

extension Resolver {
    /// Warns of `clients` without this machine, where no other can connect.
    private mutating func warnOfClients(_ reader: SectionReader, _ result: Configuration) {
        let addresses = result.listen.map(\.address)
        guard let position = reader.position("clients"), !broken.contains(position), let first = addresses.first,
            addresses.allSatisfy({ $0.isLoopback && !$0.isUnix }), !result.clients.isEmpty,
            !result.clients.contains(where: {
                $0.isLoopback || $0.contains([127, 0, 0, 1]) || $0.contains(AddressBytes.loopback6)
            })
        else { return }
        warnings.append(
            ConfigurationError(
                position: position,
                message:
                    "'clients' admits nobody: only this machine can connect to \(first), and no rule is for it; add loopback, or listen on another address"
            )
        )
    }
}

extension ListenAddress {
    var isUnix: Bool {
        if case .unix = self { true } else { false }
    }

    /// Whether two addresses cannot be bound at the same time, because both take one port of one IP address.
    func meets(_ other: ListenAddress) -> Bool {
        if case .unix(let path) = self, case .unix(let path2) = other { return path == path2 }
        return bound.contains { mine in
            other.bound.contains { its in
                let isOneFamily = mine.address.count == its.address.count
                let isAll = [mine, its].contains { $0.address.allSatisfy { $0 == 0 } }
                return mine.port == its.port && isOneFamily && (isAll || mine.address == its.address)
            }
        }
    }

    /// The IP addresses that are bound, in network order: two for `localhost` and for `*`. Empty for port 0, which is
    /// another port each time, and so never meets another address.
    private var bound: [(address: [UInt8], port: UInt16)] {
        switch self {
        case .tcp(_, port: 0), .unix: []
        case .tcp("localhost", let port): [([127, 0, 0, 1], port), (AddressBytes.loopback6, port)]
        case .tcp("*", let port): [([0, 0, 0, 0], port), ([UInt8](repeating: 0, count: 16), port)]
        case .tcp(let host, let port): AddressBytes.parse(host).map { [($0, port)] } ?? []
        }
    }
}

extension Resolver {
    /// The warning for a listen address that other machines can reach while `clients` admits none of them.
    static func onlyThisMachine(_ address: ListenAddress) -> String {
        "other machines can connect to \(address), and each gets a 403, since 'clients' is [loopback] by default; "
            + "name who may connect, such as clients: [192.168.0.0/16], or listen on localhost"
    }
}
