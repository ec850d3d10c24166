// The origin of a request: its URL, parsed, and the properties that all URLs of one origin share, computed once.

import EventLoop
import HTTPWire

/// A scheme and an authority, with the proxy on the way there and the properties that follow; loop-bound.
final class Origin {
    /// The bytes of a URL up to its path, as the request has them.
    let root: [UInt8]
    /// A URL of the origin, without a target.
    let url: UpstreamURL
    /// The proxy on the way to the origin; nil if there is none.
    let proxy: UpstreamProxy?
    /// The host and port that connections lead to: the proxy's, if there is one.
    let key: ResolverKey
    let isTLS: Bool
    /// Whether the host of `key` is an IP address in any notation.
    let isNumeric: Bool
    /// The address of a numeric host; empty for a name.
    let addresses: [SocketAddress]
    /// Whether libcurl is given the addresses of a name: the origin's, or an alias for the proxy's.
    var isPinned: Bool { !isNumeric || proxy != nil }
    /// The origin's own address; nil if its host is a name.
    let ownAddress: SocketAddress?
    /// Host and port, and the proxy on the way there, as errors name them.
    let name: String
    /// The value of a Host field for the origin.
    let hostField: String
    /// The host as a URL has it: a numeric one as its address, a name without the dot of the root.
    let connectName: String
    /// An object of the origin's carrier, which sets and reads it; nil before the first transfer. An origin always has
    /// the same carrier.
    var carried: AnyObject?

    init(root: [UInt8], _ url: UpstreamURL, proxy: UpstreamProxy? = nil) {
        self.root = root
        self.url = url
        self.proxy = proxy
        isTLS = url.isTLS
        let own = ResolverKey(host: url.host, port: url.port)
        key = proxy.map { ResolverKey(host: $0.host, port: $0.port) } ?? own
        ownAddress = SystemResolver.numeric(own.host, port: own.port)
        let address = proxy == nil ? ownAddress : SystemResolver.numeric(key.host, port: key.port)
        addresses = address.map { [$0] } ?? []
        isNumeric = address != nil
        name = UpstreamURL.destinationName(url.host, url.port, proxy)
        let numeric = ownAddress.map { $0.host.utf8.contains(UInt8(ascii: ":")) ? "[\($0.host)]" : $0.host }
        hostField = url.hostField(numericHost: numeric)
        connectName = url.name(numericHost: numeric)
    }
}

/// The origins that were used last; loop-bound.
struct RecentOrigins {
    private static let limit = 16
    private var origins: [Origin] = []
    /// The scheme and authority that were looked up last, and their origin.
    private var last: (root: String, origin: Origin)?

    /// The request target, and the origin of the URL.
    /// - Parameter proxy: the proxy that its requests go through.
    /// - Throws: `.request` if the URL is not acceptable.
    mutating func find(
        _ root: String,
        _ path: String,
        method: Method,
        proxy: UpstreamProxy?
    ) throws(UpstreamError) -> (target: String, origin: Origin) {
        if let last, last.root == root, last.origin.proxy == proxy, UpstreamURL.isTarget(path) {
            return (path, last.origin)
        }
        let found = try find(path.isEmpty ? root : root + path, method: method, proxy: proxy)
        // Otherwise `root` contains a part of the path.
        if found.origin.root.count == root.utf8.count { last = (root, found.origin) }
        return found
    }

    private mutating func find(
        _ text: String,
        method: Method,
        proxy: UpstreamProxy?
    ) throws(UpstreamError) -> (target: String, origin: Origin) {
        var text = text
        let length = text.withUTF8 { Self.rootLength($0) }
        let known = origins.first { origin in
            guard origin.proxy == proxy else { return false }
            return text.withUTF8 { origin.root.count == length && $0[..<length].elementsEqual(origin.root) }
        }
        if let known, let target = text.withUTF8({ UpstreamURL.target($0[length...], method: method) }) {
            return (target, known)
        }
        let url = try UpstreamURL.parse(text, method: method)
        let origin = Origin(root: text.withUTF8 { Array($0[..<length]) }, url, proxy: proxy)
        if origins.count == Self.limit { origins.removeFirst() }
        origins.append(origin)
        return (url.target, origin)
    }

    /// The length of scheme and authority; undefined if it is no URL.
    private static func rootLength(_ bytes: UnsafeBufferPointer<UInt8>) -> Int {
        // The search starts behind the two slashes of the scheme.
        var end = min(8, bytes.count)
        while end < bytes.count, bytes[end] != UInt8(ascii: "/"), bytes[end] != UInt8(ascii: "?") { end += 1 }
        return end
    }
}

