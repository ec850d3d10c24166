// Stored responses as a program sees them: one of a listing, which ones are meant, and the state of a resource.

import CacheStore
import DownloadCore
public import FoundationEssentials
import HTTPCaching
public import HTTPTypes
package import HTTPWire

/// A response that is stored, without its body.
public struct StoredResponse: Sendable, Hashable {
    /// Its URL.
    public var url: URL
    /// What the response is found by besides its URL, such as the digest of the content of a POST; mostly nothing.
    public var secondaryKey: [String]
    /// The fields of the request that the response varies by (RFC 9110 section 12.5.5).
    public var varyingFields: HTTPFields
    /// Status and fields as the origin sent them.
    public var head: HTTPResponse
    /// Bytes of the body; nil where nobody knows.
    public var size: Int64?
    /// Whether it is in memory.
    public var isInMemory: Bool
    /// Whether it is in the folder of ``DownloadConfiguration/disk``.
    public var isOnDisk: Bool
    /// When it came, or was last confirmed and brought up to date, in whole seconds.
    public var storedAt: Date
    /// When the origin last said that it is current, in whole seconds.
    public var confirmedAt: Date
    /// When the origin last changed it, by its Last-Modified; nil where it has not said so.
    public var lastModified: Date?
    /// How long ago the origin made it, in whole seconds (RFC 9111 section 4.2.3).
    public var age: Duration
    /// How much longer it stays valid by the manager's settings, in whole seconds; negative where it has not been since
    /// then. A download with a ``DownloadOptions/lifetime`` of its own may see it otherwise.
    public var validity: Duration
    /// The tags by which it can be removed: those of `Cache-Tag`, `Surrogate-Key` and `Cache-Groups`.
    public var tags: [String]
    /// Whether its URL is pinned: it makes no room for others, and does not go for its age.
    public var isPinned: Bool
}

extension StoredResponse {
    /// - Parameter now: Unix seconds.
    /// - Returns: nil where the URL is none that a program can name.
    init?(_ listed: ListedResponse, _ configuration: DownloadConfiguration, now: Int64) {
        guard let url = URL(string: "\(listed.key)") else { return nil }
        let stored = listed.head
        let question = try? DownloadRequest(url, configuration, DownloadOptions())
        guard let policy = question?.ask(configuration, seed: nil).policy else { return nil }
        self.url = url
        secondaryKey = listed.key.extras?.split(separator: "\n").map(String.init) ?? []
        varyingFields = HTTPFields(stored.varyFields)
        head = HTTPResponse(
            status: HTTPResponse.Status(code: stored.status, reasonPhrase: stored.reason),
            headerFields: HTTPFields(stored.fields)
        )
        size = listed.length
        isInMemory = listed.tiers.contains(.memory)
        isOnDisk = listed.tiers.contains(.disk)
        storedAt = Date(timeIntervalSince1970: Double(stored.responseTime))
        confirmedAt = Date(timeIntervalSince1970: Double(stored.validatedAt))
        lastModified = stored.fields.first(.lastModified).flatMap { HTTPDate.parse($0, now: now) }
            .map { Date(timeIntervalSince1970: Double($0)) }
        age = .seconds(Caching.age(stored, now: now))
        validity = .seconds(-Caching.staleness(stored, policy: policy, now: now))
        tags = Caching.cacheTags(stored.fields)
        isPinned = listed.isPinned
    }
}

/// Stored responses in the order of their URLs. Each iteration looks anew, page by page: what is stored or goes
/// meanwhile may be in it or not.
struct StoredResponses: AsyncSequence, Sendable {
    typealias Element = StoredResponse
    typealias Failure = DownloadError

    typealias Page =
        @Sendable (_ after: String?) async throws(DownloadError) -> (
            responses: [StoredResponse], next: String?
        )

    private let page: Page

    init(_ page: @escaping Page) { self.page = page }

    /// Begins with the first URL.
    func makeAsyncIterator() -> AsyncIterator { AsyncIterator(page: page) }

    /// One way through what is stored.
    struct AsyncIterator: AsyncIteratorProtocol {
        fileprivate let page: Page
        private var found: ArraySlice<StoredResponse> = []
        private var after: String?
        private var isOver = false

        fileprivate init(page: @escaping Page) { self.page = page }

        /// The next stored response; nil behind the last one.
        /// - Throws: `DownloadError.invalidRequest` for a selection that names no URL, `.unavailable`, `.closed`;
        ///   ``DownloadError/cancelled`` when the task is cancelled.
        mutating func next(
            isolation actor: isolated (any Actor)? = #isolation
        ) async throws(DownloadError) -> StoredResponse? {
            while found.isEmpty, !isOver {
                if Task.isCancelled { throw .cancelled }
                let (responses, next) = try await page(after)
                found = responses[...]
                after = next
                isOver = next == nil
            }
            return found.popFirst()
        }
    }
}

extension HTTPFields {
    /// The lines whose names a program can name.
    package init(_ fields: Fields) {
        self.init()
        fields.forEachLine { name, value, known in
            guard let name = Self.name(name, known) else { return }
            append(HTTPField(name: name, value: value))
        }
    }

    /// The names of the known fields in their usual spelling, each checked once.
    private static let names = KnownField.allCases.map { HTTPField.Name($0.name) }

    /// In the spelling that it came in.
    private static func name(_ bytes: UnsafeRawBufferPointer, _ known: KnownField) -> HTTPField.Name? {
        if known != .other, bytes.elementsEqual(known.nameBytes) { return names[Int(known.rawValue)] }
        return HTTPField.Name(Latin1.string(bytes))
    }
}

// MARK: - Which ones are meant

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
    /// The same selection as the purges of the store that remove it.
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

// MARK: - The state of a resource

/// The state of a resource as it is stored; no origin is asked.
public enum StoredState: Sendable, Hashable {
    /// It would be downloaded.
    case absent
    /// A seed answers for it.
    case seeded
    /// It is stored, and valid for so many more seconds.
    case valid(Duration)
    /// It is stored, and has not been valid for so many seconds: it would be checked.
    case stale(Duration)
}

extension StoredState {
    init(_ explanation: StoredExplanation) {
        switch explanation.rules.decision {
        case .fresh(_, let ttl): self = .valid(.seconds(ttl))
        case .staleAllowed(_, let by, _), .stale(_, let by, _): self = .stale(.seconds(by))
        case .mismatch, .onlyIfCachedMiss, nil: self = .absent
        }
    }
}
