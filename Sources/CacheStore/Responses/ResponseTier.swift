// What a tier behind memory promises, and what a store and its tiers say to each other: questions, findings, commits
// and refusals.

package import EventLoop
package import HTTPCaching
import Synchronization

/// A place for stored responses behind memory: the disk of this machine, or a server that several stores share.
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
/// What a store holds in memory it answers with while that is fresh, whoever has invalidated it elsewhere. A shared
/// tier that hears of invalidations by others tells them (``listen(_:)``), and the store lets go of what they concern.
package protocol ResponseTier: AnyObject, Sendable {
    /// What `Cache-Status`, `explain` and listings call it.
    var name: StoreTier { get }
    /// Other stores change it, too.
    var isShared: Bool { get }
    /// Rules and pins that outlive the process with what the tier stores; nil where it keeps none.
    var keptGenerations: Invalidations? { get }
    /// Threads of its own, for whoever watches that none stands still.
    var threads: [IOPool] { get }
    var statistics: TierStatistics { get }

    // MARK: What is known without waiting

    /// False only where the tier has nothing of the key.
    func mayHold(_ key: CacheKey) -> Bool
    /// Whether it is known to have a variant besides these that came at `time` (Unix seconds) or later. False may be
    /// wrong: then memory answers with what it has.
    func isKnownToHold(_ key: CacheKey, since time: Int64, besides heads: [StoredHead]) -> Bool
    /// What is known of the variant that `head` is.
    func known(_ key: CacheKey, _ head: StoredHead) -> TierKnowledge
    /// Why a body of so many bytes would not be taken now.
    func refusal(of bytes: Int) -> TierRefusal?

    // MARK: Finding

    /// What the tier has of a key. A response of which nothing is left, or that is damaged, is left out.
    func find(_ question: TierQuestion) async throws(TierError) -> TierAnswer
    /// The response of a finding that has none yet, with its body.
    func open(_ finding: TierFinding, _ question: TierQuestion) async throws(TierError) -> StoredResponse

    // MARK: Changing

    /// Stores a complete response in the place of the same variant. Nothing of it is found before all of it is stored.
    func commit(_ commit: TierCommit) async throws(TierError)
    /// Gives a stored response the head that a check has brought; one that has been replaced is left alone.
    /// A tier that cannot tell whether the body it has is the one that was checked stores both anew, which
    /// is what it does by default.
    /// - Parameters:
    ///   - response: as it was.
    ///   - commit: the new head, the same body, and the token of the check.
    func freshen(_ response: TierReference, _ commit: TierCommit) async throws(TierError)
    /// Removes a response, unless a later one has taken its place. Does not wait; takes effect before any later call.
    func remove(_ response: TierReference)
    /// Removes every variant of a key. Does not wait; takes effect before any later call.
    func remove(_ key: CacheKey)

    // MARK: Invalidation

    /// Returns when rules in force outlive the process and hold for every store, or what they concern is gone.
    /// - Parameter number: the result of ``Invalidations/invalidate(_:)``.
    func invalidate(_ rules: [InvalidationRule], number: UInt64) async
    /// Puts purges in force for what the tier holds, which may go behind; soft ones make it stale.
    /// - Parameter number: as ``Invalidations/purge(_:now:isCountedFirst:)`` has said.
    /// - Returns: how many stored responses they concern.
    func purge(_ rules: [PurgeRule], number: UInt64) async -> Int
    /// Removes behind what the hard rules in force concern. Does not wait.
    func sweep()
    /// Waits until nothing is being swept.
    func settleSweep() async
    /// A URL was pinned, or let go of.
    func takeOverPin(_ url: String) async
    /// Tells what other stores have invalidated, on any thread; called once, before anything is asked.
    func listen(_ heard: @escaping @Sendable (TierNews) -> Void)

    // MARK: Listing

    /// Some of what a query selects, by URL: all that is stored under a URL is told at once.
    func list(_ query: ListQuery, pinned: [String], limit: Int) async throws -> (rows: [TierRow], end: String?)
    /// What some rows are about; those that have gone since are left out.
    func heads(of rows: [TierRow]) async -> [TierListing]

    // MARK: Housekeeping

    /// Keeps to the limits; called every few seconds. Does not wait.
    func tend()
    /// Makes what somebody has removed of its folder again, and its mark first; whoever puts something else into that folder
    /// calls this before. Blocks: not on a loop.
    /// - Throws: ``TierError/unavailable(_:)`` where it cannot be made, or is somebody else's now.
    func makeWhole() throws(TierError)
    /// Writes what is to be found again; later questions find nothing. Blocks: not on a loop.
    func close()
}

