// The subjects of rules: a purge has a target, from a URL to everything; an invalidation has a name that many stored
// responses share.

package import HTTPCaching
package import HTTPWire

/// A name that stored responses share, and by which they are invalidated.
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

    /// The kind of the name, then the name itself.
    let bytes: [UInt8]

    init(bytes: [UInt8]) { self.bytes = bytes }

    /// The name of a cache group (RFC 9875 section 2.1). Groups with the same name on another origin, or of another
    /// service, are different.
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

    /// The scheme and the authority: everything up to the third slash.
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
            // The name consists of service, NUL, scheme and authority, NUL, name.
            guard let end = name.lastIndex(of: 0) else { return nil }
            return InvalidationRule(bytes: [Kind.groupsOfOrigin] + name[..<end])
        case Kind.keyed:
            return InvalidationRule(bytes: [Kind.origin] + Self.origin(name.drop { $0 != 0 }.dropFirst()))
        case Kind.url: return InvalidationRule(bytes: [Kind.origin] + Self.origin(name))
        default: return nil
        }
    }

    /// Whether the rule affects members of cache groups only.
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

    /// The rules that a request may invalidate: the groups of its URL, and the URL of a key that contains more than
    /// that.
    package static func groups(_ fields: Fields, _ key: CacheKey) -> [InvalidationRule] {
        Caching.cacheGroups(fields).map { group($0, of: key) } + (key.extras == nil ? [] : [keyed(key)])
    }

    /// Whether a request to an origin may invalidate the name at any time, so that its responses must be checked
    /// against the rules before each use.
    package var isGroup: Bool { bytes.first == Kind.group || bytes.first == Kind.keyed }

    /// The purge that finds the files of the rule. For groups it finds more than those: see ``needsLook``.
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

    /// The name with its scope.
    package var description: String {
        let parts = bytes.dropFirst().split(separator: 0, omittingEmptySubsequences: false)
        let name = String(decoding: parts.last ?? [], as: UTF8.self)
        guard isGroup else { return name }
        let origin = parts.dropFirst().first.map { String(decoding: $0, as: UTF8.self) } ?? ""
        return "\(name) of \(origin)"
    }
}

// MARK: - Targets of purges

/// One purge. It applies to responses that were fetched or last validated before it.
package struct PurgeRule: Sendable, Hashable, CustomStringConvertible {
    package enum Target: Sendable, Hashable {
        /// All variants of this URL, in the form of a key.
        case url(String)
        /// URLs with this beginning.
        case prefix(String)
        /// URLs of this form: `*` stands for any text, every other character for itself.
        case glob(String)
        /// Responses with this tag: `Cache-Tag`, `Surrogate-Key` or `Cache-Groups`.
        case tag(String)
        /// Responses that arrived, or were last validated, before this time (Unix seconds), except for pinned ones.
        case olderThan(Int64)
        case all
    }

    package let target: Target
    /// The only service of the purge; empty for forward mode, nil for all services.
    package let service: String?
    /// Whether matching responses become stale instead of being removed.
    package let isSoft: Bool
    private let text: [UInt8]
    private let servicePart: [UInt8]?

    /// Scheme and authority of URLs are normalised as in keys.
    package init(_ target: Target, service: String? = nil, isSoft: Bool = false) {
        switch target {
        case .url(let url): self.target = .url(Self.normalised(url))
        case .prefix(let url): self.target = .prefix(Self.normalisedStart(url))
        case .glob(let url): self.target = .glob(Self.normalisedStart(url))
        default: self.target = target
        }
        self.service = service
        self.isSoft = isSoft
        servicePart = service.map { Array($0.utf8) + [0] }
        switch self.target {
        case .url(let text), .prefix(let text), .glob(let text), .tag(let text): self.text = Array(text.utf8)
        case .olderThan, .all: text = []
        }
    }

    /// A URL in the form that it has in a cache key.
    package static func normalised(_ url: String) -> String { CacheKey(service: "", url: url).description }

    /// The beginning of a URL in the form of a cache key if it has a whole authority; otherwise in lower case up to its
    /// end.
    private static func normalisedStart(_ url: String) -> String {
        guard let colon = url.firstRange(of: "://") else { return url }
        let rest = url[colon.upperBound...]
        guard let end = rest.firstIndex(where: { $0 == "/" || $0 == "?" }), !rest[..<end].contains("*") else {
            let authorityEnd = rest.firstIndex { $0 == "/" } ?? rest.endIndex
            return url[..<authorityEnd].lowercased() + url[authorityEnd...]
        }
        return normalised(url)
    }

    /// The name under which the rule is kept, if it is one name for all services.
    var name: InvalidationRule? {
        guard service == nil else { return nil }
        switch target {
        case .url: return .url(text)
        case .tag: return InvalidationRule(bytes: [UInt8(ascii: "t")] + text)
        default: return nil
        }
    }

    /// Whether the rule affects a response with these properties, independently of its time.
    func concerns(_ subject: RuleSubject) -> Bool {
        if let servicePart, !subject.key.bytes.starts(with: servicePart) { return false }
        switch target {
        case .url: return subject.key.urlBytes.elementsEqual(text)
        case .prefix: return subject.key.urlBytes.starts(with: text)
        case .glob: return StarPattern.matches(text[...], subject.key.urlBytes)
        case .tag(let name): return subject.names.contains(.tag(name))
        case .olderThan(let time): return subject.arrivedAt < time && !subject.isPinned()
        case .all: return true
        }
    }

    /// Whether the rule affects everything that an earlier rule affects, at the same moment.
    func covers(_ other: PurgeRule) -> Bool {
        guard service == other.service, isSoft == other.isSoft else { return false }
        switch (target, other.target) {
        case (.olderThan(let time), .olderThan(let before)): return time >= before
        default: return target == other.target
        }
    }

    package var description: String {
        let what =
            switch target {
            case .url(let url): url
            case .prefix(let url): "prefix \(url)"
            case .glob(let pattern): "glob \(pattern)"
            case .tag(let tag): "tag \(tag)"
            case .olderThan(let time): "older than \(time)"
            case .all: "all"
            }
        return what + (service.map { $0.isEmpty ? " of forward mode" : " of service \($0)" } ?? "")
            + (isSoft ? ", soft" : "")
    }
}

/// The properties of a stored or arriving response that rules match.
struct RuleSubject: Sendable {
    let key: CacheKey
    let names: [InvalidationRule]
    /// The arrival in Unix seconds; the maximum for a response that has not arrived yet.
    let arrivedAt: Int64
    /// Whether the URL of the response is pinned; called only for rules that spare pinned responses.
    let isPinned: @Sendable () -> Bool
}
