// A parsed absolute URL: where to connect, and the request target byte for byte.

import HTTPWire

struct UpstreamURL: Equatable {
    let isTLS: Bool
    /// Lower case; an IPv6 address keeps its brackets.
    let host: String
    let port: UInt16
    /// The request target.
    let target: String

    /// For messages.
    var place: String { "\(host):\(port)" }

    /// The same, with the proxy on the way there.
    static func place(_ host: String, _ port: UInt16, _ proxy: UpstreamProxy?) -> String {
        "\(host):\(port)" + (proxy.map { " through the proxy \($0.place)" } ?? "")
    }

    /// The value of a Host field for it, without the zone of an address (RFC 6874 section 4).
    func hostField(numericHost: String?) -> String {
        var name = name(numericHost: numericHost)
        if let zone = name.firstIndex(of: "%") { name = name[..<zone] + "]" }
        return port == (isTLS ? 443 : 80) ? name : "\(name):\(port)"
    }

    /// The host as a URL has it, a name without the root's dot.
    /// - Parameter numericHost: the address where the host is one in an odd spelling.
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
        // The root of all names is no host, and nothing is left of it without its dot.
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
        // RFC 9112 section 3.2.4: OPTIONS for a URL without a path asks about the server as a whole.
        guard let first = suffix.first else { return method == .options ? "*" : "/" }
        for byte in suffix where !(0x21...0x7E).contains(byte) || byte == UInt8(ascii: "#") { return nil }
        let text = String(decoding: suffix, as: UTF8.self)
        return first == UInt8(ascii: "/") ? text : "/" + text
    }

    /// Whether a path goes into the request line as it is: it begins with a slash and holds nothing but visible ASCII.
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
        // A query may hold secrets.
        UpstreamError(.request, detail: "cannot ask for \(url.prefix { $0 != "?" }): \(advice)")
    }
}
