// The disk tier: one file per stored response, a compact table in memory, and an index that can be rebuilt; to a store
// it is one of its tiers.

package import CacheStore
package import EventLoop
package import Files
package import HTTPCaching
import Synchronization

/// The interface of the tier: it makes its parts, and passes each call to one of them. A part knows the parts below it,
/// in the order in which they are made here, and all share ``DiskParts``.
///
/// Sendable: its members are.
package final class DiskTier: Sendable {
    let parts: DiskParts
    /// The invalidation rules, stored beside the files, so that both are lost or kept together.
    package let invalidations: Invalidations
    let finder: DiskFinder
    let pins: DiskPins
    let lister: DiskLister
    let remover: DiskRemover
    let room: DiskRoom
    let sweeper: DiskSweeper
    let walker: DiskWalker
    let restorer: DiskRestorer
    let emptier: DiskEmptier
    let reader: DiskReader
    let writer: DiskWriter
    let copies: DiskCopies
    private let loader: DiskLoader

    /// Opens a folder, which it creates with mode 0700 if it is missing: marks it, locks it, removes temporary files,
    /// and loads the index. The first rows are loaded now, and the rest in the background; after a crash, so are the
    /// files without a row. Until then names of files are guessed.
    /// - Parameters:
    ///   - kind: the kind of the folder; a folder of the other kind is refused.
    ///   - calls: the calls for file operations.
    ///   - onTrouble: called on I/O threads, at most some times a minute.
    /// - Throws: `DiskTierError`; `.inUse` if another daemon uses the folder, `.notTaken` if it is not empty and lacks
    ///   the mark of such a store, in which case nothing in it was changed.
    package static func open(
        path: String,
        limits: DiskLimits = DiskLimits(),
        kind: StoreKind = .shared,
        pool: IOPool,
        calls: FileCalls = .real,
        onTrouble: @escaping @Sendable (DiskTrouble) -> Void = { _ in }
    ) async throws -> DiskTier {
        let tier = try await pool.run {
            let folder = try DiskFolder(path, kind: kind, calls: calls)
            let opened = try DiskIndex.open(folder.index, stamp: folder.fileNameKey.stamp)
            let index = opened.index
            let isOurs: @Sendable () -> Bool = { folder.isHeld }
            let pins = Pins(path: folder.pins, isOurs: isOurs)
            let invalidations = Invalidations(
                path: folder.rules,
                pins: pins,
                pool: pool,
                isExpected: folder.hasBeenUsed,
                isOurs: isOurs
            )
            let parts = DiskParts(folder, index, pool, limits, invalidations, TroubleTeller(onTrouble))
            let tier = DiskTier(parts)
            if let failure = opened.failure { parts.tell(failure) }
            if let loss = invalidations.loss {
                let what = "what was purged or invalidated is not known any more, since"
                parts.troubles.note(
                    .rules,
                    "\(what) \(loss): all that is stored is stale, and is validated before it is used"
                )
            }
            if let remark = folder.remark { parts.troubles.note(.format, remark) }
            index.observe { [weak walker = tier.walker] failure in walker?.indexFailed(failure) }
            tier.loader.begin(expected: opened.count)
            tier.emptier.emptyTrash()
            return tier
        }
        await tier.pins.takeOverAll()
        return tier
    }

    /// Creates and marks a folder before anything else is put into it, so that
    /// ``open(path:limits:kind:pool:calls:onTrouble:)`` accepts it. Blocks.
    /// - Returns: a line for the log; nil for none.
    /// - Throws: `DiskTierError`; a refused folder is unchanged.
    package static func claim(path: String, kind: StoreKind) throws(DiskTierError) -> String? {
        try DiskFolder.claim(path, kind).remark(path, kind)
    }

    private init(_ parts: DiskParts) {
        self.parts = parts
        invalidations = parts.invalidations
        finder = DiskFinder(parts)
        pins = DiskPins(parts)
        lister = DiskLister(parts)
        remover = DiskRemover(parts)
        room = DiskRoom(parts, remover)
        sweeper = DiskSweeper(parts, remover, lister)
        // The table is complete now: the files may exceed the limits, and purges may affect them.
        let onEnd: @Sendable () -> Void = { [room, sweeper] in
            room.trim()
            sweeper.start()
        }
        let adopter = DiskAdopter(parts, pins)
        walker = DiskWalker(parts, adopter, remover, onEnd: onEnd)
        loader = DiskLoader(parts, remover, walker, onEnd: onEnd)
        restorer = DiskRestorer(parts, walker)
        emptier = DiskEmptier(parts, restorer)
        reader = DiskReader(parts, finder, adopter, remover, restorer)
        writer = DiskWriter(parts, room, remover, restorer, pins)
        copies = DiskCopies(parts, reader, writer, room)
    }

    package var statistics: TierStatistics {
        parts.state.withLock { state in
            var statistics = state.statistics
            statistics.objects = state.table.count
            statistics.bytes = state.table.used
            statistics.limit = parts.limits.size
            statistics.isRebuilding = state.phase != .settled
            statistics.indexBytes = state.table.memory
            statistics.openFiles = parts.openFiles.count
            statistics.troubles = parts.troubles.count
            return statistics
        }
    }

    /// The files of a key, newest first, from the table in memory; any thread. While the folders are walked, the result
    /// may name a file that does not exist.
    package func lookup(_ key: CacheKey) -> [DiskEntry] { finder.lookup(key, isCounted: true) }

    /// Stores a complete body under its key; ``commit(_:)`` is what a store asks.
    /// - Parameters:
    ///   - spill: the file that the arriving body was given, or one that holds the body already; nil for
    ///     a body that is in memory.
    ///   - generation: noted when the fetch began: nothing is stored if the key was invalidated since.
    ///   - maxVariants: files of one key at most, at least 1; the one that was stored longest ago goes.
    ///   - number: of the response's fetch (see ``Invalidations/nextNumber()``): writes may overtake one another.
    /// - Throws: `DiskTierError` (`.refused`, `.invalidated`, `.outdated`, `.folder`, `.closed`); the
    ///   response is not stored then.
    @discardableResult
    package func commit(
        _ body: Body,
        spill: SpillFile? = nil,
        key: CacheKey,
        head: StoredHead,
        generation: (Invalidations, InvalidationToken)? = nil,
        maxVariants: Int = 32,
        number: UInt64? = nil
    ) async throws -> DiskEntry {
        try await writer.commit(
            body,
            spill: spill,
            key: key,
            head: head,
            generation: generation,
            maxVariants: maxVariants,
            number: number
        )
    }

    /// Waits until the table is complete.
    package func settle() async {
        while parts.state.withLock({ $0.phase != .settled && !$0.isClosed }) {
            // The wait is behind the current step on the same thread.
            await parts.index.pass()
        }
    }

    /// Evicts files if others have filled the file system beyond min_free, and repairs the folder. Any thread; to be
    /// called every few seconds.
    package func tend() {
        parts.pool.submit { [restorer, invalidations] in
            restorer.restore()
            invalidations.repeatFailed()
            restorer.removeSomeEmptyFolders()
        }
        room.trim()
        sweeper.sweepInvalidated(isLong: true)
    }

    /// Recreates removed parts of the folder, its mark first; to be called before anything is created in the folder.
    /// Blocks, so not on a loop.
    /// - Throws: `TierError.unavailable` if the folder cannot be created, or belongs to another owner now.
    package func makeWhole() throws(TierError) {
        do throws(DiskTierError) { try restorer.makeWhole() } catch { throw .unavailable("\(error)") }
    }

    /// Writes the index and unlocks the folder; blocks, so not on a loop. Later calls are misses, and change nothing in the
    /// folder, which may be another process's then; files that are open stay readable.
    package func close() {
        let count = parts.state.withLock { state in
            state.isClosed = true
            return state.phase == .settled ? state.table.count : nil
        }
        remover.deleteAll()
        parts.state.withLock { $0.isReleased = true }
        // What has begun to change a file has done so when its lock is free.
        parts.passLocks()
        parts.openFiles.removeAll()
        invalidations.close()
        parts.index.close(count: count)
        parts.folder.release()
    }
}

