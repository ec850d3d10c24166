// The target of a purge: a URL, a prefix, a pattern, a tag, an age, or everything.

import HTTPCaching

/// One purge. It applies to responses that were fetched or last validated before it.
package struct PurgeRule: Sendable, Hashable, CustomStringConvertible {
    package enum Target: Sendable, Hashable {
        /// All variants of this URL, in the form of a key.
        case url(String)
        /// URLs that begin like this.
        case prefix(String)
        /// URLs of this form: `*` stands for anything, every other character for itself.
        case glob(String)
        /// Responses with this tag: `Cache-Tag`, `Surrogate-Key` or `Cache-Groups`.
        case tag(String)
        /// Responses that arrived, or were last confirmed, before this time (Unix seconds); not those that are pinned.
        case olderThan(Int64)
        case all
    }

    package let target: Target
    /// Only in this service, empty for forward mode; nil for all.
    package let service: String?
    /// Matching responses become stale rather than being removed.
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

    /// As in a key.
    package static func normalised(_ url: String) -> String { CacheKey(service: "", url: url).description }

    /// As in a key, where there is a whole authority; else only in lower case up to its end.
    private static func normalisedStart(_ url: String) -> String {
        guard let colon = url.firstRange(of: "://") else { return url }
        let rest = url[colon.upperBound...]
        guard let end = rest.firstIndex(where: { $0 == "/" || $0 == "?" }), !rest[..<end].contains("*") else {
            let authorityEnd = rest.firstIndex { $0 == "/" } ?? rest.endIndex
            return url[..<authorityEnd].lowercased() + url[authorityEnd...]
        }
        return normalised(url)
    }

    /// The name that the rule is kept under, where it is one name for all services.
    var name: InvalidationRule? {
        guard service == nil else { return nil }
        switch target {
        case .url: return .url(text)
        case .tag: return InvalidationRule(bytes: [UInt8(ascii: "t")] + text)
        default: return nil
        }
    }

    /// Whether it is about a response of this description, whenever that was stored.
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

    /// Whether it concerns everything that an earlier rule concerns, at the same moment.
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
    /// Unix seconds; the maximum for a response that has not arrived yet.
    let arrivedAt: Int64
    /// Called only for rules that spare pinned responses.
    let isPinned: @Sendable () -> Bool
}
