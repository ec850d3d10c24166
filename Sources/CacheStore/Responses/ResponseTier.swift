// The contract of a tier behind memory, and the messages between a store and its tiers: questions, findings, commits
// and refusals.

package import EventLoop
package import HTTPCaching
import Synchronization

/// A tier of stored responses behind memory: the disk of this machine, or a server that several stores share.
///
/// A store asks its tiers in order, behind memory. A tier that fails costs a miss, and one that is slow costs its time;
/// neither costs a wrong answer. Whatever says "without waiting" is called on loops and under locks: it takes no longer
/// than a look into a table. Everything else may be called from any thread, and may suspend.
///
/// ## Order within one store
///
/// A store numbers its fetches, checks and invalidations (``Invalidations``): a greater number began later. A
/// tier that one store has for itself (``isShared`` is false) compares these numbers. It takes a response
/// only through ``Invalidations/ifUnchanged(_:_:)`` of its ``TierCommit``, so that no invalidation comes
/// between the look and the change.
///
/// ## Order between stores
///
/// The numbers of two stores come from two clocks and say nothing about each other. A shared tier therefore has an
/// order of its own: it counts *moments*, from 1, one more for each question and each change, whoever it comes from.
///
/// 1. Every ``TierAnswer`` has a moment of its own, and holds everything that was changed before it.
/// 2. Every ``TierCommit`` names the last moment that its store had been told when the fetch or check behind it *began*
///    (``TierMoments/last(before:)``). The tier keeps it with the response. Where something that concerns the response
///    was invalidated after that moment, it throws ``TierError/invalidated``; where the same variant is stored with a
///    later moment, ``TierError/outdated``. Equal moments are those of one store, and its numbers decide. An answer
///    that is known late makes a moment too old, and then the tier refuses more than it must, and never less.
/// 3. An invalidation holds for every store from when its call returns; for a call that does not wait, from
///    before the tier handles the next call of the same store. A tier that cannot carry one out answers nothing
///    until it has made up for it.
/// 4. A store gives what a shared tier hands over a number of its own, that of the answer: the number of another store
///    never meets one of its own.
///
/// A store answers with a fresh response in its memory even if another store has invalidated it. A shared tier that
/// learns of invalidations by other stores reports them (``listen(_:)``), and the store removes what they concern.
package protocol ResponseTier: AnyObject, Sendable {
    /// The name of the tier in `Cache-Status`, `explain` and listings.
    var name: StoreTier { get }
    /// Whether other stores change the tier, too.
    var isShared: Bool { get }
    /// The rules and pins that survive the process together with the stored responses; nil if the tier keeps none.
    var keptGenerations: Invalidations? { get }
    /// The tier's own threads, for the watchdog.
    var threads: [IOPool] { get }
    var statistics: TierStatistics { get }

    // MARK: What is known without waiting

    /// Whether the tier may have a response of the key; false only if it certainly has none.
    func mayHold(_ key: CacheKey) -> Bool
    /// Whether the tier is known to have a variant besides `heads` that came at `time` (Unix seconds) or later. A wrong
    /// false makes memory answer with what it has.
    func isKnownToHold(_ key: CacheKey, since time: Int64, besides heads: [StoredHead]) -> Bool
    /// The knowledge of the tier about the variant of `head`.
    func known(_ key: CacheKey, _ head: StoredHead) -> TierKnowledge
    /// The reason why a body of this size would not be stored at present; nil if it would.
    func refusal(of bytes: Int) -> TierRefusal?

    // MARK: Finding

    /// Finds the responses of a key. One that is gone or damaged is left out.
    func find(_ question: TierQuestion) async throws(TierError) -> TierAnswer
    /// Opens a finding without a response, with its body.
    func open(_ finding: TierFinding, _ question: TierQuestion) async throws(TierError) -> StoredResponse

    // MARK: Changing

    /// Stores a complete response, which replaces the same variant. Nothing of it is found before all of it is stored.
    func commit(_ commit: TierCommit) async throws(TierError)
    /// Stores the head that a validation has brought; a response that has been replaced is ignored. A tier that cannot
    /// tell whether its body is the validated one stores both anew, which is the default.
    /// - Parameters:
    ///   - response: the response before the validation.
    ///   - commit: the new head, the same body, and the token of the validation.
    func freshen(_ response: TierReference, _ commit: TierCommit) async throws(TierError)
    /// Removes a response, unless a later one has replaced it. Does not wait; takes effect before any later call.
    func remove(_ response: TierReference)
    /// Removes every variant of a key. Does not wait; takes effect before any later call.
    func remove(_ key: CacheKey)

    // MARK: Invalidation

    /// Returns when the rules in force survive the process and hold for every store, or when the responses that they
    /// affect are gone.
    /// - Parameter number: the result of ``Invalidations/invalidate(_:)``.
    func invalidate(_ rules: [InvalidationRule], number: UInt64) async
    /// Puts purges in force for what the tier holds, which may go behind; soft ones make it stale.
    /// - Parameter number: as ``Invalidations/purge(_:now:isCountedFirst:)`` has said.
    /// - Returns: how many stored responses they concern.
    func purge(_ rules: [PurgeRule], number: UInt64) async -> Int
    /// Removes the responses of hard rules in the background. Does not wait.
    func sweep()
    /// Waits until no such removal is under way.
    func settleSweep() async
    /// Applies the pinning or unpinning of a URL.
    func takeOverPin(_ url: String) async
    /// Sets the receiver of other stores' invalidations, which is called on any thread; called once, before any
    /// question.
    func listen(_ heard: @escaping @Sendable (TierNews) -> Void)

    // MARK: Listing

    /// Some rows that a query selects, by URL: all rows of a URL are returned together.
    func list(_ query: ListQuery, pinned: [String], limit: Int) async throws -> (rows: [TierRow], end: String?)
    /// The heads of some rows; responses that are gone are left out.
    func heads(of rows: [TierRow]) async -> [TierListing]

    // MARK: Housekeeping

    /// Enforces the limits; called every few seconds. Does not wait.
    func tend()
    /// Recreates removed parts of the tier's folder, its mark first; called before anything else is put into the
    /// folder. Blocks, so not on a loop.
    /// - Throws: ``TierError/unavailable(_:)`` if the folder cannot be created, or belongs to another owner now.
    func makeWhole() throws(TierError)
    /// Writes what has to survive; later questions find nothing. Blocks, so not on a loop.
    func close()
}

