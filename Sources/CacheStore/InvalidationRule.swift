// A name that many stored responses share: a cache group, a tag, a URL. Invalidating the name invalidates all of them at once.

package import HTTPCaching
package import HTTPWire

/// What stored responses have in common.
package struct InvalidationRule: Hashable, Sendable, CustomStringConvertible {
    private enum Kind {
        static let group = UInt8(ascii: "g")
        static let keyed = UInt8(ascii: "k")
        static let tag = UInt8(ascii: "t")
        static let url = UInt8(ascii: "u")
    }

    /// What kind of name it is, then the name itself.
    let bytes: [UInt8]

    init(bytes: [UInt8]) { self.bytes = bytes }

    /// A cache group (RFC 9875 section 2.1): groups of the same name on another origin, or of another service, are others.
    package static func group(_ name: String, of key: CacheKey) -> InvalidationRule {
        InvalidationRule(bytes: [Kind.group] + key.originBytes + [0] + Array(name.utf8))
    }

    /// All keys of one URL that hold more than the URL; the plain key is none of them.
    package static func url(of key: CacheKey) -> InvalidationRule {
        InvalidationRule(bytes: [Kind.keyed] + key.plainBytes)
    }

    /// A tag, whatever origin or service gave it.
    static func tag(_ name: String) -> InvalidationRule { InvalidationRule(bytes: [Kind.tag] + Array(name.utf8)) }

    /// A URL in whatever service, with all that is stored under it.
    static func url(_ bytes: some Collection<UInt8>) -> InvalidationRule {
        InvalidationRule(bytes: [Kind.url] + Array(bytes))
    }

    /// The groups and tags of a stored response.
    package static func concerning(_ head: StoredHead, _ key: CacheKey) -> [InvalidationRule] {
        concerning(head.fields, key)
    }

    /// The groups and tags that the fields of a response name.
    package static func concerning(_ fields: Fields, _ key: CacheKey) -> [InvalidationRule] {
        groups(fields, key) + Caching.cacheTags(fields).map { tag($0) }
    }

    /// Those that a request may invalidate: the groups, and the URL of a key that holds more than that.
    package static func groups(_ fields: Fields, _ key: CacheKey) -> [InvalidationRule] {
        Caching.cacheGroups(fields).map { group($0, of: key) } + (key.extras == nil ? [] : [url(of: key)])
    }

    /// A request to an origin may invalidate it at any time; tags and URLs are purged by whoever runs the daemon.
    package var isGroup: Bool { bytes.first == Kind.group || bytes.first == Kind.keyed }

    /// What a purge of this name alone would be; nil for groups.
    var purge: PurgeRule.Target? {
        let name = String(decoding: bytes.dropFirst(), as: UTF8.self)
        return switch bytes.first {
        case Kind.tag: .tag(name)
        case Kind.url: .url(name)
        default: nil
        }
    }

    /// The name, with where it holds.
    package var description: String {
        let parts = bytes.dropFirst().split(separator: 0, omittingEmptySubsequences: false)
        let name = String(decoding: parts.last ?? [], as: UTF8.self)
        guard isGroup else { return name }
        let origin = parts.dropFirst().first.map { String(decoding: $0, as: UTF8.self) } ?? ""
        return "\(name) of \(origin)"
    }
}
