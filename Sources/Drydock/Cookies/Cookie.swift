// One cookie, as a program sees it, and as it is read from Set-Cookie (RFC 6265 section 5).

public import FoundationEssentials
import HTTPWire
import ServiceCore

/// A cookie of an origin (RFC 6265).
public struct Cookie: Sendable, Hashable {
    /// Its name.
    public var name: String
    /// Its value, as it is sent.
    public var value: String
    /// The host that gets it, in lower case, without a dot before it.
    public var domain: String
    /// Paths that begin with this get it.
    public var path: String
    /// The time at which it ends; nil if it ends when the manager closes.
    public var expires: Date?
    /// Whether only ``domain`` itself gets it; else every host below it does, too.
    public var isHostOnly: Bool
    /// Whether it is sent over `https` alone.
    public var isSecure: Bool
    /// Whether the origin wants it kept from scripts. Nothing here depends on it.
    public var isHTTPOnly: Bool

    /// A cookie with these properties.
    public init(
        name: String,
        value: String,
        domain: String,
        path: String = "/",
        expires: Date? = nil,
        isHostOnly: Bool = true,
        isSecure: Bool = false,
        isHTTPOnly: Bool = false
    ) {
        self.name = name
        self.value = value
        self.domain = domain
        self.path = path
        self.expires = expires
        self.isHostOnly = isHostOnly
        self.isSecure = isSecure
        self.isHTTPOnly = isHTTPOnly
    }
}

extension Cookie: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// Without the value, which may be a secret.
    public var description: String { "\(name) of \(domain)\(path)" }

    /// Without the value.
    public var debugDescription: String { description }

    /// Without the value.
    public var customMirror: Mirror { Mirror(self, children: ["name": name, "domain": domain, "path": path]) }
}

extension Cookie {
    /// Bytes that it takes.
    var size: Int { name.utf8.count + value.utf8.count + domain.utf8.count + path.utf8.count }

    /// Unix seconds, rounded down; nil: it ends with the manager.
    var expiry: Int64? {
        expires.map { date in
            let seconds = date.timeIntervalSince1970.rounded(.down)
            return seconds.isNaN ? 0 : Int64(max(-1e15, min(1e15, seconds)))
        }
    }

    /// Whether it can be sent: what is in it neither ends a field nor a cookie.
    var isSound: Bool {
        !name.isEmpty && !domain.isEmpty && path.hasPrefix("/") && size <= CookieJar.longest
            && [name, value, path].allSatisfy { text in
                text.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F && $0 != UInt8(ascii: ";") }
            }
            && !name.contains("=") && name == SetCookie.trimmed(name) && value == SetCookie.trimmed(value)
    }
}

// MARK: - Set-Cookie

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

// MARK: - Dates

enum CookieDate {
    private static let months = [
        "jan": 1, "feb": 2, "mar": 3, "apr": 4, "may": 5, "jun": 6, "jul": 7, "aug": 8, "sep": 9, "oct": 10, "nov": 11,
        "dec": 12,
    ]

    /// Seconds since 1970; nil for what is no date.
    static func parse(_ text: String) -> Int64? {
        var time: (Int, Int, Int)?
        var (day, month, year): (Int?, Int?, Int?)
        for token in text.utf8.split(whereSeparator: isDelimiter) {
            if time == nil, let found = Self.time(token) {
                time = found
            } else if day == nil, let found = number(token, 1...2) {
                day = found
            } else if month == nil, let found = months[String(decoding: token.prefix(3), as: UTF8.self).lowercased()] {
                month = found
            } else if year == nil, let found = number(token, 2...4) {
                year = found
            }
        }
        guard let time, let day, let month, var year else { return nil }
        if year < 70 { year += 2000 } else if year < 100 { year += 1900 }
        guard (1...31).contains(day), year >= 1601, time.0 < 24, time.1 < 60, time.2 < 60 else { return nil }
        return seconds(year, month, day, time)
    }

    private static func seconds(_ year: Int, _ month: Int, _ day: Int, _ time: (Int, Int, Int)) -> Int64? {
        let names = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
        let clock = [time.0, time.1, time.2].map(padded).joined(separator: ":")
        // The day's name is not compared with the date.
        return HTTPDate.parse("Thu, \(padded(day)) \(names[month - 1]) \(year) \(clock) GMT", now: 0)
    }

    private static func padded(_ number: Int) -> String { number < 10 ? "0\(number)" : "\(number)" }

    private static func isDelimiter(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x09, 0x20...0x2F, 0x3B...0x40, 0x5B...0x60, 0x7B...0x7E: true
        default: false
        }
    }

    /// The digits at the beginning of a token, where there are so many and no more.
    private static func number(_ token: Substring.UTF8View, _ count: ClosedRange<Int>) -> Int? {
        let digits = token.prefix { (0x30...0x39).contains($0) }
        guard count.contains(digits.count) else { return nil }
        return Int(String(decoding: digits, as: UTF8.self))
    }

    private static func time(_ token: Substring.UTF8View) -> (Int, Int, Int)? {
        let parts = token.split(separator: UInt8(ascii: ":"), maxSplits: 2, omittingEmptySubsequences: false)
        guard parts.count == 3, parts.prefix(2).allSatisfy({ $0.allSatisfy { (0x30...0x39).contains($0) } }),
            let hour = number(parts[0], 1...2), let minute = number(parts[1], 1...2),
            let second = number(parts[2], 1...2)
        else { return nil }
        return (hour, minute, second)
    }
}
