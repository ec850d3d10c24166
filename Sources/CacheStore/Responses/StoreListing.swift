// The listing of stored responses, page by page, in the order of URLs: from memory by a walk, and from the tiers behind
// it by their own listings.

package import EventLoop
package import HTTPCaching
import HTTPWire
import Synchronization

/// The selection of stored responses for a listing.
package struct ListQuery: Sendable, Equatable {
    /// A pattern of the whole URL with `*`, or a part of it; nil for all.
    package var pattern: String?
    /// The text with which the URL begins.
    package var prefix = ""
    /// Patterns or parts of the URL, like ``pattern``, of which one may match instead of ``pattern`` and ``prefix``.
    package var alternatives: [String] = []
    /// The service whose responses are listed; empty for forward mode, nil for all.
    package var service: String?
    /// The tier whose responses are listed; nil for all.
    package var tier: StoreTier?
    /// The least bytes of the body.
    package var minSize: Int64 = 0
    /// The time before which a listed response arrived, or was last confirmed, in Unix seconds; nil for any.
    package var arrivedBefore: Int64?
    /// Whether only pinned responses are listed.
    package var isPinned = false
    /// The least number of responses of a page, where so many are left and found within one step.
    package var limit = 100
    /// The URL after which the listing begins; nil for its beginning.
    package var after: String?

    package init() {}

    func selects(_ key: CacheKey) -> Bool {
        if let service, key.service != service { return false }
        let url = key.urlBytes
        if url.starts(with: prefix.utf8), pattern.map({ Self.matches($0, url) }) ?? true { return true }
        return alternatives.contains { Self.matches($0, url) }
    }

    private static func matches(_ pattern: String, _ url: ArraySlice<UInt8>) -> Bool {
        let bytes = Array((pattern.contains("*") ? pattern : "*\(pattern)*").utf8)
        return StarPattern.matches(bytes[...], url)
    }
}

/// One stored response of a listing.
package struct ListedResponse: Sendable {
    package let key: CacheKey
    /// The head of the response, after the rules were applied.
    package let head: StoredHead
    /// The bytes of the body; nil if unknown.
    package let length: Int64?
    /// The tiers that have the response, the fastest first.
    package let tiers: [StoreTier]
    package let isPinned: Bool
}

/// One page of a listing.
package struct ListPage: Sendable {
    package var responses: [ListedResponse] = []
    /// The value of `after` for the next page, which may be empty; nil on the last page.
    package var next: String?
}

