// Answers from seed folders. They come before the store's, whatever it holds.

import CacheStore
import EventLoop
package import HTTPCaching
import HTTPWire
import Policies
import Synchronization

/// Sendable: what it holds is.
final class SeedAnswers: Sendable {
    private let context: FetchContext
    private let answers: AnswerMaker
    private let count = Atomic<Int>(0)

    init(_ context: FetchContext, _ answers: AnswerMaker) {
        self.context = context
        self.answers = answers
    }

    /// Answers that came from seed folders so far.
    var answerCount: Int { count.load(ordering: .relaxed) }

    /// The answer of a pinned seed, which is never checked and never too old; nil where there is none. A request with
    /// `no-cache` goes to the origin instead, unless the daemon is offline.
    // Not in the frame of a search, which few of them need.
    @inline(never) func answer(_ ask: CacheRequest, _ seed: SeedFolder, on loop: isolated EventLoop) async -> Answer? {
        guard let response = await pinned(ask, seed) else { return nil }
        count.wrappingAdd(1, ordering: .relaxed)
        let status = CacheStatus(cacheName: answers.cacheName, hit: true, detail: StoreTier.seed.rawValue)
        return answers.stored(
            ask,
            response,
            age: Caching.age(response.head, now: context.clock.now()),
            status,
            on: loop
        )
    }

    /// ``DownloadCore/pinned(_:_:)``
    func pinned(_ ask: CacheRequest, _ seed: SeedFolder) async -> StoredResponse? {
        guard seed.mode == .pinned, ask.content == nil, ask.request.method == .get || ask.request.method == .head,
            context.isOffline || !CacheControl(request: ask.request.fields).noCache
        else { return nil }
        return await seed.lookup(
            ask.key,
            request: ask.request,
            expecting: PhasePlan.seedExpectation(ask.phases, ask.policy)
        )
    }

    // MARK: - Imports

    /// Imports the files of a seed folder that match a request without a stored response, each file once.
    /// - Returns: whether a response was stored, so that the store should be searched again.
    func imports(_ ask: CacheRequest, _ seed: SeedFolder) async -> Bool {
        guard seed.mode == .import, ask.content == nil, seed.mayHave(ask.key) else { return false }
        var hasStored = false
        for copy in await seed.take(ask.key, expecting: PhasePlan.seedExpectation(ask.phases, ask.policy)) {
            if case .imported = await adopt(copy, as: ask.key, ask.policy) { hasStored = true }
        }
        return hasStored
    }

    /// ``DownloadCore/adopt(_:as:_:)``
    func adopt(_ copy: SeedCopy, as key: CacheKey, _ policy: CachePolicy) async -> SeedImport {
        var head = copy.head
        // Whoever took the copy has looked into it.
        head.expectation = policy.expectation
        if head.varyNames.isEmpty || head.varyNames.contains("*") { head.varyNames = [] }
        if case .refuse(let reason) = Caching.decideKeep(head, policy: policy), reason != .noFreshnessAndNoValidator {
            return .refused(reason)
        }
        let since = head.validatedAt
        if context.store.isKnownToHold(key, since: since) { return .kept }
        head = Self.stale(head, expiry: copy.expiry, policy, now: context.clock.now())
        let token = context.invalidations.token(for: key).concerned(by: InvalidationRule.concerning(head, key))
        do {
            if policy.disk, try await context.store.adoptAsFile(copy, head, key, token, policy) { return .imported }
            guard policy.memory, context.store.takesInMemory(Int(clamping: head.bodyLength ?? .max)) else {
                return .refused(.cacheOff)
            }
            return try await context.store.adoptInMemory(copy, head, key, token, policy) ? .imported : .kept
        } catch {
            return .failed("\(error)")
        }
    }

    /// A head that has just become stale, or becomes it when `expiry` comes.
    private static func stale(_ head: StoredHead, expiry: Int64?, _ policy: CachePolicy, now: Int64) -> StoredHead {
        var head = head
        (head.requestTime, head.responseTime, head.validatedAt) = (now, now, now)
        (head.initialAge, head.receivedAge) = (0, nil)
        var left: Int64 = 0
        if let expiry, expiry > now {
            left = expiry - now
            head.fields.set(.date, HTTPDate.format(now))
            head.fields.set(.expires, HTTPDate.format(expiry))
        }
        let fresh = -Caching.staleness(head, policy: policy, now: now) - left
        guard fresh > 0 else { return head }
        if policy.mode == .library {
            // In library mode the lifetime counts from the moment when the response arrived.
            head.responseTime -= fresh
            head.requestTime -= fresh
        } else {
            head.initialAge = fresh
        }
        return head
    }
}

/// What became of one seed.
package enum SeedImport: Sendable, Equatable {
    case imported
    /// Something as new is stored.
    case kept
    /// The route's rules do not allow it to be stored.
    case refused(StoreRefusal)
    case failed(String)
}
