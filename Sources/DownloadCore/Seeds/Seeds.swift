// Seed folders: the answers from them, the import of their files into the store, and the export of stored responses
// into a folder.

package import CacheStore
import EventLoop
package import HTTPCaching
import HTTPWire
import Policies
import Synchronization

/// Answers from seed folders, which precede stored responses.
///
/// Sendable: all members are.
package final class SeedAnswers: Sendable {
    private let context: FetchContext
    private let answers: AnswerMaker
    private let count = Atomic<Int>(0)

    init(_ context: FetchContext, _ answers: AnswerMaker) {
        self.context = context
        self.answers = answers
    }

    /// The number of answers from seed folders so far.
    package var answerCount: Int { count.load(ordering: .relaxed) }

    /// The answer from a pinned seed, which is never checked and never too old; nil if there is none. A request with
    /// `no-cache` goes to the origin instead, unless the daemon is offline.
    // A separate function, so that a search that waits has none of its variables in its frame.
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

    /// The response of the pinned seed to a request; nil if the request goes to the origin instead.
    package func pinned(_ ask: CacheRequest, _ seed: SeedFolder) async -> StoredResponse? {
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
        guard seed.mode == .imported, ask.content == nil, seed.mayHave(ask.key) else { return false }
        var hasStored = false
        for copy in await seed.take(ask.key, expecting: PhasePlan.seedExpectation(ask.phases, ask.policy)) {
            if case .imported = await adopt(copy, as: ask.key, ask.policy) { hasStored = true }
        }
        return hasStored
    }

    /// Stores one seed, stale at once unless its folder gives it a freshness lifetime. A stored response that is at
    /// least as new stays. It blocks, so it must not run on a loop's thread.
    package func adopt(_ copy: SeedCopy, as key: CacheKey, _ policy: CachePolicy) async -> SeedImport {
        var head = copy.head
        // The caller has checked the content of the copy.
        head.expectation = policy.expectation
        if head.varyNames.isEmpty || head.varyNames.contains("*") { head.varyNames = [] }
        if case .refuse(let reason) = Caching.decideKeep(head, policy: policy), reason != .noFreshnessAndNoValidator,
            reason != .noValidator
        {
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

    /// A head that has just become stale, or becomes stale at `expiry`.
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

/// The result of importing one seed.
package enum SeedImport: Sendable, Equatable {
    case imported
    /// A response that is at least as new is stored.
    case kept
    /// The route's rules do not allow it to be stored.
    case refused(StoreRefusal)
    case failed(String)
}

// MARK: - Folders on the way into the store

/// Where in the store a seed goes: its key, its policy, and the expected content.
package struct SeedDestination: Sendable {
    package let key: CacheKey
    package let policy: CachePolicy
    /// The expected content; nil for any.
    package let expectation: SeedExpectation?

    package init(key: CacheKey, policy: CachePolicy, expectation: SeedExpectation?) {
        self.key = key
        self.policy = policy
        self.expectation = expectation
    }
}

/// The result of an import.
package struct SeedCopies: Sendable, Equatable {
    package var imported = 0
    /// The number of seeds for which a response at least as new was stored already.
    package var kept = 0
    /// The number of files whose URL cannot be derived from their name, or is not requested by any service.
    package var unknown = 0
    /// The number of seeds that the rules for their URL do not allow to be stored.
    package var refused = 0
    package var failed = 0
    /// The reason of the first failure; nil without one.
    package var firstError: String?

    package init() {}

    /// Imports each response of a folder of which none is stored yet.
    /// - Parameters:
    ///   - parents: URLs of folders that names of layout `docker` may come from.
    ///   - isEnding: called before each file; true omits the rest.
    ///   - destination: finds the destination of a file that may be the body of one of these URLs; nil if no service
    ///     requests any.
    package init(
        of folder: SeedFolder,
        into core: DownloadCore,
        parents: [String],
        isEnding: @Sendable () -> Bool,
        destination: @Sendable ([String]) -> SeedDestination?
    ) async {
        // While a tier is finding out what it holds, a stored response may look like an absent one, and would be
        // replaced.
        while core.store.statistics.isRebuilding, !isEnding() { try? await Task.sleep(for: .milliseconds(100)) }
        let (entries, unknown) = await folder.entries(parents: parents)
        self.unknown = unknown
        for entry in entries where !isEnding() {
            guard let found = destination(entry.urls) else {
                self.unknown += 1
                continue
            }
            guard let copy = await folder.take(entry.name, as: found.key, expecting: found.expectation) else {
                fail("\(entry.name) cannot be used; the log says why")
                continue
            }
            switch await core.seeds.adopt(copy, as: found.key, found.policy) {
            case .imported: imported += 1
            case .kept: kept += 1
            case .refused: refused += 1
            case .failed(let reason): fail("\(entry.name): \(reason)")
            }
        }
    }

    private mutating func fail(_ reason: String) {
        failed += 1
        firstError = firstError ?? reason
    }
}

// MARK: - Responses on the way into a folder

/// The result of an export.
package struct SeedExport: Sendable, Equatable {
    /// The number of responses that are in the folder now.
    package var written = 0
    /// The bytes of their bodies.
    package var bytes: Int64 = 0
    /// The number of responses that cannot become a seed, or were removed meanwhile.
    package var skipped = 0
    package var failed = 0
    /// The reason of the first failure; nil without one.
    package var firstError: String?

    package init() {}

    /// Exports the stored responses of a core into a folder.
    /// - Parameters:
    ///   - services: the services whose responses are taken from the tiers behind memory.
    ///   - only: the service whose responses are taken from memory; nil for all.
    ///   - isEnding: called before each response; true omits the rest.
    package init(
        of core: DownloadCore,
        services: [String],
        only: String?,
        to writer: SeedWriter,
        isEnding: @Sendable () -> Bool = { false }
    ) async {
        await core.store.forEachStored(services: services, only: only) { response in
            if isEnding() { return false }
            guard let response, Self.isFit(response), core.invalidations.verdict(response) != .gone else {
                skipped += 1
                return true
            }
            do {
                try await writer.write(response)
            } catch {
                failed += 1
                firstError = firstError ?? "\(response.key): \(error)"
            }
            return true
        }
        written = writer.tally.written
        bytes = writer.tally.bytes
    }

    /// Whether a response may answer every request for its URL, as a seed does: not one to a request with
    /// Authorization, and none that depends on more than the URL, such as the answer to a POST.
    private static func isFit(_ response: StoredResponse) -> Bool {
        guard response.head.requestMethod == .get, !response.head.hadAuthorization else { return false }
        // A request through an endpoint is determined by its URL alone.
        return response.key.extras?.split(separator: "\n").allSatisfy { $0.hasPrefix("endpoint ") } ?? true
    }
}