// MARK: - A tier among others

extension DiskTier: FileTier {
    package var name: StoreTier { .disk }
    package var keptGenerations: Invalidations? { invalidations }
    package var threads: [IOPool] { [parts.index.thread] }

    // MARK: - Without waiting

    package func mayHold(_ key: CacheKey) -> Bool { !finder.lookup(key, isCounted: false).isEmpty }

    package func isKnownToHold(_ key: CacheKey, since time: Int64, besides heads: [StoredHead]) -> Bool {
        finder.isKnownToHold(key, since: time, besides: heads)
    }

    package func known(_ key: CacheKey, _ head: StoredHead) -> TierKnowledge {
        guard let entry = finder.entry(key, head) else { return .lacks }
        return entry.isGuess ? .unknown : .holds(number: entry.fileID, storedAt: entry.storedAt)
    }

    package func refusal(of bytes: Int) -> TierRefusal? {
        room.isFailing ? .fails : room.mayTake(bytes) ? nil : .noRoom
    }

    // MARK: - Finding

    package func find(_ question: TierQuestion) async throws(TierError) -> TierAnswer {
        let key = question.key
        let entries =
            question.heads.isEmpty
            ? finder.lookup(key, isCounted: question.isUse) : finder.lookup(key, besides: question.heads)
        // A single file is read with its body in one turn of an I/O thread; of several, the heads tell which one is
        // wanted.
        if entries.count == 1, question.wantsBody {
            return TierAnswer((try? await load(entries[0], question)).map { [TierFinding($0)] } ?? [])
        }
        if entries.isEmpty { return TierAnswer([]) }
        return TierAnswer(await reader.heads(entries).map { TierFinding(key, $0.head, number: $0.entry.fileID) })
    }