/// What most tiers have nothing to do for.
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

/// A tier of files on this machine: it gives arriving bodies their files, and its open files answer on the fast path.
package protocol FileTier: ResponseTier {
    /// The file of a body that arrives and may be stored; no I/O happens before its first bytes.
    /// - Parameter expected: the declared length of the body in bytes; zero where none is declared.
    func makeSpill(expected: Int64) -> SpillFile
    /// A file for the parts of one representation; no I/O happens before its first bytes.
    func makeSparse() -> SparseFile
    /// Stores a seed; its file is copied, not held.
    func adopt(_ copy: SeedCopy, _ commit: TierCommit) async throws(TierError)
    /// Copies the body of a stored response to a plain file, for programs that read it without asking.
    /// - Parameters:
    ///   - name: a relative path without empty or dot segments.
    ///   - onlyIfMissing: leaves a file alone that is there.
    func keepAsFile(_ key: CacheKey, _ head: StoredHead?, as name: String, onlyIfMissing: Bool) async throws
    /// Makes a response whose file stays open ready for the fast path. Does not wait.
    func makeReady(_ response: StoredResponse, headFormatID: UInt64, _ make: () -> ResidentResponse?)
    /// The fast path: the open file of a key that has no other. Does not wait, and does not look at rules.
    func readyFile(_ keyBytes: UnsafeRawBufferPointer, where selects: (ResidentResponse) -> Bool) -> ReadyFile?
    /// Counts an answer. Does not wait.
    func noteUse(of ready: ReadyFile)
}

// MARK: - Questions and answers