// MARK: - The URL of a request

/// A parsed absolute URL: where to connect, and the request target byte for byte.
struct UpstreamURL: Equatable {
    let isTLS: Bool
    /// The host in lower case; an IPv6 address keeps its brackets.
    let host: String
    let port: UInt16
    /// The request target.
    let target: String

    /// Host and port as messages name them.
    var authority: String { "\(host):\(port)" }

    /// Host and port as messages name them, with the proxy on the way there.
    static func destinationName(_ host: String, _ port: UInt16, _ proxy: UpstreamProxy?) -> String {
        "\(host):\(port)" + (proxy.map { " through the proxy \($0.authority)" } ?? "")
    }

    /// The value of a Host field for the URL, without the zone of an address (RFC 6874 section 4).
    func hostField(numericHost: String?) -> String {
        var name = name(numericHost: numericHost)
        if let zone = name.firstIndex(of: "%") { name = name[..<zone] + "]" }
        return port == (isTLS ? 443 : 80) ? name : "\(name):\(port)"
    }

    /// The host as a URL has it, a name without the dot of the root.
    /// - Parameter numericHost: the address if the host is one in an unusual notation.
    func name(numericHost: String?) -> String {
        numericHost ?? (host.utf8.last == UInt8(ascii: ".") ? String(host.dropLast()) : host)
    }

    static func parse(_ url: String, method: Method) throws(UpstreamError) -> UpstreamURL {
        let bytes = url.utf8
        let isTLS: Bool
        let start: String.Index
        if hasPrefix(bytes, "http://") {
            (isTLS, start) = (false, bytes.index(bytes.startIndex, offsetBy: 7))
        } else if hasPrefix(bytes, "https://") {
            (isTLS, start) = (true, bytes.index(bytes.startIndex, offsetBy: 8))
        } else {
            throw refuse(url, "begin it with http:// or https://")
        }
        let rest = bytes[start...]
        let end = rest.firstIndex { $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: "?") } ?? bytes.endIndex
        guard let authority = Authority.parse(String(url[start..<end])) else {
            throw refuse(url, "name a host, or host:port, without a user")
        }
        // The root of all names is not a host, and without its dot nothing would be left.
        guard authority.host != "." else { throw refuse(url, "name a host") }
        guard authority.port != 0 else { throw refuse(url, "port 0 is none") }
        var suffix = String(url[end...])
        guard let target = suffix.withUTF8({ target($0[...], method: method) }) else {
            throw refuse(url, "percent-encode what is not visible ASCII, and leave the fragment out")
        }
        return UpstreamURL(
            isTLS: isTLS,
            host: authority.host,
            port: authority.port ?? (isTLS ? 443 : 80),
            target: target
        )
    }

    /// The request target for the part after the authority; nil if that has other bytes than visible ASCII.
    static func target(_ suffix: Slice<UnsafeBufferPointer<UInt8>>, method: Method) -> String? {
        // OPTIONS for a URL without a path asks about the server as a whole (RFC 9112 section 3.2.4).
        guard let first = suffix.first else { return method == .options ? "*" : "/" }
        for byte in suffix where !(0x21...0x7E).contains(byte) || byte == UInt8(ascii: "#") { return nil }
        let text = String(decoding: suffix, as: UTF8.self)
        return first == UInt8(ascii: "/") ? text : "/" + text
    }

    /// Whether a path can be the request target unchanged: it begins with a slash and has only visible ASCII.
    static func isTarget(_ path: String) -> Bool {
        var path = path
        return path.withUTF8 { bytes in
            bytes.first == UInt8(ascii: "/")
                && bytes.allSatisfy { (0x21...0x7E).contains($0) && $0 != UInt8(ascii: "#") }
        }
    }

    private static func hasPrefix(_ bytes: String.UTF8View, _ scheme: StaticString) -> Bool {
        guard bytes.count > scheme.utf8CodeUnitCount else { return false }
        for (position, byte) in bytes.prefix(scheme.utf8CodeUnitCount).enumerated() {
            let folded = (0x41...0x5A).contains(byte) ? byte | 0x20 : byte
            if folded != scheme.utf8Start[position] { return false }
        }
        return true
    }

    private static func refuse(_ url: String, _ advice: String) -> UpstreamError {
        // The query is left out of the message, since it may hold secrets.
        UpstreamError(.request, detail: "cannot ask for \(url.prefix { $0 != "?" }): \(advice)")
    }
}
