// The files of purged responses go behind: the rules already keep them from being used.

import EventLoop
import Glibc
import SQLite
import Synchronization

/// One sweep at a time, in steps on the index's thread, so that its batches are written in between.
///
/// Sendable: its state is under a mutex.
final class DiskSweep: Sendable {
    private struct State {
        var isRunning = false
        /// More purges have been made since it began.
        var isWanted = false
    }

    /// Where a sweep is.
    private struct Turn: Sendable {
        let rules: [RuleSet.Unswept]
        var position = 0
        var last: DiskIndex.PendingRemoval?
        /// Some files could not be found or removed: the rules stay.
        var hasFailed = false
    }

    /// Files of one step.
    private static let stepSize = 1024
    private let state = Mutex(State())

    var isRunning: Bool { state.withLock { $0.isRunning } }

    /// Any thread.
    func start(_ tier: DiskTier) {
        let mustStart = state.withLock { state in
            state.isWanted = true
            defer { state.isRunning = true }
            return !state.isRunning
        }
        if mustStart { tier.index.submit { [self, weak tier] in begin(tier) } }
    }

    private func begin(_ tier: DiskTier?) {
        state.withLock { $0.isWanted = false }
        // While the folders are walked, files may turn up that the index does not know yet: the walk's end begins anew.
        guard let tier, tier.isSettled else { return stop(tier) }
        let rules = tier.invalidations.unswept
        guard !rules.isEmpty else { return stop(tier) }
        // A response stored before the rules may not be in the table yet; after passing each lock it is.
        tier.passLocks()
        tier.index.writeBatch()
        step(tier, Turn(rules: rules))
    }

    private func step(_ tier: DiskTier, _ turn: Turn) {
        var turn = turn
        guard turn.position < turn.rules.count else {
            if !turn.hasFailed, !tier.index.isIncomplete { tier.invalidations.markSwept(turn.rules) }
            return stop(tier)
        }
        let unswept = turn.rules[turn.position]
        let found: [DiskIndex.PendingRemoval]
        do throws(SQLiteError) {
            found = try tier.index.doomed(
                by: unswept.rule,
                before: unswept.number,
                pinned: tier.invalidations.pins.all,
                after: turn.last,
                limit: Self.stepSize
            )
        } catch {
            // A damaged index is made again from the files; when that is done, the sweep starts over.
            tier.index.fail(error)
            return stop(tier)
        }
        let (gone, isSure) = unswept.needsLook ? tier.gone(of: found) : (found, true)
        if !tier.removeNow(gone) || !isSure { turn.hasFailed = true }
        turn.last = found.last
        if found.count < Self.stepSize {
            turn.position += 1
            turn.last = nil
        }
        let next = turn
        tier.index.submit { [self, weak tier] in
            if let tier, tier.isSettled { step(tier, next) } else { stop(tier) }
        }
    }

    private func stop(_ tier: DiskTier?) {
        let isWanted = state.withLock { state in
            state.isRunning = state.isWanted && tier?.isSettled == true
            return state.isRunning
        }
        if isWanted, let tier { tier.index.submit { [self, weak tier] in begin(tier) } }
    }
}

extension DiskTier {
    /// Removes behind what the hard purges in force concern; any thread.
    package func sweep() { sweeper.start(self) }

    /// Waits until nothing is being swept, nor walked, since the end of a walk begins a sweep.
    package func settleSweep() async {
        // On the index's thread, where each begins the other: in between, neither would be seen.
        let isBusy: @Sendable () -> Bool = { [self] in
            !state.withLock { $0.isClosed } && (sweeper.isRunning || !isSettled)
        }
        while (try? await index.thread.run(isBusy)) == true {}
    }

    /// How many stored responses these purges concern.
    package func count(_ rules: [PurgeRule], before number: UInt64) async throws -> Int {
        try await index.thread.run { [self] in
            passLocks()
            index.writeBatch()
            return try index.count(rules, before: number, pinned: invalidations.pins.all)
        }
    }

    /// Takes and releases each lock, so that every change that was in progress has reached the index
    /// when this returns; blocks.
    func passLocks() {
        for number in 0..<64 { lock(StoredFileName(high: 0, low: UInt64(number))).withLock {} }
    }

    /// Those of the files that rules have invalidated, as their heads say.
    /// - Returns: and whether each of those that are there could be read.
    fileprivate func gone(of files: [DiskIndex.PendingRemoval]) -> ([DiskIndex.PendingRemoval], isSure: Bool) {
        var isSure = true
        let gone = files.filter { file in
            guard let listing = head(of: DiskIndex.Listed(name: file.name, url: file.url)) else {
                if access(folder.place(of: file.name), F_OK) == 0 { isSure = false }
                return false
            }
            let (key, head) = (listing.key, listing.head)
            return invalidations.verdict(head, key, InvalidationRule.concerning(head, key)) == .gone
        }
        return (gone, isSure)
    }

    /// Removes invalidated files, if there are many rules or the last sweep was long ago; any thread.
    /// - Parameter isLong: whether it was long ago.
    package func sweepInvalidated(isLong: Bool) {
        let count = invalidations.unsweptCount
        if count >= Self.manyUnswept || isLong && count > 0 { sweep() }
    }

    /// So many invalidations wait for one another, since a sweep for each would cost more than it gives.
    private static let manyUnswept = 256

    /// Returns when the invalidations are on the disk. If they cannot be written, it returns when the files that they
    /// removed are deleted, and reports that.
    /// - Parameter number: the result of ``Invalidations/invalidate(_:)``.
    package func keep(_ rules: [InvalidationRule], number: UInt64) async {
        do throws(SystemError) {
            try await invalidations.keep(rules, number: number)
        } catch {
            let text = "what a request has invalidated cannot be written to \(folder.rules): \(error.named)"
            let consequence = "it may come back if \(folder.kind.owner) is killed"
            troubles.note(.unwritable, "\(text); \(consequence); \(error.advice(to: folder.kind))")
            await flushRemovals()
        }
        sweepInvalidated(isLong: false)
    }

    /// - Returns: false where one of them is still there.
    func removeNow(_ doomed: [DiskIndex.PendingRemoval]) -> Bool {
        var isDone = true
        for file in doomed {
            let isOurs = state.withLock { state in
                guard let slot = state.table.find(file.keyHash, file.name) else { return true }
                // Another one has taken its place.
                guard slot.fileID == file.fileID else { return false }
                state.table.remove(file.keyHash, file.name)
                return true
            }
            if isOurs, !delete(file.keyHash, file.name) { isDone = false }
        }
        return isDone
    }

    var isSettled: Bool { state.withLock { $0.phase == .settled && !$0.isClosed } }
}
