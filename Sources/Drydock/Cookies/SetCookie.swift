// Set-Cookie as a cookie (RFC 6265 sections 5.2 and 5.3).

import FoundationEssentials
import HTTPWire
import ServiceCore

/// Reads what an origin sets.
enum SetCookie {
    /// The cookie that a line sets.
    /// - Parameters:
    ///   - line: the value of one Set-Cookie.
    ///   - origin: whose answer it is.
    ///   - target: path and query of the request.
    ///   - now: Unix seconds.
    /// - Returns: nil where the line is none, or sets one that this origin may not set. One whose time is over removes
    ///   the cookie that is there.
    static func cookie(_ line: String, from origin: OriginAddress, target: String, now: Int64) -> Cookie? {
        guard line.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F || $0 == 0x09 }) else { return nil }
        var parts = line.split(separator: ";", omittingEmptySubsequences: false)
        let pair = parts.removeFirst()
        guard let equals = pair.firstIndex(of: "=") else { return nil }
        var cookie = Cookie(
            name: trimmed(pair[..<equals]),
            value: trimmed(pair[pair.index(after: equals)...]),
            domain: origin.host,
            path: defaultPath(target)
        )
        var (hasDomain, hasPath) = (false, false)
        var (maxAge, expires): (Int64?, Int64?) = (nil, nil)
        for part in parts {
            let sides = part.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            let value = sides.count == 2 ? trimmed(sides[1]) : ""
            // Of an attribute that is there twice, the last counts.
            switch trimmed(sides[0]).lowercased() {
            case "domain" where !value.isEmpty:
                let name = value.lowercased()
                cookie.domain = name.hasPrefix(".") ? String(name.dropFirst()) : name
                hasDomain = true
            case "path":
                hasPath = value.hasPrefix("/")
                cookie.path = hasPath ? value : defaultPath(target)
            case "max-age": maxAge = seconds(value) ?? maxAge
            case "expires": expires = CookieDate.parse(value) ?? expires
            case "secure": cookie.isSecure = true
            case "httponly": cookie.isHTTPOnly = true
            default: break
            }
        }
        // Max-Age wins (section 5.3).
        let end = maxAge.map { $0 <= 0 ? 0 : now + min($0, longestLife) } ?? expires.map { min($0, now + longestLife) }
        cookie.expires = end.map { Date(timeIntervalSince1970: Double($0)) }
        if hasDomain, cookie.domain != origin.host {
            guard mayBeSet(for: cookie.domain, by: origin.host) else { return nil }
            cookie.isHostOnly = false
        } else {
            cookie.isHostOnly = !hasDomain || isAddress(origin.host)
        }
        return cookie.isSound && isAllowed(cookie, origin, hasPath: hasPath) ? cookie : nil
    }

    /// 400 days: what is set for longer is set anew before.
    private static let longestLife: Int64 = 400 * 86_400

    /// `Secure` is for `https` to set, and so are the prefixes that promise it.
    private static func isAllowed(_ cookie: Cookie, _ origin: OriginAddress, hasPath: Bool) -> Bool {
        if cookie.isSecure, origin.scheme != "https" { return false }
        let name = cookie.name.lowercased()
        if name.hasPrefix("__secure-") { return cookie.isSecure }
        if name.hasPrefix("__host-") { return cookie.isSecure && cookie.isHostOnly && hasPath && cookie.path == "/" }
        return true
    }

    /// Whether a host may set cookies for a domain above it: not for a name of one label, such as `com`, nor for `com.`,
    /// which is the same name where the host is written with the dot of the root.
    private static func mayBeSet(for domain: String, by host: String) -> Bool {
        matches(host, domain) && domain.split(separator: ".").count > 1
    }

    /// Section 5.1.3.
    static func matches(_ host: String, _ domain: String) -> Bool {
        host == domain || host.hasSuffix(".\(domain)") && !isAddress(host)
    }

    private static func isAddress(_ host: String) -> Bool {
        host.hasPrefix("[") || host.utf8.allSatisfy { $0 == UInt8(ascii: ".") || (0x30...0x39).contains($0) }
    }

    /// Section 5.1.4: what is before the last slash of the path.
    static func defaultPath(_ target: String) -> String {
        let path = target.prefix { $0 != "?" }
        guard path.hasPrefix("/"), let slash = path.lastIndex(of: "/"), slash != path.startIndex else { return "/" }
        return String(path[..<slash])
    }

    /// Whether a cookie without `Secure` would be sent in the place of one with it, or before it, so that an origin that
    /// is not `https` must not set it (6265bis section 5.7).
    static func overlays(_ cookie: Cookie, _ held: Cookie) -> Bool {
        held.isSecure && !cookie.isSecure && held.name == cookie.name && covers(held.path, cookie.path)
            && (matches(held.domain, cookie.domain) || matches(cookie.domain, held.domain))
    }

    /// Section 5.1.4: whether the path of a request is below that of a cookie.
    static func covers(_ path: String, _ target: String) -> Bool {
        let asked = target.prefix { $0 != "?" }
        guard asked.hasPrefix(path) else { return false }
        return asked.utf8.count == path.utf8.count || path.hasSuffix("/") || asked.dropFirst(path.count).first == "/"
    }

    /// Whole seconds, perhaps negative; nil for anything else.
    private static func seconds(_ text: String) -> Int64? {
        let digits = text.hasPrefix("-") ? text.dropFirst() : Substring(text)
        guard !digits.isEmpty, digits.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
        return Int64(text) ?? (text.hasPrefix("-") ? 0 : longestLife)
    }

    static func trimmed(_ text: some StringProtocol) -> String {
        let isSpace: (Character) -> Bool = { $0 == " " || $0 == "\t" }
        let start = text.drop(while: isSpace)
        return String(start.reversed().drop(while: isSpace).reversed())
    }
}