/// The defaults of functions that most tiers do not need.
extension ResponseTier {
    package var isShared: Bool { false }
    package var keptGenerations: Invalidations? { nil }
    package var threads: [IOPool] { [] }
    package func mayHold(_ key: CacheKey) -> Bool { true }
    package func isKnownToHold(_ key: CacheKey, since time: Int64, besides heads: [StoredHead]) -> Bool { false }
    package func known(_ key: CacheKey, _ head: StoredHead) -> TierKnowledge { .unknown }
    package func refusal(of bytes: Int) -> TierRefusal? { nil }
    package func freshen(_ response: TierReference, _ commit: TierCommit) async throws(TierError) {
        try await self.commit(commit)
    }
    package func sweep() {}
    package func settleSweep() async {}
    package func takeOverPin(_ url: String) async {}
    package func listen(_ heard: @escaping @Sendable (TierNews) -> Void) {}
    package func tend() {}
    package func makeWhole() throws(TierError) {}
    package func close() {}
}

/// A tier of files on this machine: it provides the files of arriving bodies, and its open files answer on the fast
/// path.
package protocol FileTier: ResponseTier {
    /// Makes the file of an arriving body that may be stored; no I/O happens before its first bytes.
    /// - Parameter expected: the declared length of the body in bytes; zero if none is declared.
    func makeSpill(expected: Int64) -> SpillFile
    /// Makes a file for the parts of one representation; no I/O happens before its first bytes.
    func makeSparse() -> SparseFile
    /// Stores a copy of a seed.
    func adopt(_ copy: SeedCopy, _ commit: TierCommit) async throws(TierError)
    /// Copies the body of a stored response to a plain file, for programs that read it without HTTP.
    /// - Parameters:
    ///   - name: a relative path without empty or dot segments.
    ///   - onlyIfMissing: whether an existing file is left unchanged.
    func keepAsFile(_ key: CacheKey, _ head: StoredHead?, as name: String, onlyIfMissing: Bool) async throws
    /// Prepares a response with an open file for the fast path. Does not wait.
    func makeReady(_ response: StoredResponse, headFormatID: UInt64, _ make: () -> ResidentResponse?)
    /// The fast path: the open file of a key that has only one. Does not wait, and does not check rules.
    func readyFile(_ keyBytes: UnsafeRawBufferPointer, where selects: (ResidentResponse) -> Bool) -> ReadyFile?
    /// Records an answer. Does not wait.
    func noteUse(of ready: ReadyFile)
}

// MARK: - Questions and answers

