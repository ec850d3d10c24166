// What a tier behind memory promises: how stored responses are found, changed and invalidated in it,
// alone or beside other stores.

package import EventLoop
package import HTTPCaching

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
    /// - Parameter number: as ``Invalidations/purge(_:now:)`` has said.
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