/// Why a tier has not done what it was asked for. Each of them is a miss for whoever finds, and
/// is answered all the same.
package enum TierError: Error, Sendable, Equatable, CustomStringConvertible {
    /// The response has gone since it was found.
    case absent
    /// It did not match its checksums and has been removed.
    case damaged
    /// Its key, or a name of it, was invalidated since its fetch began.
    case invalidated
    /// A later response of the same variant is stored already.
    case outdated
    /// Its body is too long, cannot be read, or there is no room for it.
    case refused(BodyError)
    /// The tier cannot be reached, has failed or is closed; the text says how.
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

/// What a tier knows of one variant without waiting.
package enum TierKnowledge: Sendable, Equatable {
    /// - `number`: of the fetch that brought it.
    /// - `storedAt`: when it arrived or was last confirmed, Unix seconds.
    case holds(number: UInt64, storedAt: Int64)
    case lacks
    /// It would have to ask somebody.
    case unknown
}

/// Why a tier would not take a body now.
package enum TierRefusal: Sendable, Equatable {
    /// It cannot be written, or not be reached.
    case fails
    case noRoom
}

/// What is asked of a tier.
package struct TierQuestion: Sendable {
    package let key: CacheKey
    /// Variants that the store has already: they are left out.
    package let heads: [StoredHead]
    package let policy: CachePolicy
    /// False for whoever looks without answering: that is not counted, and keeps nothing from being evicted.
    package let isUse: Bool
    /// A body is wanted, so that a response which is found alone comes with it.
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

/// What a tier has of a key.
package struct TierAnswer: Sendable {
    /// The newest first.
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
    /// The number of the fetch that brought its body, as the tier was told.
    package let number: UInt64
    /// With its body, where the tier had it at hand.
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

/// Which stored response a change is about: the variant that `head` is, up to one that is later.
package struct TierReference: Sendable {
    package let key: CacheKey
    package let head: StoredHead
    /// The number of its fetch, in the order of the store that changes it.
    package let number: UInt64
    /// The last moment of a shared tier that the store knew when it had the response; 0 elsewhere.
    package let moment: UInt64

    package init(_ key: CacheKey, _ head: StoredHead, number: UInt64, moment: UInt64 = 0) {
        self.key = key
        self.head = head
        self.number = number
        self.moment = moment
    }
}

/// A complete response on its way into a tier.
package struct TierCommit: Sendable {
    package let key: CacheKey
    package let head: StoredHead
    package let body: Body
    /// The file that holds the body, where this tier gave it; nil for a body in memory.
    package let spill: SpillFile?
    /// Keeps invalidations of this store waiting while `token` is looked at.
    package let invalidations: Invalidations
    /// Noted when the fetch began: nothing is stored that was invalidated since.
    package let token: InvalidationToken
    /// Responses of one key at most, at least 1; the one that was stored longest ago goes.
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

/// What other stores have invalidated in a tier that they share.
package enum TierNews: Sendable {
    case keys([CacheKey])
    case rules([InvalidationRule])
    /// It cannot be told what: the tier was out of reach for a while.
    case everything
}

/// What a tier has done and holds. What a tier does not have stays zero.
package struct TierStatistics: Sendable, Equatable {
    package var objects = 0
    /// Bytes of what is stored.
    package var bytes: Int64 = 0
    /// Bytes at most.
    package var limit: Int64 = 0
    package var hits = 0
    package var misses = 0
    package var evictions = 0
    package var commits = 0
    /// Responses that were not stored for want of room, or because they are too large.
    package var refusals = 0
    /// Stored responses that were removed because they did not match their checksums, or could not be read.
    package var damaged = 0
    /// It does not know everything yet that it holds: an index is being loaded, or folders are walked.
    package var isRebuilding = false
    /// Bytes of memory that its index takes.
    package var indexBytes = 0
    /// Files that stay open for the next answer.
    package var openFiles = 0
    /// What has gone wrong, logged or not.
    package var troubles = 0

    package init() {}
}

/// A row of a listing: what a tier reads the head of when it is wanted.
package struct TierRow: Sendable {
    /// Names the stored response within its tier.
    package let name: String
    package let url: String

    package init(name: String, url: String) {
        self.name = name
        self.url = url
    }
}

/// What a row is about.
package struct TierListing: Sendable {
    package let key: CacheKey
    package let head: StoredHead
    /// Bytes of the body.
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

/// The moments that a shared tier has told, with the store's numbers at which it did. They are thinned out towards the
/// past: what is found then is an earlier moment, with which a tier refuses more than it must, and never less.
///
/// Sendable: the history is under a mutex, held for a search.
package final class TierMoments: Sendable {
    private struct Pair {
        let number: UInt64
        let moment: UInt64
    }

    /// Pairs at most.
    private static let most = 1024
    private let history = Mutex<[Pair]>([])

    package init() {}

    /// The tier has told a moment.
    /// - Parameter invalidations: of the store.
    /// - Returns: the store's number for what the tier told with it: what begins later has a greater one.
    package func note(_ moment: UInt64, _ invalidations: Invalidations) -> UInt64 {
        history.withLock { history in
            let number = invalidations.nextNumber()
            // An answer that others have overtaken: a later moment is known already.
            guard moment > history.last?.moment ?? 0 else { return number }
            if history.count == Self.most {
                history = history.indices.filter { $0 % 2 == 1 }.map { history[$0] }
            }
            history.append(Pair(number: number, moment: moment))
            return number
        }
    }

    /// The last moment that had been told when what has this number began; 0 where none is remembered.
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

/// Sendable: see `timer`.
package final class TierWatch: @unchecked Sendable {  // `timer` is touched on the loop only that both methods run on
    /// Nanoseconds between two checks.
    package static let interval: UInt64 = 10_000_000_000
    private var timer: LoopTimer?

    package init() {}

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

    /// Before the loop ends.
    package func stop(on loop: isolated EventLoop) { timer = nil }
}
