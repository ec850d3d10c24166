// Addresses to listen on, and rules for the clients that may connect.

import Glibc

/// One address to listen on.
package enum ListenAddress: Sendable, Hashable, CustomStringConvertible {
    /// An IP address without brackets, `localhost`, which means both 127.0.0.1 and ::1, or `*`, which means all
    /// addresses of the machine, 0.0.0.0 and ::. Port 0 lets the kernel choose.
    case tcp(host: String, port: UInt16)
    /// The absolute path of a unix socket.
    case unix(path: String)

    /// As the configuration file writes it.
    package var description: String {
        switch self {
        case .tcp(let host, let port): host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
        case .unix(let path): "unix:\(path)"
        }
    }

    /// Whether only this machine can reach the address.
    package var isLoopback: Bool {
        switch self {
        case .unix: true
        case .tcp("localhost", _): true
        case .tcp(let host, _): AddressBytes.parse(host).map(ClientRule.loopback.contains) ?? false
        }
    }
}

/// The clients that may connect: loopback, all, or a network.
package enum ClientRule: Sendable, Hashable, CustomStringConvertible {
    case loopback
    case any
    case network(NetworkPrefix)

    /// Whether the rule admits an address of 4 (IPv4) or 16 (IPv6) bytes in network order; an IPv4-mapped
    /// IPv6 address counts as IPv4.
    package func contains(_ address: [UInt8]) -> Bool {
        let address = AddressBytes.unmapped(address)
        switch self {
        case .any: return true
        case .loopback: return address.count == 4 ? address[0] == 127 : address == AddressBytes.loopback6
        case .network(let network): return network.contains(address)
        }
    }

    /// Whether the rule admits only this machine.
    package var isLoopback: Bool {
        switch self {
        case .any: false
        case .loopback: true
        case .network(let network):
            network.bytes.count == 4
                ? network.bytes[0] == 127 && network.bits >= 8
                : network.bytes == AddressBytes.loopback6 && network.bits == 128
        }
    }

    /// As the configuration file writes it.
    package var description: String {
        switch self {
        case .loopback: "loopback"
        case .any: "any"
        case .network(let network): network.description
        }
    }
}

/// A network in CIDR form, such as `192.168.0.0/16` or `fd00::/8`; a lone address is a network of one.
package struct NetworkPrefix: Sendable, Hashable, CustomStringConvertible {
    /// 4 or 16 bytes in network order.
    package let bytes: [UInt8]
    /// How many leading bits count.
    package let bits: Int
    /// As the configuration file writes it.
    package let description: String

    /// Nil where the text is no address, the length is out of range, or bits beyond the length are set.
    package init?(_ text: String) {
        let parts = text.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
        guard let bytes = AddressBytes.parse(String(parts[0])) else { return nil }
        var bits = bytes.count * 8
        if parts.count == 2 {
            // Plain decimal digits: no sign, no space.
            guard !parts[1].isEmpty, parts[1].utf8.allSatisfy({ $0 >= 48 && $0 <= 57 }), let given = Int(parts[1]),
                given <= bits
            else { return nil }
            bits = given
        }
        for index in bytes.indices where bytes[index] & ~Self.mask(index, bits) != 0 { return nil }
        self.bytes = bytes
        self.bits = bits
        self.description = text
    }

    /// Whether an address of the same family lies in the network.
    package func contains(_ address: [UInt8]) -> Bool {
        guard address.count == bytes.count else { return false }
        return bytes.indices.allSatisfy { address[$0] & Self.mask($0, bits) == bytes[$0] }
    }

    private static func mask(_ index: Int, _ bits: Int) -> UInt8 {
        let left = bits - index * 8
        return left >= 8 ? 0xFF : left <= 0 ? 0 : ~UInt8(0) << UInt8(8 - left)
    }
}

/// IP addresses as bytes in network order.
package enum AddressBytes {
    /// The bytes of ::1.
    package static let loopback6: [UInt8] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]

    /// 4 or 16 bytes, or nil where the text is no IP address (brackets are not part of it).
    package static func parse(_ text: String) -> [UInt8]? {
        var four = in_addr()
        if inet_pton(AF_INET, text, &four) == 1 { return withUnsafeBytes(of: four) { Array($0) } }
        var six = in6_addr()
        if inet_pton(AF_INET6, text, &six) == 1 { return withUnsafeBytes(of: six) { Array($0) } }
        return nil
    }

    /// The IPv4 address inside an IPv4-mapped IPv6 address, else the address itself.
    package static func unmapped(_ address: [UInt8]) -> [UInt8] {
        guard address.count == 16, address[..<10].allSatisfy({ $0 == 0 }), address[10] == 255, address[11] == 255 else {
            return address
        }
        return Array(address[12...])
    }
}
