// The URL of an endpoint: base, filled path, and the query with what whoever asks adds to it.

import Content
import FoundationEssentials
import HTTPWire

/// Where a request goes.
struct EndpointTarget {
    /// An absolute URL, without user.
    let text: String
    /// For an Authorization field: `user:password` of the URL, in Base64; nil where it has none.
    let credentials: String?

    /// - Parameters:
    ///   - base: what a path is appended to.
    ///   - defaults: items of a query; those whose name the endpoint has itself are left out.
    /// - Throws: `ServiceError.missingParameter`, `.invalidRequest`.
    init(_ endpoint: Endpoint, base: URL?, defaults: Parameters) throws(ServiceError) {
        let location = endpoint.location.prefix { $0 != "#" }
        let own = location.prefix { $0 != "?" }
        var place = try PathTemplate(own).filled(from: endpoint.pathParameters)
        var queries = [location.dropFirst(own.count).dropFirst()]
        if !Self.isWhole(place) {
            guard let base else {
                throw .invalidRequest("'\(endpoint.location)' is a path, and there is no base URL: set one")
            }
            let whole = base.absoluteString.prefix { $0 != "#" }
            let root = whole.prefix { $0 != "?" }
            queries.insert(whole.dropFirst(root.count).dropFirst(), at: 0)
            place = Self.join(String(root), place)
        }
        let encoding = endpoint.queryEncoding
        let named = Set(
            queries.flatMap { $0.split(separator: "&") }.map { item in
                String(decoding: PercentEncoding.decode(form: item.prefix { $0 != "=" }.utf8), as: UTF8.self)
            }
        ).union(endpoint.query.names)
        let texts =
            queries.map { String($0) } + [encoding.text(endpoint.query)]
            + [encoding.text(defaults.filter { !named.contains($0) })]
        let query = texts.filter { !$0.isEmpty }.joined(separator: "&")
        let (open, user) = Self.withoutUser(place)
        let written = query.isEmpty ? open : open + "?" + query
        guard let url = URL(string: written), url.scheme != nil else {
            throw .invalidRequest("'\(open.withoutUser)' is no URL: percent-encode it")
        }
        text = url.absoluteString
        credentials = user
    }

    /// Whether a place begins with a scheme (RFC 3986 section 3.1): a path may have `://` further behind.
    private static func isWhole(_ place: String) -> Bool {
        guard let mark = place.firstRange(of: "://"), let first = place.utf8.first, isLetter(first) else {
            return false
        }
        return place[..<mark.lowerBound].utf8.allSatisfy { byte in
            isLetter(byte) || (0x30...0x39).contains(byte) || "+-.".utf8.contains(byte)
        }
    }

    private static func isLetter(_ byte: UInt8) -> Bool { (0x61...0x7A).contains(byte | 0x20) }

    /// A path is appended, whether one of both has the slash or not.
    private static func join(_ root: String, _ path: String) -> String {
        if path.isEmpty { return root }
        return (root.hasSuffix("/") ? String(root.dropLast()) : root) + (path.hasPrefix("/") ? path : "/" + path)
    }

    /// A URL without its user, whom no request has in its target.
    private static func withoutUser(_ text: String) -> (text: String, credentials: String?) {
        guard let colon = text.firstRange(of: "://") else { return (text, nil) }
        let rest = text[colon.upperBound...]
        let authority = rest.prefix { $0 != "/" }
        guard let mark = authority.lastIndex(of: "@") else { return (text, nil) }
        let user = PercentEncoding.decode(authority[..<mark].utf8)
        let pair = user.contains(UInt8(ascii: ":")) ? user : user + [UInt8(ascii: ":")]
        return (String(text[..<colon.upperBound] + rest[authority.index(after: mark)...]), Base64.encode(pair))
    }
}
