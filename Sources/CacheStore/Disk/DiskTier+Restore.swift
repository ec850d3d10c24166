// Repairs the folder when its content was removed under the running daemon, and reports that once with the remedy.

import EventLoop
import Glibc
import Synchronization

extension DiskTier {
    enum Restored { case nothingMissing, restored, failed }

    /// Checks that the folder is complete, and repairs it; a walk in the background finds the files that remain. I/O
    /// thread; not under a file's lock.
    @discardableResult
    func restore() -> Restored {
        restoring.withLock {
            let wasAway: Bool? = state.withLock { $0.isClosed ? nil : $0.isAway }
            guard let wasAway else { return .nothingMissing }
            var missing: [String]
            do throws(DiskTierError) {
                missing = try folder.restore()
            } catch {
                leave(error)
                return .failed
            }
            state.withLock { $0.isAway = false }
            invalidations.setAway(false)
            let isIndexLost = index.isLost
            if isIndexLost { missing.append("index.sqlite") }
            guard wasAway || !missing.isEmpty else { return .nothingMissing }
            let isLoss = wasAway || isIndexLost || missing.contains("objects") || missing.contains("tmp")
            let count = isLoss ? forgetFiles() : 0
            if isLoss { lookForFiles() }
            invalidations.rewrite()
            invalidations.pins.rewrite()
            let text = "somebody has removed \(missing.joined(separator: ", ")) from the cache folder \(folder.path)"
            let loss = isLoss ? "; of \(count) stored responses those that are still there are looked for" : ""
            troubles.note(.removed, "\(text): it is made anew\(loss); \(folder.kind.insteadOfRemoving)")
            return .restored
        }
    }

    /// The folder is somebody else's now, or cannot be made again: nothing is looked for there, nor stored.
    private func leave(_ error: DiskTierError) {
        if error == .closed { return }
        state.withLock { $0.isAway = true }
        invalidations.setAway(true)
        index.abandon()
        forgetFiles()
        state.withLock { $0.settle() }
        let text = "the cache folder \(folder.path) was removed under \(folder.kind.owner) and cannot be made again"
        troubles.note(.removed, "\(text): \(error); nothing is stored on the disk until then")
    }

    /// - Returns: how many files the table had.
    @discardableResult
    private func forgetFiles() -> Int {
        let before = withEveryLock {
            openFiles.removeAll()
            return state.withLock { state in
                let before = state.table
                state.table = DiskTable()
                state.table.reserved = before.reserved
                // Pending removals, and all removals from now on, are remembered, in case the walk finds their files.
                for place in 0..<state.deletions.count {
                    let slot = state.deletions[place]
                    state.doom(slot.name, through: slot.fileID)
                }
                state.phase = .walking
                state.walks += 1
                return before
            }
        }
        return before.count
    }

    /// Behind.
    private func lookForFiles() {
        index.submit { [weak self] in
            guard let self, !state.withLock({ $0.isClosed || $0.isAway }) else { return }
            index.replaceLost()
            DiskRebuild.start(self, trustsTable: false)
        }
    }

    /// Called when a file of the table is missing. I/O thread; not under a file's lock.
    func noteMissing(_ entry: DiskEntry) {
        guard restore() == .nothingMissing else { return }
        let text = "the file \(folder.place(of: entry.name)) of the stored response \(entry.key) is gone"
        troubles.note(.missing, "\(text): it is fetched again")
    }

    /// Removes folders that have no files, those of one part of them each time. I/O thread.
    func removeSomeEmptyFolders() {
        let part = state.withLock { state in
            guard !state.isClosed, !state.isAway, state.prunedParts < 256 else { return Int?.none }
            defer { state.prunedParts += 1 }
            return state.prunedParts
        }
        if let part { folder.removeEmptyFolders(in: part) }
    }
}
