// Space on the disk: counts the files, evicts for new ones, and keeps space free for others.

import EventLoop
import Glibc
import Synchronization

extension DiskTier {
    private enum Decision {
        case grant, refuse
        case evict(DiskTable.Slot)
    }

    /// Files that are evicted by one piece of work of an I/O thread.
    private static let slice = 64

    /// Counts bytes that are about to be written, and evicts files to make room.
    /// - Returns: false where there is no room. I/O thread; not under a file's lock.
    func reserve(_ bytes: Int) -> Bool {
        let bytes = Int64(bytes)
        var owed = shortfall(bytes)
        var rounds = 0
        while true {
            switch decide(bytes, owed) {
            case .grant: return true
            case .refuse:
                state.withLock { $0.refusal = (bytes, Monotonic.coarse()) }
                if owed > 0 { tellFull() }
                return false
            case .evict(let victim):
                delete(victim.keyHash, victim.name)
                guard owed > 0 else { continue }
                owed -= victim.size
                if owed <= 0 {
                    owed = shortfall(bytes)
                    rounds += 1
                    // Files that are being sent give their room back later: the others must not go for that.
                    if rounds == 3, owed > 0 { owed = .max }
                }
            }
        }
    }

    /// Whether a failed call on a file should be repeated: files were evicted because the file system has no space,
    /// inodes or quota left, or missing folders were made again. I/O thread; not under a file's lock.
    /// - Parameters:
    ///   - attempt: the count of earlier repetitions.
    ///   - bytes: that are to be written.
    func mend(_ error: SystemError, _ attempt: Int, _ bytes: Int) -> Bool {
        switch error.code {
        // The tier's count and the file system's differ. The limit keeps a file system that others have filled
        // from evicting everything.
        case ENOSPC, EDQUOT: attempt < 3 && !error.operation.hasPrefix(SpillFile.wantsRoom) && makeRoom(bytes, error)
        case ENOENT: attempt == 0 && restore() != .failed
        default: false
        }
    }

    /// - Returns: false where there is nothing to evict.
    private func makeRoom(_ bytes: Int, _ error: SystemError) -> Bool {
        var (count, freed) = (0, Int64(0))
        // A file takes an inode, and up to two folders.
        while count < 4 || freed < bytes {
            guard let victim = state.withLock({ $0.isClosed ? nil : $0.evict() }) else { break }
            delete(victim.keyHash, victim.name)
            count += 1
            freed += victim.size
        }
        guard count > 0 else { return false }
        let text = "the file system of \(folder.path) takes no more (\(error.named)): stored responses are evicted"
        troubles.note(.full, "\(text); \(error.advice(to: folder.kind))")
        return true
    }

    func release(_ bytes: Int) { state.withLock { $0.table.reserved -= Int64(bytes) } }

    /// - Parameter owed: bytes that the file system lacks.
    private func decide(_ bytes: Int64, _ owed: Int64) -> Decision {
        state.withLock { state in
            if state.isClosed || state.isAway { return .refuse }
            if state.excess(limits) + bytes <= 0 && owed <= 0 {
                state.table.reserved += bytes
                return .grant
            }
            // Even an empty tier would not help.
            if state.table.reserved + bytes > limits.size || owed > state.table.used { return .refuse }
            return state.evict().map { .evict($0) } ?? .refuse
        }
    }

    /// Bytes that the file system lacks for `bytes` more beside what stays free.
    private func shortfall(_ bytes: Int64) -> Int64 { bytes - (folder.available().map { $0 - limits.minFree } ?? .max) }

    private func tellFull() {
        let text =
            "the file system of \(folder.path) has less than \(folder.kind.minFree) left: nothing is stored there now"
        troubles.note(.full, "\(text); make room, or lower \(folder.kind.minFree)")
    }

    // MARK: - Keeping to the limits

    /// Evicts files if others have filled the file system beyond min_free. Any thread; call it every few seconds.
    package func tend() {
        pool.submit { [self] in
            restore()
            removeSomeEmptyFolders()
        }
        trim()
        sweepInvalidated(isLong: true)
    }

    /// Evicts files until the limits hold, a few at a time. Any thread.
    func trim() {
        let mustStart = state.withLock { state in
            if state.isClosed || state.isTrimming { return false }
            state.isTrimming = true
            return true
        }
        guard mustStart else { return }
        pool.submit { [self] in
            let owed = shortfall(0)
            if owed > 0, state.withLock({ $0.table.used }) > 0 {
                let text = "the file system of \(folder.path) has less than \(folder.kind.minFree) left"
                troubles.note(.full, "\(text): stored responses are evicted")
            }
            trimSome(owed)
        }
    }

    /// - Parameter owed: bytes that the file system lacked at the beginning; it is asked again only the next time,
    ///   since files that are being sent free their space later.
    private func trimSome(_ owed: Int64) {
        var owed = owed
        for _ in 0..<Self.slice {
            let victim: DiskTable.Slot? = state.withLock { state in
                if !state.isClosed, state.excess(limits) > 0 || owed > 0, let victim = state.evict() { return victim }
                state.isTrimming = false
                return nil
            }
            guard let victim else { return }
            delete(victim.keyHash, victim.name)
            owed -= victim.size
        }
        pool.submit { [self, owed] in trimSome(owed) }
    }
}

extension DiskTier.State {
    /// Bytes of files, stored and being written, beyond the size of the tier; negative if space is left.
    fileprivate func excess(_ limits: DiskLimits) -> Int64 { table.used + table.reserved - limits.size }

    /// Takes the file out of the table whose turn it is to make room; nil where none may go.
    fileprivate mutating func evict() -> DiskTable.Slot? {
        guard let victim = table.evict(besides: pinned) else { return nil }
        statistics.evictions += 1
        return victim
    }
}