    package func open(_ finding: TierFinding, _ question: TierQuestion) async throws(TierError) -> StoredResponse {
        guard let entry = finder.entry(finding.key, finding.head, number: finding.number) else { throw .absent }
        return try await load(entry, question)
    }

    private func load(_ entry: DiskEntry, _ question: TierQuestion) async throws(TierError) -> StoredResponse {
        if let response = finder.loaded(entry, isUse: question.isUse) { return response }
        do {
            return try await reader.load(entry, via: nil, policy: question.policy, isUse: question.isUse)
        } catch {
            throw TierError(error)
        }
    }

    // MARK: - Changing

    package func makeSpill(expected: Int64) -> SpillFile { writer.makeSpill(expected: expected) }

    package func makeSparse() -> SparseFile { writer.makeSparse() }

    package func commit(_ commit: TierCommit) async throws(TierError) {
        do {
            try await writer.commit(
                commit.body,
                spill: commit.spill,
                key: commit.key,
                head: commit.head,
                generation: (commit.invalidations, commit.token),
                maxVariants: commit.maxVariants,
                number: commit.token.number
            )
        } catch {
            throw TierError(error)
        }
    }

    package func freshen(_ response: TierReference, _ commit: TierCommit) async throws(TierError) {
        guard commit.invalidations.isUnchanged(commit.token) else { throw .invalidated }
        guard let entry = finder.entry(response.key, response.head, number: response.number) else { throw .absent }
        guard await writer.freshen(entry, head: commit.head) else { throw .unavailable("its head was not written") }
    }

    package func remove(_ response: TierReference) {
        guard let entry = finder.entry(response.key, response.head) else { return }
        remover.remove([DiskFileID(keyHash: parts.keyHash(response.key), name: entry.name, fileID: response.number)])
    }

    package func remove(_ key: CacheKey) { remover.remove(key) }

    // MARK: - Invalidation

    package func invalidate(_ rules: [InvalidationRule], number: UInt64) async {
        await sweeper.keep(rules, number: number)
    }

    package func purge(_ rules: [PurgeRule], number: UInt64) async -> Int {
        let count = (try? await sweeper.count(rules, before: number)) ?? 0
        invalidations.endCount(number)
        // The folder of the files is removed as a whole, or else file by file.
        if rules.contains(PurgeRule(.all)) { try? await emptier.removeAll() }
        sweeper.start()
        return count
    }

    package func sweep() { sweeper.start() }

    package func settleSweep() async { await sweeper.settle() }

    package func takeOverPin(_ url: String) async { await pins.takeOver(url) }

    // MARK: - Listing

    package func list(
        _ query: ListQuery,
        pinned: [String],
        limit: Int
    ) async throws -> (rows: [TierRow], end: String?) {
        let (rows, end) = try await lister.list(query, pinned: pinned, limit: limit)
        return (rows.map { TierRow(name: "\($0.name)", url: $0.url) }, end)
    }

    package func heads(of rows: [TierRow]) async -> [TierListing] { await lister.heads(of: rows) }

    // MARK: - Files

    package func adopt(_ copy: SeedCopy, _ commit: TierCommit) async throws(TierError) {
        do {
            try await copies.adopt(
                copy,
                head: commit.head,
                key: commit.key,
                generation: (commit.invalidations, commit.token),
                maxVariants: commit.maxVariants
            )
        } catch {
            throw TierError(error)
        }
    }

    package func keepAsFile(
        _ key: CacheKey,
        _ head: StoredHead?,
        as name: String,
        onlyIfMissing: Bool
    ) async throws {
        let entry = head.map { finder.entry(key, $0) } ?? finder.lookup(key, besides: []).first
        if let entry { try await copies.keepAsFile(entry, as: name, onlyIfMissing: onlyIfMissing) }
    }

    // MARK: - The fast path

    package func makeReady(_ response: StoredResponse, headFormatID: UInt64, _ make: () -> ResidentResponse?) {
        finder.makeReady(response, headFormatID: headFormatID, make)
    }

    package func readyFile(_ keyBytes: UnsafeRawBufferPointer, where selects: (ResidentResponse) -> Bool) -> ReadyFile?
    {
        finder.readyFile(keyBytes, where: selects)
    }

    package func noteUse(of ready: ReadyFile) { finder.noteUse(ready.keyHash, ready.name) }
}

extension TierError {
    /// Converts a failure of the disk into an error for the store.
    init(_ error: any Error) {
        switch error as? DiskTierError {
        case .absent: self = .absent
        case .damaged: self = .damaged
        case .invalidated: self = .invalidated
        case .outdated: self = .outdated
        case .refused(let error): self = .refused(error)
        case .folder(let error): self = .refused(.file(error))
        default: self = .unavailable("\(error)")
        }
    }
}