/// The reason why a tier has not done what it was asked for. Each of them is a miss for a lookup, and does not affect
/// an answer that is under way.
package enum TierError: Error, Sendable, Equatable, CustomStringConvertible {
    /// The response is gone since it was found.
    case absent
    /// The response did not match its checksums and has been removed.
    case damaged
    /// The key, or a name of the response, was invalidated since its fetch began.
    case invalidated
    /// A later response of the same variant is stored already.
    case outdated
    /// The body is too long, cannot be read, or has no room.
    case refused(BodyError)
    /// The tier cannot be reached, has failed or is closed; the text is the reason.
    case unavailable(String)

    package var description: String {
        switch self {
        case .absent: "no such stored response"
        case .damaged: "the stored response was damaged and has been removed"
        case .invalidated: "the key was invalidated while the response arrived"
        case .outdated: "a later response is stored already"
        case .refused(let error): "the response was not stored: \(error)"
        case .unavailable(let reason): reason
        }
    }
}

/// The knowledge of a tier about one variant, without waiting.
package enum TierKnowledge: Sendable, Equatable {
    /// The tier has the variant.
    /// - `number`: the number of the fetch that brought it.
    /// - `storedAt`: its arrival or last validation in Unix seconds.
    case holds(number: UInt64, storedAt: Int64)
    case lacks
    /// The tier would have to ask another process.
    case unknown
}

/// The reason why a tier would not store a body at present.
package enum TierRefusal: Sendable, Equatable {
    /// The tier cannot be written, or cannot be reached.
    case fails
    case noRoom
}

/// A question to a tier.
package struct TierQuestion: Sendable {
    package let key: CacheKey
    /// The variants that the store already has, which are left out of the answer.
    package let heads: [StoredHead]
    package let policy: CachePolicy
    /// Whether the answer is used for a request; if not, it is not counted, and does not affect evictions.
    package let isUse: Bool
    /// Whether a body is wanted, so that a single response is returned with it.
    package let wantsBody: Bool

    package init(
        _ key: CacheKey,
        besides heads: [StoredHead] = [],
        policy: CachePolicy,
        isUse: Bool = true,
        wantsBody: Bool = true
    ) {
        self.key = key
        self.heads = heads
        self.policy = policy
        self.isUse = isUse
        self.wantsBody = wantsBody
    }
}

/// The answer of a tier for a key.
package struct TierAnswer: Sendable {
    /// The responses, the newest first.
    package var findings: [TierFinding]
    /// The moment of a shared tier up to which every change is in the answer; 0 from other tiers.
    package var moment: UInt64

    package init(_ findings: [TierFinding], moment: UInt64 = 0) {
        self.findings = findings
        self.moment = moment
    }
}

/// One stored response of a tier.
package struct TierFinding: Sendable {
    package let key: CacheKey
    package let head: StoredHead
    /// The number of the fetch that brought the body, as it was committed.
    package let number: UInt64
    /// The response with its body, if the tier had it at hand.
    package let response: StoredResponse?

    package init(_ key: CacheKey, _ head: StoredHead, number: UInt64, response: StoredResponse? = nil) {
        self.key = key
        self.head = head
        self.number = number
        self.response = response
    }

    package init(_ response: StoredResponse) {
        self.init(response.key, response.head, number: response.number, response: response)
    }
}

/// The stored response that a change concerns: the variant of `head`, unless a later fetch has replaced it.
package struct TierReference: Sendable {
    package let key: CacheKey
    package let head: StoredHead
    /// The number of the response's fetch, in the order of the store that changes it.
    package let number: UInt64
    /// The last moment of a shared tier that the store knew when it had the response; 0 for other tiers.
    package let moment: UInt64

    package init(_ key: CacheKey, _ head: StoredHead, number: UInt64, moment: UInt64 = 0) {
        self.key = key
        self.head = head
        self.number = number
        self.moment = moment
    }
}

/// A complete response that is to be stored in a tier.
package struct TierCommit: Sendable {
    package let key: CacheKey
    package let head: StoredHead
    package let body: Body
    /// The file of the body, if this tier provided it; nil for a body in memory.
    package let spill: SpillFile?
    /// The invalidations of this store, which wait while `token` is checked.
    package let invalidations: Invalidations
    /// The token from the beginning of the fetch: nothing is stored that was invalidated since.
    package let token: InvalidationToken
    /// The most responses of one key, at least 1; the one that was stored longest ago is removed.
    package let maxVariants: Int
    /// The last moment of a shared tier that the store had been told when the fetch began; 0 for other tiers.
    package let moment: UInt64

    package init(
        _ key: CacheKey,
        _ head: StoredHead,
        _ body: Body,
        spill: SpillFile? = nil,
        invalidations: Invalidations,
        token: InvalidationToken,
        maxVariants: Int,
        moment: UInt64 = 0
    ) {
        self.key = key
        self.head = head
        self.body = body
        self.spill = spill
        self.invalidations = invalidations
        self.token = token
        self.maxVariants = maxVariants
        self.moment = moment
    }
}

