// Where requests went last: what their URLs have in common, worked out once.

import EventLoop
import HTTPWire

/// A scheme and an authority with the proxy on the way there, and what becomes of them; loop-bound.
final class Origin {
    /// The bytes of a URL up to its path, as the request has them.
    let root: [UInt8]
    /// A URL there, without its target.
    let url: UpstreamURL
    /// Nil: it is connected to without one.
    let proxy: UpstreamProxy?
    /// Where its connections lead: to the proxy, if there is one.
    let key: ResolverKey
    let isTLS: Bool
    /// The host of `key` is an IP address in any notation.
    let isNumeric: Bool
    /// That address; empty for a name.
    let addresses: [SocketAddress]
    /// libcurl is told the addresses of a name: of the origin's, or of one that stands for the proxy.
    var isPinned: Bool { !isNumeric || proxy != nil }
    /// The origin's own address; nil where its host is a name.
    let ownAddress: SocketAddress?
    /// Host and port, and the proxy on the way there, as errors name them.
    let name: String
    /// The value of a Host field for it.
    let hostField: String
    /// The host as a URL has it: a numeric one as its address, a name without the root's dot.
    let connectName: String
    /// What its carrier keeps with it, once there has been one: a place is always carried by the same one, which sets
    /// and reads this.
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
        name = UpstreamURL.place(url.host, url.port, proxy)
        let numeric = ownAddress.map { $0.host.utf8.contains(UInt8(ascii: ":")) ? "[\($0.host)]" : $0.host }
        hostField = url.hostField(numericHost: numeric)
        connectName = url.name(numericHost: numeric)
    }
}

/// The last few places; loop-bound.
struct UpstreamPlaces {
    private static let limit = 16
    private var places: [Origin] = []
    /// The last scheme and authority that came apart from their path.
    private var last: (root: String, place: Origin)?

    /// The request target, and the origin of the URL.
    /// - Parameter proxy: the one that its requests go through.
    /// - Throws: `.request` if the URL is not acceptable.
    mutating func find(
        _ root: String,
        _ path: String,
        method: Method,
        proxy: UpstreamProxy?
    ) throws(UpstreamError) -> (target: String, place: Origin) {
        if let last, last.root == root, last.place.proxy == proxy, UpstreamURL.isTarget(path) {
            return (path, last.place)
        }
        let found = try find(path.isEmpty ? root : root + path, method: method, proxy: proxy)
        // Otherwise `root` contains a part of the path.
        if found.place.root.count == root.utf8.count { last = (root, found.place) }
        return found
    }

    private mutating func find(
        _ text: String,
        method: Method,
        proxy: UpstreamProxy?
    ) throws(UpstreamError) -> (target: String, place: Origin) {
        var text = text
        let length = text.withUTF8 { Self.rootLength($0) }
        let known = places.first { place in
            guard place.proxy == proxy else { return false }
            return text.withUTF8 { place.root.count == length && $0[..<length].elementsEqual(place.root) }
        }
        if let known, let target = text.withUTF8({ UpstreamURL.target($0[length...], method: method) }) {
            return (target, known)
        }
        let url = try UpstreamURL.parse(text, method: method)
        let place = Origin(root: text.withUTF8 { Array($0[..<length]) }, url, proxy: proxy)
        if places.count == Self.limit { places.removeFirst() }
        places.append(place)
        return (url.target, place)
    }

    /// The length of scheme and authority; undefined if it is no URL.
    private static func rootLength(_ bytes: UnsafeBufferPointer<UInt8>) -> Int {
        // Behind the two slashes of the scheme.
        var end = min(8, bytes.count)
        while end < bytes.count, bytes[end] != UInt8(ascii: "/"), bytes[end] != UInt8(ascii: "?") { end += 1 }
        return end
    }
}
