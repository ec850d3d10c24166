// The system's resolver: getaddrinfo as a blocking call, and numeric addresses without it.

// For SOCK_STREAM: an optimised build takes CLibcurl for the owner of the socket types that curl.h includes.
import CLibcurl
package import EventLoop
import Glibc

package enum SystemResolver {
    // GNU's EAI_NODATA and EAI_ADDRFAMILY, which Swift does not see.
    private static let noData: Int32 = -5
    private static let noAddressOfFamily: Int32 = -9

    /// The addresses of a host for TCP; blocks until the name servers have answered.
    package static func lookup(_ host: String, port: UInt16) -> ResolverAnswer { ask(host, port: port, flags: 0) }

    /// The address that a numeric host is, in every spelling that the system takes (`127.0.0.1`, `0x7f.1`, `::1`,
    /// `fe80::1%eth0`); nil for a name. Does not block.
    package static func numeric(_ host: String, port: UInt16) -> SocketAddress? {
        // A proxy may take the root's dot behind an address for nothing.
        if host.hasSuffix(".") { return numeric(String(host.dropLast()), port: port) }
        if let address = SocketAddress(numericHost: host, port: port) { return address }
        // A name has a letter beyond the hexadecimal ones, mostly: this spares getaddrinfo on the usual way.
        let isPlainName = host.utf8.contains { byte in
            let letter = byte | 0x20
            return (0x67...0x7A).contains(letter) && letter != UInt8(ascii: "x")
        }
        if isPlainName, !host.utf8.contains(UInt8(ascii: ":")) { return nil }
        guard case .addresses(let addresses) = ask(host, port: port, flags: AI_NUMERICHOST) else { return nil }
        return addresses.first
    }

    private static func ask(_ host: String, port: UInt16, flags: Int32) -> ResolverAnswer {
        var hints = addrinfo()
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        hints.ai_flags = flags | AI_NUMERICSERV
        var list: UnsafeMutablePointer<addrinfo>?
        let status = getaddrinfo(host, String(port), &hints, &list)
        guard status == 0 else {
            switch status {
            case EAI_NONAME, noData, noAddressOfFamily: return .notFound
            case EAI_SYSTEM: return .failed(String(cString: strerror(errno)))
            default: return .failed(String(cString: gai_strerror(status)))
            }
        }
        defer { freeaddrinfo(list) }
        var addresses: [SocketAddress] = []
        var next = list
        while let entry = next {
            if let address = entry.pointee.ai_addr {
                let found = SocketAddress(address, length: entry.pointee.ai_addrlen)
                if !addresses.contains(found) { addresses.append(found) }
            }
            next = entry.pointee.ai_next
        }
        return .addresses(addresses)
    }
}