/// The invalidations of other stores in a shared tier.
package enum TierNews: Sendable {
    case keys([CacheKey])
    case rules([InvalidationRule])
    /// The tier was out of reach for a while, so that the invalidations are unknown.
    case everything
}

/// The counters and sizes of a tier; figures that a tier lacks are zero.
package struct TierStatistics: Sendable, Equatable {
    package var objects = 0
    /// The bytes of stored responses.
    package var bytes: Int64 = 0
    /// The most bytes.
    package var limit: Int64 = 0
    package var hits = 0
    package var misses = 0
    package var evictions = 0
    package var commits = 0
    /// The number of responses that were not stored because of missing room, or because they are too large.
    package var refusals = 0
    /// The number of stored responses that were removed because they did not match their checksums, or could not be
    /// read.
    package var damaged = 0
    /// Whether the tier does not know all its responses yet, because an index is being loaded, or folders are walked.
    package var isRebuilding = false
    /// The bytes of memory that the index takes.
    package var indexBytes = 0
    /// The number of files that stay open for the next answer.
    package var openFiles = 0
    /// The number of failures, logged or not.
    package var troubles = 0

    package init() {}
}

/// A row of a listing, whose head the tier reads on demand.
package struct TierRow: Sendable {
    /// The name of the stored response within its tier.
    package let name: String
    package let url: String

    package init(name: String, url: String) {
        self.name = name
        self.url = url
    }
}

/// The stored response of a row.
package struct TierListing: Sendable {
    package let key: CacheKey
    package let head: StoredHead
    /// The bytes of the body.
    package let length: Int64
    package let number: UInt64

    package init(_ key: CacheKey, _ head: StoredHead, length: Int64, number: UInt64) {
        self.key = key
        self.head = head
        self.length = length
        self.number = number
    }
}

// MARK: - Moments of a shared tier

/// The moments that a shared tier has reported, each with the store's number at that time. Older ones are thinned out:
/// an earlier moment is found then, with which a tier refuses more than it must, and never less.
///
/// Sendable: the history is under a mutex, held for a search.
package final class TierMoments: Sendable {
    private struct Pair {
        let number: UInt64
        let moment: UInt64
    }

    /// The most pairs.
    private static let most = 1024
    private let history = Mutex<[Pair]>([])

    package init() {}

    /// Records a moment of the tier.
    /// - Parameter invalidations: the store's invalidations.
    /// - Returns: the store's number for the tier's answer; everything that begins later has a greater one.
    package func note(_ moment: UInt64, _ invalidations: Invalidations) -> UInt64 {
        history.withLock { history in
            let number = invalidations.nextNumber()
            // Others have overtaken this answer: a later moment is known already.
            guard moment > history.last?.moment ?? 0 else { return number }
            if history.count == Self.most {
                history = history.indices.filter { $0 % 2 == 1 }.map { history[$0] }
            }
            history.append(Pair(number: number, moment: moment))
            return number
        }
    }

    /// The last moment that was reported before the beginning of the work with this number; 0 if none is remembered.
    package func last(before number: UInt64) -> UInt64 {
        history.withLock { history in
            var (low, high) = (0, history.count)
            while low < high {
                let middle = (low + high) / 2
                if history[middle].number <= number { low = middle + 1 } else { high = middle }
            }
            return low == 0 ? 0 : history[low - 1].moment
        }
    }
}

// MARK: - Looks from time to time

/// The periodic maintenance of tiers. Sendable: see `timer`.
package final class TierWatch: @unchecked Sendable {  // `timer` is touched on the loop only that both methods run on
    /// The nanoseconds between two calls.
    package static let interval: UInt64 = 10_000_000_000
    private var timer: LoopTimer?

    package init() {}

    /// Starts the maintenance.
    /// - Parameter tend: called every few seconds, on the loop.
    package func start(
        every interval: UInt64 = interval,
        on loop: isolated EventLoop,
        _ tend: @escaping @Sendable () -> Void
    ) {
        let timer = LoopTimer(on: loop) { tend() }
        timer.start(every: interval)
        self.timer = timer
    }

    /// Stops the maintenance; before the loop ends.
    package func stop(on loop: isolated EventLoop) { timer = nil }
}
