// The state of validations: the stored responses that one may confirm, those whose last one failed, and the
// capabilities of their origins.

import CacheStore
import EventLoop
import HTTPCaching
import HTTPWire
import Synchronization

/// The stored responses that a validation for one request may confirm. Sendable: immutable.
final class RevalidationCandidates: Sendable {
    let ask: CacheRequest
    /// The response that the request selects; nil on a Vary miss.
    let stale: StoredResponse?
    /// All candidates: first those that the request selects, with the stale one in front; then those of other requests
    /// with a strong entity tag, because a weak one may name another coding of the same representation (RFC 9111
    /// section 4.3.4).
    let all: [StoredResponse]

    init(_ ask: CacheRequest, _ stale: StoredResponse?, _ stored: [StoredResponse]) {
        self.ask = ask
        self.stale = stale
        // A document that another mapping made is no candidate: the origin's bytes may be the same, and the document is
        // not. Nor is a response that was stored under a weaker expectation.
        let stored = stored.filter { $0.head.isMapped(as: ask.policy) && $0.head.isExpected(by: ask.policy) }
        let others = stored.filter { other in stale.map { !other.isSameVariant(as: $0) } ?? true }
        // An answer to one user must not update the responses of others.
        let isOwn = ask.request.fields.contains(.authorization)
        var selection = VariantSelection(ask.request)
        var (selected, named): ([StoredResponse], [StoredResponse]) = ([], [])
        for other in others {
            if selection.selects(other.head) {
                selected.append(other)
            } else if !isOwn, let tag = other.head.fields.first(.etag), !tag.hasPrefix("W/") {
                named.append(other)
            }
        }
        all = (stale.map { [$0] } ?? []) + selected + named
    }

    /// The candidate that an origin most probably confirms.
    var preferred: StoredResponse? { all.first }

    func isSelected(_ response: StoredResponse) -> Bool {
        response === stale || Caching.selects(stored: response.head, request: ask.request)
    }

    /// The check to send; nil if there is nothing to check.
    /// - Parameter byGet: whether a HEAD is not sufficient.
    func check(capabilities: OriginCapabilities, byGet: Bool = false) -> Revalidation? {
        // A response to POST is fetched again, because POST has neither HEAD nor conditions.
        if ask.content != nil { return nil }
        return Caching.revalidation(
            request: ask.request,
            stored: stale?.head,
            variants: all.filter { $0 !== stale }.map(\.head),
            policy: ask.policy,
            capabilities: capabilities,
            forceConditional: byGet
        )
    }
}

/// Applies the answer of a validation to the stored responses. Sendable: immutable.
final class VariantUpdate: Sendable {
    let context: FetchContext
    let known: RevalidationCandidates
    let token: InvalidationToken
    let answer: ResponseHead
    /// The times of the validation's answer.
    let times: ResponseTimes

    init(
        _ context: FetchContext,
        _ known: RevalidationCandidates,
        _ token: InvalidationToken,
        _ answer: ResponseHead,
        _ times: ResponseTimes
    ) {
        self.context = context
        self.known = known
        self.token = token
        self.answer = answer
        self.times = times
    }

    private var ask: CacheRequest { known.ask }

    /// Updates the stored responses that a 304 identifies (RFC 9111 section 4.3.4).
    /// - Returns: the response to answer with; nil if the 304 identifies none.
    func by304(_ check: Revalidation, on loop: isolated EventLoop) async -> StoredResponse? {
        let updated = Caching.variantsUpdated(
            by: answer.fields,
            among: known.all.map(\.head),
            asked: check
        ).map { known.all[$0] }
        var chosen: StoredResponse?
        var other: StoredResponse?
        for response in updated {
            let isSelected = known.isSelected(response)
            let fresh = await freshen(response, freshened(response, check, isSelected: isSelected), on: loop)
            if isSelected, chosen == nil || response === known.stale { chosen = fresh }
            other = other ?? fresh
        }
        if chosen != nil { return chosen }
        guard let other else { return nil }
        // The response of another request serves this one, too: it is stored again under the fields that select it now.
        var head = freshened(other, check, isSelected: true)
        head.varyFields = head.selectingFields(of: ask.request)
        head.keepVariantKey()
        return await freshen(other, head, isOther: true, on: loop)
    }

    /// Updates, or makes stale, each stored response that the request selects, by the answer to a HEAD (RFC 9111
    /// section 4.3.5).
    /// - Returns: a response that is current; nil if the answer confirmed none.
    func byHead(_ check: Revalidation?, on loop: isolated EventLoop) async -> StoredResponse? {
        if answer.status == 304 {
            guard let check else { return nil }
            return await by304(check, on: loop)
        }
        var chosen: StoredResponse?
        for response in known.all where known.isSelected(response) {
            let verdict = Caching.judgeHead(
                stored: response.head,
                headAnswer: answer,
                times: times,
                request: ask.request,
                policy: ask.policy
            )
            switch verdict {
            case .unchanged(let head):
                let fresh = await freshen(response, head, on: loop)
                chosen = chosen ?? fresh
            case .changed(.etag), .changed(.lastModified), .changed(.length):
                // A check keeps the response that it is for, because that may still answer if the fetch fails.
                if check == nil || response !== known.stale { await outdate(response, check, on: loop) }
            case .gone where check == nil && ask.policy.gone == .remove: await outdate(response, check, on: loop)
            case .changed, .gone, .failed: break
            }
        }
        return chosen
    }

