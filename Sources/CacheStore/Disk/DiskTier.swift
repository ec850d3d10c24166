// The disk tier: one file per stored response, a compact table in memory, an index that can be rebuilt.

package import EventLoop
package import Files
import Glibc
import HTTPCaching
import HTTPWire
import Synchronization

/// What the disk tier may use.
package struct DiskLimits: Sendable {
    /// Bytes of all files.
    package var size: Int64
    /// Bytes of one body; nil is one quarter of `size`.
    package var maxObject: Int64?
    /// Bytes that stay free on the file system.
    package var minFree: Int64

    package init(size: Int64 = 10 << 30, maxObject: Int64? = nil, minFree: Int64 = 1 << 30) {
        self.size = max(0, size)
        self.maxObject = maxObject
        self.minFree = max(0, minFree)
    }
}

/// Sendable: the table is under `state`; a file is changed, removed or given its name under one of `locks`, on an I/O
/// thread; everything else never changes.
package final class DiskTier: Sendable {
    /// How much the table knows.
    enum Phase {
        /// Rows of the index are still to come.
        case loading
        /// The folders are walked for files without a row.
        case walking
        /// Every file.
        case settled
    }

    struct State {
        var table = DiskTable()
        var statistics = TierStatistics()
        var phase = Phase.loading
        /// Walks that have begun.
        var walks = 0
        /// Removals before the table was complete, each with its number: older files that the walk finds are removed.
        /// Three tables: by the hash of the key, by the file's name, and one for all files.
        var doomed: [UInt64: UInt64] = [:]
        var doomedFiles: [StoredFileName: UInt64] = [:]
        var doomedAll: UInt64 = 0
        /// Hashes of keys whose files are not evicted.
        var pinned: Set<UInt64> = []
        /// Files that are out of the table and wait for an I/O thread.
        var deletions = Slab<DiskTable.Slot>()
        var isDeleting = false
        /// The old table after a purge of everything, released on an I/O thread.
        var discarded: DiskTable?
        var isTrimming = false
        var isClosed = false
        /// The last refusal for want of room: its bytes, and when it was, in monotonic nanoseconds.
        var refusal: (bytes: Int64, at: UInt64)?
        /// When a file last could not be written, in monotonic nanoseconds; nil where one could since.
        var failure: UInt64?
        /// The folder is somebody else's now, or cannot be made again.
        var isAway = false
        /// Parts of the folder in which empty folders have been looked for.
        var prunedParts = 0
    }

    final class FileLock: Sendable {
        private let mutex = Mutex(())
        func withLock<R, E: Error>(_ body: () throws(E) -> R) throws(E) -> R {
            try mutex.withLock { _ throws(E) in try body() }
        }
    }

    let folder: DiskFolder
    let index: DiskIndex
    /// The thread that reads and writes the index.
    package var indexThread: IOPool { index.thread }
    let pool: IOPool
    let limits: DiskLimits
    let troubles: TroubleTeller
    /// Stored beside the files, so that the rules outlive whatever the files outlive.
    package let invalidations: Invalidations
    let state = Mutex(State())
    let sweeper = DiskSweep()
    let openFiles = OpenFiles()
    /// Held while files are removed, so that closing waits for it.
    let deletion = FileLock()
    /// Held while the folder is checked and repaired; taken before the locks of files, on I/O threads only.
    let restoring = FileLock()
    private let locks = (0..<64).map { _ in FileLock() }

    /// Opens a folder, which it makes with mode 0700 where there is none: marks it, takes its lock, removes
    /// temporaries, and loads the index. The first rows are loaded now, and the rest in the background; after an
    /// unclean end, so are the files without a row. Until then names of files are guessed.
    /// - Parameters:
    ///   - kind: a folder of the other kind is refused.
    ///   - calls: what the tier does to its files.
    ///   - onTrouble: called on I/O threads, at most some times a minute.
    /// - Throws: `DiskTierError`; `.inUse` where another daemon uses the folder, `.notTaken` where it is not empty and
    ///   has no mark of such a store, and then nothing in it has been touched.
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
            let invalidations = Invalidations(path: folder.rules, pins: pins, pool: pool, isOurs: isOurs)
            let tier = DiskTier(folder, index, pool, limits, invalidations, TroubleTeller(onTrouble))
            if let failure = opened.failure { tier.tell(failure) }
            if let remark = folder.remark { tier.troubles.note(.format, remark) }
            index.observe { [weak tier] failure in tier?.indexFailed(failure) }
            DiskLoad.begin(tier, expected: opened.count)
            tier.emptyTrash()
            return tier
        }
        await tier.takeOverPins()
        return tier
    }

    /// Makes and marks a folder before anything else is put into it;
    /// ``open(path:limits:kind:pool:calls:onTrouble:)`` takes it then. Blocks.
    /// - Returns: what is worth a line of the log.
    /// - Throws: `DiskTierError`; a folder that is refused has not been touched.
    package static func claim(path: String, kind: StoreKind) throws(DiskTierError) -> String? {
        try DiskFolder.claim(path, kind).remark(path, kind)
    }

    private init(
        _ folder: DiskFolder,
        _ index: DiskIndex,
        _ pool: IOPool,
        _ limits: DiskLimits,
        _ invalidations: Invalidations,
        _ troubles: TroubleTeller
    ) {
        self.folder = folder
        self.index = index
        self.pool = pool
        self.limits = limits
        self.invalidations = invalidations
        self.troubles = troubles
    }

    private func indexFailed(_ failure: IndexFailure) {
        tell(failure)
        if case .replaced = failure { DiskRebuild.start(self, trustsTable: false) }
    }

    private func tell(_ failure: IndexFailure) {
        switch failure {
        case .unwritten(let reason):
            let text = "the index \(folder.index) cannot be written: \(reason): it is made anew at the next start"
            troubles.note(.index, text)
        case .replaced(let reason):
            troubles.note(.index, "the index \(folder.index) is damaged: \(reason): it is made anew from the files")
        }
    }

    // MARK: - Lookups

    /// The files of a key, newest first, from the table in memory; any thread. While the folders are being walked, the
    /// result may name a file that does not exist: ``load(_:via:policy:inMemoryUpTo:)`` shows that.
    package func lookup(_ key: CacheKey) -> [DiskEntry] { lookup(key, isCounted: true) }

    /// - Parameter isCounted: whether an empty result counts as a miss; false outside of a lookup for a request.
    func lookup(_ key: CacheKey, isCounted: Bool) -> [DiskEntry] {
        let digest = StoredFileName(key.bytes, key: folder.fileNameKey)
        return state.withLock { state in
            if state.isClosed || state.isAway { return [] }
            let found = state.table.find(digest.low)
            if !found.isEmpty { return found.map { DiskEntry(key: key, slot: $0) } }
            if isCounted { state.statistics.misses += 1 }
            guard state.phase != .settled, state.doomed[digest.low] == nil else { return [] }
            return [DiskEntry(key: key, guess: digest)]
        }
    }

    /// False for a while after as much was refused for want of room. Any thread; asks no disk.
    package func mayHaveRoom(for bytes: Int) -> Bool {
        state.withLock { state in
            guard let refusal = state.refusal, bytes >= refusal.bytes else { return true }
            return Monotonic.coarse() &- refusal.at > Self.patience
        }
    }

    /// True for a while after a file could not be written, unless another one could since. Any thread; asks no disk.
    package var isFailing: Bool {
        state.withLock { state in
            state.isAway || state.failure.map { Monotonic.coarse() &- $0 <= Self.patience } ?? false
        }
    }

    /// Nanoseconds after a failure before the next attempt.
    private static let patience: UInt64 = 10_000_000_000

    package var statistics: TierStatistics {
        state.withLock { state in
            var statistics = state.statistics
            statistics.objects = state.table.count
            statistics.bytes = state.table.used
            statistics.limit = limits.size
            statistics.isRebuilding = state.phase != .settled
            statistics.indexBytes = state.table.memory
            statistics.openFiles = openFiles.count
            statistics.troubles = troubles.count
            return statistics
        }
    }

    /// Writes the index and gives the folder free; blocks, so not on a loop. Later calls are misses.
    package func close() {
        let count = state.withLock { state in
            state.isClosed = true
            return state.phase == .settled ? state.table.count : nil
        }
        deleteAll()
        openFiles.removeAll()
        invalidations.close()
        index.close(count: count)
        folder.release()
    }

    // MARK: - Helpers

    func lock(_ name: StoredFileName) -> FileLock { locks[Int(name.low & 63)] }

    /// Runs `body` while no file is changed, removed or given its name. The caller must hold none of the locks.
    func withEveryLock<R, E: Error>(_ body: () throws(E) -> R, from first: Int = 0) throws(E) -> R {
        if first == locks.count { return try body() }
        return try locks[first].withLock { () throws(E) in try withEveryLock(body, from: first + 1) }
    }

    func keyHash(_ key: CacheKey) -> UInt64 { StoredFileName(key.bytes, key: folder.fileNameKey).low }

    /// The name of a response's file: a hash of its key and, if it varies, of its selecting fields.
    func name(_ key: CacheKey, _ head: StoredHead) -> StoredFileName {
        StoredFileName(key.bytes + Caching.variantKey(head), key: folder.fileNameKey)
    }

    static func now() -> UInt32 { UInt32(clamping: time(nil)) }
    static func pages(_ bytes: Int64) -> Int64 { (bytes + 4095) / 4096 * 4096 }
}

extension DiskEntry {
    init(key: CacheKey, slot: DiskTable.Slot) {
        self.init(
            key: key,
            name: slot.name,
            fileID: slot.fileID,
            bodyLength: slot.bodyLength,
            storedAt: slot.storedAt,
            isGuess: false
        )
    }

    init(key: CacheKey, guess name: StoredFileName) {
        self.init(key: key, name: name, fileID: 0, bodyLength: 0, storedAt: 0, isGuess: true)
    }
}

extension DiskTable.Slot {
    init(guess name: StoredFileName) {
        self.init(keyHash: name.low, name: name, fileID: 0, bodyLength: 0, size: 0, storedAt: 0, lastUse: 0)
    }
}
