// Which proxy the requests to an origin go through.

import EventLoop
import HTTPWire

/// The setting of a service, or of forward mode.
package enum UpstreamProxies: Sendable, Hashable {
    /// Origins are connected to without a proxy.
    case none
    /// All go through one.
    case one(UpstreamProxy)
    /// One for each scheme of an origin, but for the hosts that are excepted.
    case byScheme(http: UpstreamProxy?, https: UpstreamProxy?, except: ProxyExceptions)

    /// The proxy for an origin; nil: none.
    /// - Parameters:
    ///   - scheme: `http` or `https`.
    ///   - host: in lower case, an IPv6 address in brackets.
    package func proxy(scheme: String, host: String, port: UInt16) -> UpstreamProxy? {
        switch self {
        case .none: return nil
        case .one(let proxy): return proxy
        case .byScheme(let http, let https, let exceptions):
            guard let proxy = scheme == "https" ? https : http else { return nil }
            return exceptions.contain(host, port: port) ? nil : proxy
        }
    }
}

/// The hosts of `no_proxy`, by the rules of curl: a name stands for itself and all names below it, with or without a
/// dot in front; an address stands for itself, and with a prefix length for a network; `*` alone stands for all.
/// Unlike for curl, `HOST:PORT` stands for that port alone.
package struct ProxyExceptions: Sendable, Hashable {
    private enum Rule: Hashable {
        /// In lower case, without dots around it.
        case name(String)
        case network([UInt8], length: Int)
    }

    private struct Entry: Hashable {
        let rule: Rule
        let port: UInt16?
    }

    private let isAll: Bool
    private let entries: [Entry]

    /// - Parameter list: entries with commas or blanks between them, such as `localhost,.example.com,10.0.0.0/8`.
    package init(_ list: String) {
        isAll = list == "*"
        entries = list.lowercased().split { $0 == "," || $0 == " " || $0 == "\t" }.compactMap { Self.entry($0) }
    }

    /// - Parameter host: in lower case, an IPv6 address in brackets.
    package func contain(_ host: String, port: UInt16) -> Bool {
        if isAll { return true }
        if entries.isEmpty { return false }
        let key = ResolverKey(host: host, port: port)
        let address = SystemResolver.numeric(key.host, port: port)?.ipBytes
        let name = key.host.hasSuffix(".") ? String(key.host.dropLast()) : key.host
        return entries.contains { entry in
            guard entry.port == nil || entry.port == port else { return false }
            switch (entry.rule, address) {
            case (.network(let network, let length), let address?):
                return Self.isEqual(network, address, bits: length)
            case (.name(let suffix), nil): return name == suffix || name.hasSuffix("." + suffix)
            default: return false
            }
        }
    }

    private static func entry(_ text: Substring) -> Entry? {
        if let rule = network(text) { return Entry(rule: rule, port: nil) }
        var host = text
        var port: UInt16?
        if let colon = text.lastIndex(of: ":"), let number = UInt16(text[text.index(after: colon)...]) {
            (host, port) = (text[..<colon], number)
        }
        if let rule = network(host) { return Entry(rule: rule, port: port) }
        if host.hasSuffix(".") { host = host.dropLast() }
        if host.hasPrefix(".") { host = host.dropFirst() }
        return host.isEmpty ? nil : Entry(rule: .name(String(host)), port: port)
    }

    /// `10.0.0.1`, `10.0.0.0/8`, `::1`, `[::1]` or `fd00::/8`.
    private static func network(_ text: Substring) -> Rule? {
        let isBracketed = text.hasPrefix("[") && text.hasSuffix("]")
        let bare = isBracketed ? text.dropFirst().dropLast() : text
        let parts = bare.split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count <= 2, let bytes = SocketAddress(numericHost: String(parts[0]), port: 0)?.ipBytes else {
            return nil
        }
        guard parts.count == 2 else { return .network(bytes, length: bytes.count * 8) }
        guard let length = Int(parts[1]), (0...bytes.count * 8).contains(length) else { return nil }
        return .network(bytes, length: length)
    }

    private static func isEqual(_ one: [UInt8], _ other: [UInt8], bits: Int) -> Bool {
        guard one.count == other.count else { return false }
        return one.indices.allSatisfy { index in
            let left = min(max(bits - index * 8, 0), 8)
            let mask = UInt8(truncatingIfNeeded: 0xFF00 >> left)
            return one[index] & mask == other[index] & mask
        }
    }
}
