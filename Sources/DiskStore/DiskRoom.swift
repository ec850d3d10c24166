// The space on the disk: counts the bytes of files, evicts files that are not pinned for new ones, and keeps space free
// for others.

import CacheStore
import EventLoop
import Glibc
import Synchronization

/// Makes room on the disk. Sendable: its members are.
final class DiskRoom: Sendable {
    private enum Decision {
        case grant, refuse
        case evict(DiskTable.Slot)
    }

    /// The files that one piece of work of an I/O thread evicts.
    private static let slice = 64
    /// The nanoseconds after a failure before the next attempt.
    private static let patience: UInt64 = 10_000_000_000

    private let parts: DiskParts
    private let remover: DiskRemover

    init(_ parts: DiskParts, _ remover: DiskRemover) {
        self.parts = parts
        self.remover = remover
    }

    // MARK: - Before a response is asked for

    /// Whether a body may be stored; false for a while after one of this size was refused because of missing room. Any
    /// thread; no disk access.
    func mayTake(_ bytes: Int) -> Bool {
        parts.state.withLock { state in
            guard let refusal = state.refusal, bytes >= refusal.bytes else { return true }
            return Monotonic.coarse() &- refusal.at > Self.patience
        }
    }

    /// Whether the disk fails: true for a while after a failed write, unless a later one succeeded. Any thread; no disk
    /// access.
    var isFailing: Bool {
        parts.state.withLock { state in
            state.isAway || state.failure.map { Monotonic.coarse() &- $0 <= Self.patience } ?? false
        }
    }

    // MARK: - For one response

    /// Reserves bytes that are about to be written, and evicts files to make room.
    /// - Returns: false if there is no room. On an I/O thread; not under a file's lock.
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
                    // Files that are being sent free their space later, and further files must not be evicted because
                    // of that.
                    if rounds == 3, owed > 0 { owed = .max }
                }
            }
        }
    }

    func release(_ bytes: Int) { parts.state.withLock { $0.table.reserved -= Int64(bytes) } }

    /// Evicts some files, because the file system is full although the tier's count is within its limits.
    /// - Parameters:
    ///   - bytes: the bytes that are to be written.
    ///   - error: the error of the file system.
    /// - Returns: false if there is nothing to evict. On an I/O thread; not under a file's lock.
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

    /// Decides about a reservation.
    /// - Parameter owed: the bytes that the file system lacks.
    private func decide(_ bytes: Int64, _ owed: Int64) -> Decision {
        parts.state.withLock { state in
            if state.isClosed || state.isAway { return .refuse }
            if state.excess(parts.limits) + bytes <= 0 && owed <= 0 {
                state.table.reserved += bytes
                return .grant
            }
            // Even an empty tier would not have enough room.
            if state.table.reserved + bytes > parts.limits.size || owed > state.table.used { return .refuse }
            return state.evict().map { .evict($0) } ?? .refuse
        }
    }

    /// The bytes that the file system lacks for `bytes` more in addition to the free ones.
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

    /// Evicts a few files.
    /// - Parameter owed: the bytes that the file system lacked at the beginning; it is asked again only the next time,
    ///   because files that are being sent free their space later.
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

/// Applies pins to the files of the tier. Sendable: its member is.
final class DiskPins: Sendable {
    private let parts: DiskParts

    init(_ parts: DiskParts) { self.parts = parts }

    /// Applies the pinning or unpinning of a URL: its files are protected from eviction from now on, or no longer.
    func takeOver(_ url: String) async {
        try? await parts.index.thread.run { [self] in takeOverNow([url]) }
    }

    /// Applies the pins of an earlier process, before anything is evicted.
    func takeOverAll() async {
        let urls = parts.invalidations.pins.all
        if !urls.isEmpty { try? await parts.index.thread.run { [self] in takeOverNow(urls) } }
    }

    /// Applies pins; on the index's thread.
    private func takeOverNow(_ urls: [String]) {
        // After each lock was passed, every file stored before is in the index; later commits check the pins
        // themselves.
        parts.passLocks()
        parts.index.writeBatch()
        for url in urls {
            guard parts.invalidations.pins.contains(url) else {
                parts.state.withLock { $0.unpin(url) }
                continue
            }
            // The walk handles files without a row.
            let hashes = (try? parts.index.keyHashes(of: url)) ?? []
            parts.state.withLock { $0.pin(url, hashes) }
        }
    }

    /// Protects a new file if its key is pinned; under the file's lock.
    func note(_ key: CacheKey, _ keyHash: UInt64) {
        if parts.invalidations.pins.contains(key) { parts.state.withLock { $0.pin(key.description, [keyHash]) } }
    }
}
