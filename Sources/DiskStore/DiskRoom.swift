// Space on the disk: counts the files, evicts for new ones all but those that are pinned, and keeps space free for
// others.

import CacheStore
import EventLoop
import Glibc
import Synchronization

/// Sendable: its members are.
final class DiskRoom: Sendable {
    private enum Decision {
        case grant, refuse
        case evict(DiskTable.Slot)
    }

    /// Files that are evicted by one piece of work of an I/O thread.
    private static let slice = 64
    /// Nanoseconds after a failure before the next attempt.
    private static let patience: UInt64 = 10_000_000_000

    private let parts: DiskParts
    private let remover: DiskRemover

    init(_ parts: DiskParts, _ remover: DiskRemover) {
        self.parts = parts
        self.remover = remover
    }

    // MARK: - Before a response is asked for

    /// False for a while after as much was refused for want of room. Any thread; asks no disk.
    func mayTake(_ bytes: Int) -> Bool {
        parts.state.withLock { state in
            guard let refusal = state.refusal, bytes >= refusal.bytes else { return true }
            return Monotonic.coarse() &- refusal.at > Self.patience
        }
    }

    /// True for a while after a file could not be written, unless another one could since. Any thread; asks no disk.
    var isFailing: Bool {
        parts.state.withLock { state in
            state.isAway || state.failure.map { Monotonic.coarse() &- $0 <= Self.patience } ?? false
        }
    }

    // MARK: - For one response

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
                parts.state.withLock { $0.refusal = (bytes, Monotonic.coarse()) }
                if owed > 0 { tellFull() }
                return false
            case .evict(let victim):
                remover.delete(victim.keyHash, victim.name)
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

    func release(_ bytes: Int) { parts.state.withLock { $0.table.reserved -= Int64(bytes) } }

    /// The file system takes no more, although the tier's count says otherwise: evicts some files.
    /// - Parameters:
    ///   - bytes: that are to be written.
    ///   - error: how the file system said it.
    /// - Returns: false where there is nothing to evict. I/O thread; not under a file's lock.
    func make(_ bytes: Int, _ error: SystemError) -> Bool {
        var (count, freed) = (0, Int64(0))
        // A file takes an inode, and up to two folders.
        while count < 4 || freed < bytes {
            guard let victim = parts.state.withLock({ $0.isClosed ? nil : $0.evict() }) else { break }
            remover.delete(victim.keyHash, victim.name)
            count += 1
            freed += victim.size
        }
        guard count > 0 else { return false }
        let folder = parts.folder
        let text = "the file system of \(folder.path) takes no more (\(error.named)): stored responses are evicted"
        parts.troubles.note(.full, "\(text); \(error.advice(to: folder.kind))")
        return true
    }

    /// - Parameter owed: bytes that the file system lacks.
    private func decide(_ bytes: Int64, _ owed: Int64) -> Decision {
        parts.state.withLock { state in
            if state.isClosed || state.isAway { return .refuse }
            if state.excess(parts.limits) + bytes <= 0 && owed <= 0 {
                state.table.reserved += bytes
                return .grant
            }
            // Even an empty tier would not help.
            if state.table.reserved + bytes > parts.limits.size || owed > state.table.used { return .refuse }
            return state.evict().map { .evict($0) } ?? .refuse
        }
    }

    /// Bytes that the file system lacks for `bytes` more beside what stays free.
    private func shortfall(_ bytes: Int64) -> Int64 {
        bytes - (parts.folder.available().map { $0 - parts.limits.minFree } ?? .max)
    }

    private var lack: String {
        "the file system of \(parts.folder.path) has less than \(parts.folder.kind.minFree) left"
    }

    private func tellFull() {
        let text = "\(lack): nothing is stored there now; make room, or lower \(parts.folder.kind.minFree)"
        parts.troubles.note(.full, text)
    }

    // MARK: - Keeping to the limits

    /// Evicts files until the limits hold, a few at a time. Any thread.
    func trim() {
        let mustStart = parts.state.withLock { state in
            if state.isClosed || state.isTrimming { return false }
            state.isTrimming = true
            return true
        }
        guard mustStart else { return }
        parts.pool.submit { [self] in
            let owed = shortfall(0)
            if owed > 0, parts.state.withLock({ $0.table.used }) > 0 {
                parts.troubles.note(.full, "\(lack): stored responses are evicted")
            }
            trimSome(owed)
        }
    }

    /// - Parameter owed: bytes that the file system lacked at the beginning; it is asked again only the next time,
    ///   since files that are being sent free their space later.
    private func trimSome(_ owed: Int64) {
        var owed = owed
        for _ in 0..<Self.slice {
            let victim: DiskTable.Slot? = parts.state.withLock { state in
                let isTooMuch = state.excess(parts.limits) > 0 || owed > 0
                if !state.isClosed, isTooMuch, let victim = state.evict() { return victim }
                state.isTrimming = false
                return nil
            }
            guard let victim else { return }
            remover.delete(victim.keyHash, victim.name)
            owed -= victim.size
        }
        parts.pool.submit { [self, owed] in trimSome(owed) }
    }
}

// MARK: - Pinned files

/// Sendable: its member is.
final class DiskPins: Sendable {
    private let parts: DiskParts

    init(_ parts: DiskParts) { self.parts = parts }

    /// A URL was pinned, or let go of: files of it make no room for others from now on, or do again.
    func takeOver(_ url: String) async {
        try? await parts.index.thread.run { [self] in takeOverNow([url]) }
    }

    /// The pins of an earlier process, before anything can make room for something else.
    func takeOverAll() async {
        let urls = parts.invalidations.pins.all
        if !urls.isEmpty { try? await parts.index.thread.run { [self] in takeOverNow(urls) } }
    }

    /// On the index's thread.
    private func takeOverNow(_ urls: [String]) {
        // After passing each lock, every file stored before is in the index; later commits check the pins themselves.
        parts.passLocks()
        parts.index.writeBatch()
        for url in urls {
            guard parts.invalidations.pins.contains(url) else {
                parts.state.withLock { $0.unpin(url) }
                continue
            }
            // Those without a row are met by the walk.
            let hashes = (try? parts.index.keyHashes(of: url)) ?? []
            parts.state.withLock { $0.pin(url, hashes) }
        }
    }

    /// A file of this key is there now; under the file's lock.
    func note(_ key: CacheKey, _ keyHash: UInt64) {
        if parts.invalidations.pins.contains(key) { parts.state.withLock { $0.pin(key.description, [keyHash]) } }
    }
}
