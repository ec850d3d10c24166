// Deletes the files of purged responses later: until then the rules keep them from being used.

import CacheStore
import EventLoop
import Glibc
import SQLite
import Synchronization

/// Sweeps files, one sweep at a time, in steps on the index's thread, so that its batches are written in between.
///
/// Sendable: its state is under a mutex.
final class DiskSweeper: Sendable {
    private struct State {
        var isRunning = false
        /// Whether more purges were made since the sweep began.
        var isWanted = false
    }

    /// The progress of a sweep.
    private struct Turn: Sendable {
        let rules: [UnsweptRule]
        var position = 0
        var last: DiskIndex.PendingRemoval?
        /// Whether some files could not be found or removed, so that the rules are kept.
        var hasFailed = false
    }

    /// The files of one step.
    private static let stepSize = 1024
    /// The number of invalidations that wait for one sweep, because a sweep for each would cost more than it gains.
    private static let manyUnswept = 256

    private let state = Mutex(State())
    private let parts: DiskParts
    private let remover: DiskRemover
    private let lister: DiskLister

    init(_ parts: DiskParts, _ remover: DiskRemover, _ lister: DiskLister) {
        self.parts = parts
        self.remover = remover
        self.lister = lister
    }

    /// Starts to delete the files that the hard purges in force affect; any thread.
    func start() {
        let mustStart = state.withLock { state in
            state.isWanted = true
            defer { state.isRunning = true }
            return !state.isRunning
        }
        if mustStart { parts.index.submit { [weak self] in self?.begin() } }
    }

    private func begin() {
        state.withLock { $0.isWanted = false }
        // During a walk, files may be found that the index lacks; the end of the walk starts another sweep.
        guard parts.isSettled else { return stop() }
        let rules = parts.invalidations.unswept
        guard !rules.isEmpty else { return stop() }
        // A response stored before the rules may not be in the table yet; after each lock was passed it is.
        parts.passLocks()
        parts.index.writeBatch()
        step(Turn(rules: rules))
    }

    private func step(_ turn: Turn) {
        guard parts.isSettled else { return stop() }
        var turn = turn
        guard turn.position < turn.rules.count else {
            if !turn.hasFailed, !parts.index.isIncomplete { parts.invalidations.markSwept(turn.rules) }
            return stop()
        }
        let unswept = turn.rules[turn.position]
        let found: [DiskIndex.PendingRemoval]
        do throws(SQLiteError) {
            found = try parts.index.doomed(
                by: unswept.rule,
                before: unswept.number,
                pinned: parts.invalidations.pins.all,
                after: turn.last,
                limit: Self.stepSize
            )
        } catch {
            // A damaged index is rebuilt from the files, after which the sweep starts over.
            parts.index.fail(error)
            return stop()
        }
        let (gone, isSure) = unswept.needsLook ? gone(of: found) : (found, true)
        if !remover.removeNow(gone) || !isSure { turn.hasFailed = true }
        turn.last = found.last
        if found.count < Self.stepSize {
            turn.position += 1
            turn.last = nil
        }
        let next = turn
        parts.index.submit { [weak self] in self?.step(next) }
    }

    private func stop() {
        let isWanted = state.withLock { state in
            state.isRunning = state.isWanted && parts.isSettled
            return state.isRunning
        }
        if isWanted { parts.index.submit { [weak self] in self?.begin() } }
    }

    /// Waits until no sweep and no walk is under way, since the end of a walk starts a sweep.
    func settle() async {
        // Both are read on the index's thread, on which each starts the other, so that no moment between them is seen.
        let isBusy: @Sendable () -> Bool = { [self] in
            !parts.state.withLock { $0.isClosed } && (state.withLock { $0.isRunning } || !parts.isSettled)
        }
        while (try? await parts.index.thread.run(isBusy)) == true {}
    }

    /// The number of stored responses that these purges affect.
    func count(_ rules: [PurgeRule], before number: UInt64) async throws -> Int {
        try await parts.index.thread.run { [parts] in
            parts.passLocks()
            parts.index.writeBatch()
            return try parts.index.count(rules, before: number, pinned: parts.invalidations.pins.all)
        }
    }

    /// Finds the files that rules have invalidated, by their heads.
    /// - Returns: these files, and whether every existing file could be read.
    private func gone(of files: [DiskIndex.PendingRemoval]) -> ([DiskIndex.PendingRemoval], isSure: Bool) {
        var isSure = true
        let gone = files.filter { file in
            guard let listing = lister.head(of: file.name) else {
                if access(parts.folder.path(of: file.name), F_OK) == 0 { isSure = false }
                return false
            }
            let (key, head) = (listing.key, listing.head)
            return parts.invalidations.verdict(head, key, InvalidationRule.concerning(head, key)) == .gone
        }
        return (gone, isSure)
    }

    /// Deletes invalidated files, if there are many rules or the last sweep was long ago; any thread.
    /// - Parameter isLong: whether it was long ago.
    func sweepInvalidated(isLong: Bool) {
        let count = parts.invalidations.unsweptCount
        if count >= Self.manyUnswept || isLong && count > 0 { start() }
    }

    /// Returns when the invalidations are on the disk. If they cannot be written, it reports that, and returns when the
    /// files that they affect are deleted.
    /// - Parameter number: the result of ``Invalidations/invalidate(_:)``.
    func keep(_ rules: [InvalidationRule], number: UInt64) async {
        do throws(SystemError) {
            try await parts.invalidations.keep(rules, number: number)
        } catch {
            let folder = parts.folder
            let text = "what a request has invalidated cannot be written to \(folder.rules): \(error.named)"
            let consequence =
                "it may come back if \(folder.kind.owner) is killed before it can; that is tried again and again"
            parts.troubles.note(.rules, "\(text); \(consequence); \(error.advice(to: folder.kind))")
            await remover.flush()
        }
        sweepInvalidated(isLong: false)
    }
}