/// Lists stored responses, on I/O threads; no lock is held for long.
package struct StoreListing: Sendable {
    let memory: MemoryTier
    let tiers: [any ResponseTier]
    let invalidations: Invalidations
    let pool: IOPool
    /// The most rows of a tier that one page examines.
    private static let step = 1000

    package init(memory: MemoryTier, behind tiers: [any ResponseTier], invalidations: Invalidations, pool: IOPool) {
        self.memory = memory
        self.tiers = tiers
        self.invalidations = invalidations
        self.pool = pool
    }

    /// Makes a page. All variants of a URL are on one page, so that it may hold more entries than the limit, or fewer
    /// if few match.
    /// - Parameter isWanted: a further filter; called on I/O threads.
    package func page(
        _ query: ListQuery,
        _ isWanted: @escaping @Sendable (ListedResponse) -> Bool = { _ in true }
    ) async throws -> ListPage {
        let (held, memoryEnd) = try await pool.run { [self] in inMemory(query) }
        var ends = [memoryEnd]
        var listings: [(tier: any ResponseTier, listings: [TierListing])] = []
        for tier in tiers {
            do {
                let (rows, end) = try await tier.list(query, pinned: invalidations.pins.all, limit: Self.step)
                ends.append(end)
                listings.append((tier, await tier.heads(of: rows)))
            } catch  where tier.isShared {
                // The responses of a tier that cannot be reached are left out.
                continue
            }
        }
        let (end, behind) = (ends.compactMap(\.self).min(), listings)
        return try await pool.run { [self] in
            let all = merge(held, behind, query).filter { listed in
                end.map { !Self.isBehind(listed.key, $0) } ?? true
            }
            let wanted = all.filter(isWanted).sorted { Self.order($0) < Self.order($1) }
            var count = min(max(query.limit, 1), wanted.count)
            while count < wanted.count, wanted[count].key.urlBytes == wanted[count - 1].key.urlBytes { count += 1 }
            let isCut = count < wanted.count
            return ListPage(
                responses: Array(wanted[..<count]),
                next: isCut ? wanted[count - 1].key.description : end
            )
        }
    }

    // MARK: - The memory tier

    /// The first responses of the memory tier after `after`, and the URL after which there may be more.
    private func inMemory(_ query: ListQuery) -> ([ResidentResponse], end: String?) {
        let after = query.after.map { Array($0.utf8) } ?? []
        var first = FirstByURL(limit: max(query.limit, Self.step))
        memory.forEachSlice { responses in
            for response in responses {
                let key = response.key
                if after.lexicographicallyPrecedes(key.urlBytes), query.selects(key) { first.add(response, key) }
            }
        }
        let (found, isCut) = first.finish()
        return (found, isCut ? found.last?.key.description : nil)
    }

    // MARK: - All

    /// Merges lists into one, in which each response occurs once, with the tiers that have it.
    private func merge(
        _ held: [ResidentResponse],
        _ behind: [(tier: any ResponseTier, listings: [TierListing])],
        _ query: ListQuery
    ) -> [ListedResponse] {
        var all: [ListedResponse] = []
        // The responses that are listed already, and that a further tier may have, too.
        var known: [CacheKey: [(number: UInt64, head: StoredHead)]] = [:]
        for response in held.map(\.response) {
            known[response.key, default: []].append((response.number, response.head))
            let others = tiers.filter { tier in
                if case .holds(response.number, _) = tier.known(response.key, response.head) { true } else { false }
            }
            let names = [StoreTier.memory] + others.map(\.name)
            let verdict = invalidations.verdict(response)
            if let listed = listed(response.key, response.head, response.body.knownLength, names, verdict) {
                all.append(listed)
            }
        }
        for (tier, listings) in behind {
            for listing in listings {
                let (key, head) = (listing.key, listing.head)
                // A shared tier has the numbers of other stores.
                let isKnown = known[key]?.contains { other in
                    (tier.isShared || other.number == listing.number) && other.head.isSameVariant(as: head)
                }
                if isKnown == true { continue }
                known[key, default: []].append((listing.number, head))
                let verdict = invalidations.verdict(head, key, InvalidationRule.concerning(head, key))
                if let listed = listed(key, head, listing.length, [tier.name], verdict) { all.append(listed) }
            }
        }
        return all.filter { listed in
            (query.tier.map { listed.tiers.contains($0) } ?? true) && (listed.length ?? 0) >= query.minSize
                && (query.arrivedBefore.map { listed.head.responseTime < $0 } ?? true)
                && (listed.isPinned || !query.isPinned)
        }
    }

    /// An item of the listing; nil if a rule has removed the response.
    private func listed(
        _ key: CacheKey,
        _ head: StoredHead,
        _ length: Int64?,
        _ tiers: [StoreTier],
        _ verdict: RuleVerdict
    ) -> ListedResponse? {
        var head = head
        switch verdict {
        case .gone: return nil
        case .stale(let since): head.staleSince = since
        case .valid: break
        }
        return ListedResponse(
            key: key,
            head: head,
            length: length,
            tiers: tiers,
            isPinned: invalidations.pins.contains(key)
        )
    }

    private static func isBehind(_ key: CacheKey, _ url: String) -> Bool {
        Array(url.utf8).lexicographicallyPrecedes(key.urlBytes)
    }

    private static func order(_ listed: ListedResponse) -> (String, String, String) {
        let variant = listed.head.varyFields.lines.map { "\($0.name)=\($0.value)" }.joined(separator: " ")
        return (listed.key.description, listed.key.service, variant)
    }
}

/// Keeps the first of many responses by URL.
struct FirstByURL {
    private let limit: Int
    private var kept: [(response: ResidentResponse, url: ArraySlice<UInt8>)] = []
    /// The URL after which responses are no longer collected; nil while all are.
    private var last: ArraySlice<UInt8>?

    init(limit: Int) { self.limit = max(1, limit) }

    /// Adds a response.
    /// - Parameter key: the response's key.
    mutating func add(_ response: ResidentResponse, _ key: CacheKey) {
        if let last, last.lexicographicallyPrecedes(key.urlBytes) { return }
        kept.append((response, key.urlBytes))
        if kept.count >= 4 * limit { cut() }
    }

    /// The responses in their order, and whether others were left out.
    mutating func finish() -> ([ResidentResponse], isCut: Bool) {
        cut()
        return (kept.map(\.response), last != nil)
    }

    private mutating func cut() {
        kept.sort { $0.url.lexicographicallyPrecedes($1.url) }
        guard kept.count > limit else { return }
        let end = kept[limit - 1].url
        let whole = kept.prefix { !end.lexicographicallyPrecedes($0.url) }
        if whole.count < kept.count { last = end }
        kept = Array(whole)
    }
}
