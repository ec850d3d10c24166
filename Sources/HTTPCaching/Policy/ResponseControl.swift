// The directives that govern a response: those of the first usable targeted field (RFC 9213 section 2.2), or else of
// Cache-Control.

package import HTTPWire

/// The directives that count for a response under a policy.
package struct ResponseControl: Sendable, Equatable {
    package var directives: CacheControl
    /// The targeted field that replaced Cache-Control and Expires, as configured; nil if Cache-Control counts.
    package var targetedField: String?
    /// True if the policy is that of a shared cache.
    private let isShared: Bool

    package init(_ fields: borrowing Fields, policy: borrowing CachePolicy) {
        isShared = policy.isShared
        for name in policy.targetedFields {
            if let targeted = CacheControl(targeted: fields.values(named: name)) {
                directives = targeted
                targetedField = name
                settle()
                return
            }
        }
        directives = CacheControl(fields)
        targetedField = nil
        settle()
    }

    private mutating func settle() {
        if !isShared { directives.dropShared() }
        widenProtectedNames()
    }

    /// True if the response has a `no-store` that counts: `must-understand` beside it lifts it (RFC 9111 section
    /// 5.2.2.3).
    var forbidsStoring: Bool { directives.noStore && !directives.mustUnderstand }

    /// True if the answer to a request with Authorization may be stored and shared (RFC 9111 section 3.5). A private
    /// cache shares it with no other user, so it always may.
    var allowsAuthorized: Bool {
        directives.public || directives.mustRevalidate
            || directives.sMaxAge != nil && !directives.hasInvalidFreshness
            || !isShared
    }

    /// Whether Set-Cookie is stored with the response, and so sent to every client that it answers. `public` and
    /// `s-maxage` allow the whole response for all users (RFC 9111 sections 5.2.2.9 and 5.2.2.10).
    func keepsSetCookie(_ policy: CachePolicy) -> Bool {
        switch policy.setCookie {
        case .strict: directives.public || directives.sMaxAge != nil && !directives.hasInvalidFreshness
        case .explicit, .skip: true
        case .strip: false
        }
    }

    /// Whether every reuse must be validated first (RFC 9111 section 5.2.2.4). A configured ttl with `overrideOrigin`
    /// lifts that, and library mode always does.
    func requiresValidation(status: Int, policy: CachePolicy) -> Bool {
        if policy.mode == .library { return false }
        return directives.noCache && !(policy.overrideOrigin && policy.configuredLifetime(status: status) != nil)
    }

    /// The reason why the response must not be used stale (RFC 9111 section 4.2.4); nil if it may. s-maxage implies
    /// proxy-revalidate. In library mode the origin's directives do not count.
    func staleProhibition(status: Int, policy: CachePolicy) -> StaleRefusal? {
        if policy.mode == .library { return nil }
        if requiresValidation(status: status, policy: policy) { return .noCache }
        if directives.mustRevalidate { return .mustRevalidate }
        if directives.proxyRevalidate { return .proxyRevalidate }
        if directives.sMaxAge != nil { return .sMaxAge }
        return nil
    }

    /// The lower-case names of the fields that must not be kept, because `private` or `no-cache` lists them.
    var unstorableFields: Set<String> { Set(directives.privateFields + directives.noCacheFields) }

    /// Fields without which the stored response would have another meaning: a directive that lists one of them applies
    /// to the whole response.
    private static let protected: Set<String> = [
        "age", "cache-control", "content-encoding", "content-length", "content-range", "content-type", "date", "etag",
        "expires", "last-modified", "transfer-encoding", "vary",
    ]

    private mutating func widenProtectedNames() {
        if directives.privateFields.isEmpty, directives.noCacheFields.isEmpty { return }
        var names = Self.protected
        if let targetedField { names.insert(targetedField.lowercased()) }
        if directives.privateFields.contains(where: names.contains) { directives.private = true }
        if directives.noCacheFields.contains(where: names.contains) { directives.noCache = true }
    }
}

extension CacheControl {
    /// The directives of a targeted field; nil if it is absent, empty or not a dictionary, and is therefore ignored
    /// (RFC 9213 section 2.1), or if all its values have the wrong type.
    ///
    /// A value of the wrong type is ignored (RFC 9213), but that must not allow more to be stored than the origin
    /// wants: a directive that allows something counts only with its own type, one that forbids something with any.
    init?(targeted lines: [[UInt8]]) {
        guard !lines.isEmpty, let dictionary = StructuredDictionary(lines), !dictionary.members.isEmpty else {
            return nil
        }
        self.init()
        var isUsable = false
        for (name, value) in dictionary.members {
            let argument = Self.argument(of: name, value)
            isUsable = isUsable || argument != nil || Self.prohibitions.contains(name)
            // A lifetime or bound that cannot be parsed allows nothing, as in Cache-Control.
            apply(Directive(name: name, argument: argument ?? .malformed))
        }
        guard isUsable else { return nil }
    }

    /// The directives that count whatever their value is.
    private static let prohibitions: Set<String> = [
        "no-cache", "no-store", "private", "must-revalidate", "proxy-revalidate",
    ]

    private static func argument(of name: String, _ value: StructuredValue) -> Directive.Argument? {
        switch name {
        case "max-age", "s-maxage", "stale-while-revalidate", "stale-if-error":
            guard case .integer(let seconds) = value else { return nil }
            return .value(Array(String(seconds).utf8))
        case "no-cache", "private":
            switch value {
            case .boolean(true): return Directive.Argument.none
            case .string(let names), .token(let names): return .value(names)
            default: return nil
            }
        case "no-store", "public", "must-revalidate", "proxy-revalidate", "must-understand", "immutable",
            "no-transform":
            return value == .boolean(true) ? Directive.Argument.none : nil
        default:
            return Directive.Argument.none
        }
    }
}
