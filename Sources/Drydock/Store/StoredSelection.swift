// Which stored responses a program means: one word for listing and for removing.

import CacheStore
public import FoundationEssentials
import HTTPCaching

/// Which stored responses are meant. URLs are meant as they are stored: absolute, and without a fragment.
public enum StoredSelection: Sendable, Hashable {
    /// Everything.
    case all
    /// What is stored of a URL, whatever it was asked with.
    case url(URL)
    /// URLs that begin like this, such as `https://example.com/images/`.
    case prefix(String)
    /// URLs of this form: `*` stands for any run of characters, every other character for itself.
    case glob(String)
    /// Responses with this tag in `Cache-Tag`, `Surrogate-Key` or `Cache-Groups`; case counts.
    case tag(String)
    /// What came, or was last confirmed, before so long a time, in whole seconds. Removing leaves out what is pinned.
    case olderThan(Duration)
}

extension StoredSelection {
    /// As the store purges.
    /// - Parameter now: Unix seconds.
    /// - Throws: `DownloadError.invalidRequest` for a URL that cannot be asked for.
    func rule(
        _ configuration: DownloadConfiguration,
        isSoft: Bool,
        now: Int64
    ) throws(DownloadError) -> PurgeRule {
        let target: PurgeRule.Target
        switch self {
        case .all: target = .all
        case .url(let url):
            target = .url(try DownloadRequest(url, configuration, DownloadOptions()).key.description)
        case .prefix(let text): target = .prefix(text)
        case .glob(let text): target = .glob(text)
        case .tag(let tag): target = .tag(tag)
        case .olderThan(let age): target = .olderThan(now - age.wholeSeconds)
        }
        return PurgeRule(target, isSoft: isSoft)
    }
}

extension ListQuery {
    /// The part of a selection that a tier can look for: never less than what is meant.
    init(_ target: PurgeRule.Target) {
        self.init()
        switch target {
        case .all, .tag: break
        case .url(let text), .prefix(let text): prefix = text
        case .glob(let text): if text.contains("*") { pattern = text } else { prefix = text }
        case .olderThan(let time): arrivedBefore = time
        }
    }
}

extension ListedResponse {
    /// Whether a target means it; of those that ``ListQuery/init(_:)`` has found.
    func isMeant(by target: PurgeRule.Target) -> Bool {
        switch target {
        case .all, .prefix, .olderThan: true
        case .url(let url): "\(key)" == url
        case .glob(let text): text.contains("*") || "\(key)" == text
        case .tag(let tag): Caching.cacheTags(head.fields).contains(tag)
        }
    }
}
