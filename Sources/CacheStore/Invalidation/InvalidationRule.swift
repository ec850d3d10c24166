// A name that many stored responses share: a cache group, a tag, a URL. Invalidating the name
// invalidates all of them at once.

package import HTTPCaching
package import HTTPWire

/// What stored responses have in common.
package struct InvalidationRule: Hashable, Sendable, CustomStringConvertible {
    private enum Kind {
        static let group = UInt8(ascii: "g")
        static let keyed = UInt8(ascii: "k")
        static let tag = UInt8(ascii: "t")
        static let url = UInt8(ascii: "u")
        static let groupsOfOrigin = UInt8(ascii: "G")
        static let origin = UInt8(ascii: "o")
        static let anyHost = UInt8(ascii: "h")
    }

    /// What kind of name it is, then the name itself.
    let bytes: [UInt8]

    init(bytes: [UInt8]) { self.bytes = bytes }

    /// A cache group (RFC 9875 section 2.1): groups of the same name on another origin, or of
    /// another service, are others.
    package static func group(_ name: String, of key: CacheKey) -> InvalidationRule {
        InvalidationRule(bytes: [Kind.group] + key.originBytes + [0] + Array(name.utf8))
    }

    /// All keys of one URL with a secondary key; the plain key is not among them.
    package static func keyed(_ key: CacheKey) -> InvalidationRule {
        InvalidationRule(bytes: [Kind.keyed] + key.plainBytes)
    }

    /// The URL of a key in every service, with all its stored responses.
    package static func url(of key: CacheKey) -> InvalidationRule { url(key.urlBytes) }

    /// A tag of any origin or service.
    static func tag(_ name: String) -> InvalidationRule { InvalidationRule(bytes: [Kind.tag] + Array(name.utf8)) }

    /// A URL in every service, with all its stored responses.
    static func url(_ bytes: some Collection<UInt8>) -> InvalidationRule {
        InvalidationRule(bytes: [Kind.url] + Array(bytes))
    }

    /// All URLs of an origin, in every service; it replaces many single rules.
    static func origin(of key: CacheKey) -> InvalidationRule {
        InvalidationRule(bytes: [Kind.origin] + origin(key.urlBytes))
    }

    /// The path and query of a key within its service, with any scheme and authority.
    package static func anyHost(of key: CacheKey) -> InvalidationRule {
        let url = key.urlBytes
        let path = url.dropFirst(origin(url).count)
        return InvalidationRule(bytes: [Kind.anyHost] + key.bytes.prefix { $0 != 0 } + [0] + path)
    }

    /// Whether a key ends like those that this ``anyHost(of:)`` matches: a quick test before the key is parsed.
    func mayConcern(_ keyBytes: UnsafeRawBufferPointer) -> Bool {
        let path = bytes.drop { $0 != 0 }.dropFirst()
        return keyBytes.suffix(path.count).elementsEqual(path)
    }

    /// All cache groups of an origin and service; it replaces many single rules.
    static func groups(of key: CacheKey) -> InvalidationRule {
        InvalidationRule(bytes: [Kind.groupsOfOrigin] + key.originBytes)
    }

    /// Scheme and authority: everything up to the third slash.
    private static func origin(_ url: some Collection<UInt8>) -> [UInt8] {
        var slashes = 0
        return Array(
            url.prefix { byte in
                if byte == UInt8(ascii: "/") { slashes += 1 }
                return slashes < 3
            }
        )
    }

    /// The wider rule that replaces this one and others of its origin when there are too many; nil
    /// for tags and for wide rules.
    var wider: InvalidationRule? {
        let name = bytes.dropFirst()
        switch bytes.first {
        case Kind.group:
            // Service, NUL, scheme and authority, NUL, name.
            guard let end = name.lastIndex(of: 0) else { return nil }
            return InvalidationRule(bytes: [Kind.groupsOfOrigin] + name[..<end])
        case Kind.keyed:
            return InvalidationRule(bytes: [Kind.origin] + Self.origin(name.drop { $0 != 0 }.dropFirst()))
        case Kind.url: return InvalidationRule(bytes: [Kind.origin] + Self.origin(name))
        default: return nil
        }
    }

    /// It concerns members of cache groups alone.
    var isOfGroups: Bool { bytes.first == Kind.group || bytes.first == Kind.groupsOfOrigin }

    /// Whether it replaces other rules, or matches one path on many hosts.
    var isWide: Bool { [Kind.groupsOfOrigin, Kind.origin, Kind.anyHost].contains(bytes.first) }

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
        Caching.cacheGroups(fields).map { group($0, of: key) } + (key.extras == nil ? [] : [keyed(key)])
    }

    /// Whether a request to an origin may invalidate it at any time, so that responses of this name must be checked
    /// against the rules before each use.
    package var isGroup: Bool { bytes.first == Kind.group || bytes.first == Kind.keyed }

    /// What finds the files that it concerns. For groups it finds more than those: see ``needsLook``.
    var purge: PurgeRule? {
        let name = String(decoding: bytes.dropFirst(), as: UTF8.self)
        let parts = bytes.dropFirst().split(separator: 0, omittingEmptySubsequences: false)
            .map { String(decoding: $0, as: UTF8.self) }
        switch bytes.first {
        case Kind.tag: return PurgeRule(.tag(name))
        case Kind.url: return PurgeRule(.url(name))
        case Kind.origin: return PurgeRule(.prefix(name + "/"))
        case Kind.keyed where parts.count == 2: return PurgeRule(.url(parts[1]), service: parts[0])
        case Kind.group where parts.count == 3: return PurgeRule(.tag(parts[2]), service: parts[0])
        case Kind.anyHost where parts.count == 2: return PurgeRule(.glob("*://*" + parts[1]), service: parts[0])
        case Kind.groupsOfOrigin where parts.count == 2: return PurgeRule(.prefix(parts[1] + "/"), service: parts[0])
        default: return nil
        }
    }

    /// Whether ``purge`` also finds files that the rule does not match, so that the head of each must be checked.
    var needsLook: Bool { [Kind.group, Kind.keyed, Kind.groupsOfOrigin, Kind.anyHost].contains(bytes.first) }

    /// The name, with where it holds.
    package var description: String {
        let parts = bytes.dropFirst().split(separator: 0, omittingEmptySubsequences: false)
        let name = String(decoding: parts.last ?? [], as: UTF8.self)
        guard isGroup else { return name }
        let origin = parts.dropFirst().first.map { String(decoding: $0, as: UTF8.self) } ?? ""
        return "\(name) of \(origin)"
    }
}
