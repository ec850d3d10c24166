// An IPv4, IPv6 or unix socket address as a value, with the properties that access rules need.

package import Glibc

package struct SocketAddress: Sendable, Hashable, CustomStringConvertible {
    /// The bytes of the kernel's `sockaddr`.
    private let bytes: [UInt8]

    package init(_ pointer: UnsafePointer<sockaddr>, length: socklen_t) {
        bytes = Array(UnsafeRawBufferPointer(start: pointer, count: Int(length)))
    }

    /// The address of a unix socket; nil if the path is longer than the kernel accepts (107 bytes).
    package init?(unixPath path: String) {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        let capacity = MemoryLayout.size(ofValue: address.sun_path)
        let utf8 = Array(path.utf8)
        guard !utf8.isEmpty, utf8.count < capacity else { return nil }
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: utf8) }
        bytes = withUnsafeBytes(of: &address) { Array($0) }
    }

    /// Reads a numeric IPv4 or IPv6 address (without brackets); nil for anything else.
    package init?(numericHost host: String, port: UInt16) {
        var v4 = sockaddr_in()
        var v6 = sockaddr_in6()
        if inet_pton(AF_INET, host, &v4.sin_addr) == 1 {
            v4.sin_family = sa_family_t(AF_INET)
            v4.sin_port = port.bigEndian
            bytes = withUnsafeBytes(of: &v4) { Array($0) }
        } else if inet_pton(AF_INET6, host, &v6.sin6_addr) == 1 {
            v6.sin6_family = sa_family_t(AF_INET6)
            v6.sin6_port = port.bigEndian
            bytes = withUnsafeBytes(of: &v6) { Array($0) }
        } else {
            return nil
        }
    }

    package var family: Int32 {
        bytes.count < 2 ? AF_UNSPEC : bytes.withUnsafeBytes { Int32($0.loadUnaligned(as: sa_family_t.self)) }
    }

    package func withPointer<R>(_ body: (UnsafePointer<sockaddr>, socklen_t) -> R) -> R {
        var storage = sockaddr_storage()
        return withUnsafeMutablePointer(to: &storage) { pointer in
            let target = UnsafeMutableRawBufferPointer(start: pointer, count: MemoryLayout<sockaddr_storage>.size)
            let count = min(bytes.count, target.count)
            target.copyBytes(from: bytes.prefix(count))
            return pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { body($0, socklen_t(count)) }
        }
    }

    package var isUnix: Bool { family == AF_UNIX }

    /// The port of an IP address, zero for a unix socket.
    package var port: UInt16 {
        guard family == AF_INET || family == AF_INET6, bytes.count >= 4 else { return 0 }
        return UInt16(bytes[2]) << 8 | UInt16(bytes[3])
    }

    /// The bytes of the IP address: 4 or 16; an IPv4-mapped IPv6 address (`::ffff:1.2.3.4`) counts as IPv4.
    package var ipBytes: [UInt8] {
        switch family {
        case AF_INET where bytes.count >= 8: return Array(bytes[4..<8])
        case AF_INET6 where bytes.count >= 24:
            let address = Array(bytes[8..<24])
            let isMapped = address[0..<10].allSatisfy { $0 == 0 } && address[10] == 0xff && address[11] == 0xff
            return isMapped ? Array(address[12...]) : address
        default: return []
        }
    }

    /// Whether the address is in 127.0.0.0/8, is ::1, or is a unix socket.
    package var isLoopback: Bool {
        let ip = ipBytes
        if ip.count == 4 { return ip[0] == 127 }
        if ip.count == 16 { return ip[0..<15].allSatisfy { $0 == 0 } && ip[15] == 1 }
        return isUnix
    }

    /// Whether forward mode refuses the address unless a rule names it: loopback, private (RFC 1918, RFC 4193), shared
    /// (RFC 6598), link-local, unspecified, multicast and reserved addresses.
    package var isInternal: Bool {
        let ip = ipBytes
        if ip.count == 4 {
            switch (ip[0], ip[1]) {
            case (0, _), (10, _), (127, _), (224..., _): return true
            case (100, 64...127), (169, 254), (172, 16...31), (192, 168): return true
            case (192, 0) where ip[2] == 0: return true
            case (198, 18...19): return true
            default: return false
            }
        }
        guard ip.count == 16 else { return true }
        if ip[0] & 0xfe == 0xfc || ip[0] == 0xff { return true }
        if ip[0] == 0xfe, ip[1] & 0xc0 == 0x80 || ip[1] & 0xc0 == 0xc0 { return true }
        return Self.embedsIPv4(ip)
    }

    /// The prefixes of IPv6 addresses that contain an IPv4 address, to which a gateway or the kernel may send their
    /// packets.
    private static let embedding: [[UInt8]] = [
        // This is IPv4-compatible, ::/96 (RFC 4291 section 2.5.5.1), with the unspecified address and loopback.
        [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        // This is IPv4-translated, ::ffff:0:0:0/96 (RFC 2765 section 2.1).
        [0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0],
        // These are NAT64, 64:ff9b::/96 and 64:ff9b:1::/48 (RFC 6052, RFC 8215).
        [0, 0x64, 0xff, 0x9b],
        // This is 6to4, 2002::/16 (RFC 3056).
        [0x20, 0x02],
        // This is Teredo, 2001::/32 (RFC 4380).
        [0x20, 0x01, 0, 0],
    ]

    private static func embedsIPv4(_ ip: [UInt8]) -> Bool { embedding.contains { ip.starts(with: $0) } }

    /// The numeric host without a port: `127.0.0.1`, `::1`, or the path of a unix socket.
    package var host: String {
        if isUnix {
            let path = bytes.dropFirst(2).prefix { $0 != 0 }
            return path.isEmpty ? "unix" : String(decoding: path, as: UTF8.self)
        }
        var text = [CChar](repeating: 0, count: Int(NI_MAXHOST))
        let status = withPointer { getnameinfo($0, $1, &text, socklen_t(text.count), nil, 0, NI_NUMERICHOST) }
        guard status == 0 else { return "?" }
        return String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    package var description: String {
        if isUnix { return "unix:\(host)" }
        return family == AF_INET6 ? "[\(host)]:\(port)" : "\(host):\(port)"
    }
}
