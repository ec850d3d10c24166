// One cookie, as a program sees it.

public import FoundationEssentials

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
    /// Until when it is there; nil: until the manager closes.
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
