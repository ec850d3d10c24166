// The disk tier: one file per stored response, a compact table in memory, an index that can be rebuilt.

package import EventLoop
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

/// What the disk tier has done and holds.
package struct DiskStatistics: Sendable, Equatable {
    package var objects = 0
    /// Bytes on the disk.
    package var bytes: Int64 = 0
    /// Bytes at most.
    package var limit: Int64 = 0
    package var hits = 0
    package var misses = 0
    package var evictions = 0
    package var commits = 0
    /// Responses that were not stored for want of room, or because they are too large.
    package var refusals = 0
    /// Files that were removed because they did not match their checksums.
    package var damaged = 0
    /// The folders are being walked for files that the index does not know.
    package var isRebuilding = false
}

/// Sendable: the table is under `state`; a file is changed, removed or given its name under one of `locks`, on an I/O
/// thread; everything else never changes.
package final class DiskTier: Sendable {
    struct State {
        var table: DiskTable
        var statistics = DiskStatistics()
        /// Keys that were removed while the folders were walked, with the number of that moment: files of theirs that turn up
        /// and are older are removed.
        var doomed: [UInt64: UInt64] = [:]
        /// Files that are out of the table and wait for an I/O thread.
        var deletions: [DiskTable.Slot] = []
        var isRebuilding: Bool
        var isClosed = false
        /// The last refusal for want of room: its bytes, and when it was, in monotonic nanoseconds.
        var refusal: (bytes: Int64, at: UInt64)?
    }

    final class FileLock: Sendable {
        private let mutex = Mutex(())
        func withLock<R, E: Error>(_ body: () throws(E) -> R) throws(E) -> R {
            try mutex.withLock { _ throws(E) in try body() }
        }
    }

    let folder: DiskFolder
    let index: DiskIndex
    let pool: IOPool
    let limits: DiskLimits
    /// Kept beside the files: what they outlive, the rules outlive, too.
    package let generations: Generations
    let state: Mutex<State>
    /// Held while files are removed, so that closing waits for it.
    private let deletion = FileLock()
    private let locks = (0..<64).map { _ in FileLock() }

    /// Opens a folder, which it makes with mode 0700 where there is none: takes its lock, removes temporaries, loads the
    /// index, and walks the folders behind where the last user did not close it in order.
    /// - Throws: `DiskTierError`; `.inUse` where another daemon uses the folder.
    package static func open(path: String, limits: DiskLimits = DiskLimits(), pool: IOPool) async throws -> DiskTier {
        let tier = try await pool.run {
            let folder = try DiskFolder(path)
            if folder.isNew { DiskIndex.remove(folder.index) }
            let (index, table, isComplete) = try DiskIndex.open(folder.index)
            let isKnown = isComplete || DiskFolder.names(folder.objects).isEmpty
            let state = State(table: table, isRebuilding: !isKnown)
            let generations = Generations(path: folder.invalidations, pool: pool)
            generations.advance(past: table.newestFileID)
            return DiskTier(
                folder: folder,
                index: index,
                pool: pool,
                limits: limits,
                generations: generations,
                state: state
            )
        }
        if tier.state.withLock({ $0.isRebuilding }) { DiskRebuild.start(tier) }
        return tier
    }

    private init(
        folder: DiskFolder,
        index: DiskIndex,
        pool: IOPool,
        limits: DiskLimits,
        generations: Generations,
        state: sending State
    ) {
        self.folder = folder
        self.index = index
        self.pool = pool
        self.limits = limits
        self.generations = generations
        self.state = Mutex(state)
    }

    // MARK: - Lookups

    /// The files of a key, newest first, from the table in memory; any thread. While the folders are being walked, a
    /// file may be named that does not exist: ``load(_:via:policy:inMemoryUpTo:)`` tells.
    package func lookup(_ key: CacheKey) -> [DiskEntry] { lookup(key, isCounted: true) }

    /// - Parameter isCounted: finding nothing is a miss; false for whoever asks besides a lookup.
    func lookup(_ key: CacheKey, isCounted: Bool) -> [DiskEntry] {
        let digest = Digest(key.bytes, key: folder.digestKey)
        return state.withLock { state in
            if state.isClosed { return [] }
            let found = state.table.find(digest.low)
            if !found.isEmpty { return found.map { DiskEntry(key: key, slot: $0) } }
            if isCounted { state.statistics.misses += 1 }
            guard state.isRebuilding, state.doomed[digest.low] == nil else { return [] }
            return [DiskEntry(key: key, guess: digest)]
        }
    }

    /// False for a while after as much was refused for want of room. Any thread; asks no disk.
    package func mayHaveRoom(for bytes: Int) -> Bool {
        state.withLock { state in
            guard let refusal = state.refusal, bytes >= refusal.bytes else { return true }
            return Monotonic.coarse() &- refusal.at > 10_000_000_000
        }
    }

    package var statistics: DiskStatistics {
        state.withLock { state in
            var statistics = state.statistics
            statistics.objects = state.table.count
            statistics.bytes = state.table.used
            statistics.limit = limits.size
            statistics.isRebuilding = state.isRebuilding
            return statistics
        }
    }

    /// The stored responses whose URL matches, by URL.
    /// - Parameters:
    ///   - pattern: part of a URL, or a pattern with `*`; nil for all.
    ///   - service: only of this service; empty for forward mode.
    ///   - url: only those behind this one, to continue a listing.
    package func entries(
        matching pattern: String? = nil,
        service: String? = nil,
        limit: Int = 1000,
        after url: String? = nil
    ) async throws -> [DiskListing] {
        try await index.list(matching: pattern, service: service, limit: limit, after: url)
    }

    // MARK: - Removal

    /// Removes every variant of a key: lookups miss at once, the files go behind. Any thread.
    package func remove(_ key: CacheKey) {
        let digest = Digest(key.bytes, key: folder.digestKey)
        let number = generations.nextNumber()
        let removed = state.withLock { state in
            // A file that the walk has not met yet must not come back.
            if state.isRebuilding { state.doomed[digest.low] = number }
            let removed = state.table.find(digest.low)
            for slot in removed { state.table.remove(slot.keyHash, slot.name) }
            if removed.isEmpty && !state.isRebuilding { return removed }
            let guess = DiskTable.Slot(guess: digest)
            return state.isRebuilding && !removed.contains { $0.name == digest } ? removed + [guess] : removed
        }
        deleteBehind(removed)
    }

    /// Removes one file. Any thread.
    package func remove(_ entry: DiskEntry) {
        let hash = keyHash(entry.key)
        let removed = state.withLock { $0.table.remove(hash, entry.name) }
        if let removed { deleteBehind([removed]) }
    }

    /// Removes everything. Any thread.
    package func removeAll() {
        let removed = state.withLock { state in
            let all = state.table.all
            for slot in all { state.table.remove(slot.keyHash, slot.name) }
            return all
        }
        deleteBehind(removed)
    }

    func deleteBehind(_ slots: [DiskTable.Slot]) {
        guard !slots.isEmpty else { return }
        state.withLock { $0.deletions += slots }
        pool.submit { [self] in deleteNow() }
    }

    /// Removes the files that wait for it; blocks.
    private func deleteNow() {
        deletion.withLock {
            let slots = state.withLock { state in
                defer { state.deletions = [] }
                return state.deletions
            }
            for slot in slots { delete(slot.keyHash, slot.name) }
        }
    }

    /// Removes a file unless the table knows it (again); I/O thread.
    func delete(_ keyHash: UInt64, _ name: Digest) {
        lock(name).withLock {
            guard state.withLock({ $0.table.find(keyHash, name) }) == nil else { return }
            unlink(folder.place(of: name))
            index.note(.remove(name))
        }
    }

    /// Writes the index and gives the folder free; blocks, so not on a loop. Later calls are misses.
    package func close() {
        let isComplete = state.withLock { state in
            state.isClosed = true
            return !state.isRebuilding
        }
        deleteNow()
        generations.close()
        index.close(isComplete: isComplete)
        folder.release()
    }

    // MARK: - Helpers

    func lock(_ name: Digest) -> FileLock { locks[Int(name.low & 63)] }
    func keyHash(_ key: CacheKey) -> UInt64 { Digest(key.bytes, key: folder.digestKey).low }

    /// The name of a response's file: its key and, where it varies, its selecting fields.
    func name(_ key: CacheKey, _ head: StoredHead) -> Digest {
        Digest(key.bytes + Caching.variantKey(head), key: folder.digestKey)
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
            isGuess: false,
            isVerified: slot.isVerified
        )
    }

    init(key: CacheKey, guess name: Digest) {
        self.init(key: key, name: name, fileID: 0, bodyLength: 0, storedAt: 0, isGuess: true, isVerified: false)
    }
}

extension DiskTable.Slot {
    init(guess name: Digest) {
        self.init(keyHash: name.low, name: name, fileID: 0, bodyLength: 0, size: 0, storedAt: 0, lastUse: 0)
    }
}