    private func outdate(_ response: StoredResponse, _ check: Revalidation?, on loop: isolated EventLoop) async {
        // A write to the disk that began before must not undo this. A validation's own fetch must still be stored, so
        // it invalidates nothing.
        if check == nil { context.invalidations.invalidate(response.key) }
        await context.store.outdate(response, ask, since: times.responseTime, on: loop)
    }

    private func freshened(_ response: StoredResponse, _ check: Revalidation, isSelected: Bool) -> StoredHead {
        Caching.freshened(
            stored: response.head,
            by: answer,
            times: times,
            request: isSelected ? ask.request : nil,
            policy: ask.policy,
            byHead: check.kind == .head
        )
    }

    private func freshen(
        _ response: StoredResponse,
        _ head: StoredHead,
        isOther: Bool = false,
        on loop: isolated EventLoop
    ) async -> StoredResponse {
        await context.store.freshen(response, head: head, ask: ask, token: token, isOther: isOther, on: loop)
    }
}

// MARK: - Failed validations

/// The validations that failed. They are forgotten at a restart, and limited. Sendable: the state is under its own
/// mutex.
final class FailedChecks: Sendable {
    private struct Entry {
        /// The time of the failure, Unix seconds.
        var since: Int64
        var until: Int64
        var check: FailedCheck
    }

    private static let limit = 10_000

    private let entries = Mutex<[UInt64: Entry]>([:])
    /// The number of entries; while it is zero, a lookup takes no mutex.
    private let count = Atomic<Int>(0)

    /// Remembers the failed check of a key by the key's hash: a collision costs a check that comes later, never an
    /// answer.
    /// - Parameters:
    ///   - now: Unix seconds.
    ///   - pause: seconds.
    func note(_ key: CacheKey, _ check: FailedCheck, now: Int64, pause: Int64) {
        guard pause > 0 else { return }
        entries.withLock { entries in
            if entries.count >= Self.limit { entries = entries.filter { $0.value.until > now } }
            if entries.count >= Self.limit { entries.removeAll(keepingCapacity: true) }
            entries[key.hash] = Entry(since: now, until: now.addingReportingOverflow(pause).partialValue, check: check)
            count.store(entries.count, ordering: .relaxed)
        }
    }

    /// Forgets a key, because a check or a fetch has succeeded.
    func forget(_ key: CacheKey) {
        guard count.load(ordering: .relaxed) > 0 else { return }
        entries.withLock { entries in
            entries[key.hash] = nil
            count.store(entries.count, ordering: .relaxed)
        }
    }

    /// The time until which the next validation of a key is delayed, Unix seconds; nil if it is not delayed.
    func pause(_ key: CacheKey, now: Int64) -> Int64? {
        guard count.load(ordering: .relaxed) > 0 else { return nil }
        return entries.withLock { $0[key.hash].flatMap { $0.until > now ? $0.until : nil } }
    }

    /// The failed check of a key whose pause is not over; nil if there is none.
    func check(_ key: CacheKey, now: Int64) -> FailedCheck? {
        guard count.load(ordering: .relaxed) > 0 else { return nil }
        return entries.withLock { entries in
            guard let entry = entries[key.hash], entry.since <= now, entry.until > now else { return nil }
            return entry.check
        }
    }
}

// MARK: - What origins can do

/// The capabilities of origins. They are forgotten at a restart, and limited. Sendable: the state is under its own
/// mutex.
final class OriginCapabilityTable: Sendable {
    private static let limit = 4096
    private let origins = Mutex<[[UInt8]: OriginCapabilities]>([:])

    /// The capabilities of the origin that a key belongs to, as they count at `now`, in Unix seconds.
    subscript(key: CacheKey, now: Int64) -> OriginCapabilities {
        let capabilities = origins.withLock { $0[key.originBytes] ?? OriginCapabilities() }
        return capabilities.current(at: now)
    }

    /// Updates the capabilities by an answer of the key's origin.
    func note(_ key: CacheKey, _ learn: (inout OriginCapabilities) -> Void) {
        let origin = key.originBytes
        origins.withLock { origins in
            if origins.count >= Self.limit, origins[origin] == nil { origins.removeAll(keepingCapacity: true) }
            learn(&origins[origin, default: OriginCapabilities()])
        }
    }
}
