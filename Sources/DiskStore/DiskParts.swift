// The state that all parts of the disk tier share: the folder, the index, the locks of the files, and, under its own
// lock, the knowledge of the files and the work that is left.

import CacheStore
import EventLoop
import HTTPCaching
import Synchronization

/// The limits of the disk tier.
package struct DiskLimits: Sendable {
    /// The most bytes of all files.
    package var size: Int64
    /// The most bytes of one body; nil for a quarter of `size`.
    package var maxObject: Int64?
    /// The bytes that stay free on the file system.
    package var minFree: Int64

    package init(size: Int64 = 10 << 30, maxObject: Int64? = nil, minFree: Int64 = 1 << 30) {
        self.size = max(0, size)
        self.maxObject = maxObject
        self.minFree = max(0, minFree)
    }
}

/// A lock that is held for a whole piece of work, on I/O threads only.
final class FileLock: Sendable {
    private let mutex = Mutex(())

    func withLock<R, E: Error>(_ body: () throws(E) -> R) throws(E) -> R {
        try mutex.withLock { _ throws(E) in try body() }
    }
}

/// The shared members of the parts of the tier, which know one another by their functions only.
///
/// Sendable: the state is under its mutex; a file is changed, removed or given its name under its lock, on an I/O
/// thread; everything else never changes.
final class DiskParts: Sendable {
    let folder: DiskFolder
    let index: DiskIndex
    let pool: IOPool
    let limits: DiskLimits
    /// The invalidation rules, stored beside the files, so that both are lost or kept together.
    let invalidations: Invalidations
    let troubles: TroubleTeller
    let state = Mutex(DiskState())
    let openFiles = OpenFiles()
    private let locks = (0..<64).map { _ in FileLock() }

    init(
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

    var isSettled: Bool { state.withLock { $0.isSettled } }

    // MARK: - Locks of files

    func lock(_ name: StoredFileName) -> FileLock { locks[Int(name.low & 63)] }

    /// Runs `body` while no file is changed, removed or given its name. The caller must hold none of the locks.
    func withEveryLock<R, E: Error>(_ body: () throws(E) -> R, from first: Int = 0) throws(E) -> R {
        if first == locks.count { return try body() }
        return try locks[first].withLock { () throws(E) in try withEveryLock(body, from: first + 1) }
    }

    /// Takes and releases each lock, so that every change that was in progress has reached the index
    /// when this returns; blocks.
    func passLocks() { for lock in locks { lock.withLock {} } }

    // MARK: - Names

    func keyHash(_ key: CacheKey) -> UInt64 { digest(key).low }

    /// The hash of a key, which is the name of its file if the response does not vary.
    func digest(_ key: CacheKey) -> StoredFileName { StoredFileName(key.bytes, key: folder.fileNameKey) }

    /// The name of a response's file: a hash of its key and, if it varies, of its selecting fields.
    func name(_ key: CacheKey, _ head: StoredHead) -> StoredFileName {
        StoredFileName(key.bytes + Caching.variantKey(head), key: folder.fileNameKey)
    }

    // MARK: - Reports

    func tell(_ failure: IndexFailure) {
        switch failure {
        case .unwritten(let reason):
            let text = "the index \(folder.index) cannot be written: \(reason): it is made anew at the next start"
            troubles.note(.index, text)
        case .replaced(let reason):
            troubles.note(.index, "the index \(folder.index) is damaged: \(reason): it is made anew from the files")
        }
    }
}

// MARK: - The state

/// The state of the tier; the mutex of its owner protects it.
struct DiskState {
    /// The completeness of the table.
    enum Phase {
        /// Rows of the index are still missing.
        case loading
        /// The folders are walked for files without a row.
        case walking
        /// The table has every file.
        case settled
    }

    /// The result of loading a row of the index.
    enum Loaded { case known, doomed, unknown }

    var table = DiskTable()
    var statistics = TierStatistics()
    var phase = Phase.loading
    /// The number of walks that have begun.
    var walks = 0
    /// The removals before the table was complete, each with its number, so that older files that a walk finds are
    /// removed. Three members: by the hash of the key, by the file's name, and for all files.
    private var doomed: [UInt64: UInt64] = [:]
    private var doomedFiles: [StoredFileName: UInt64] = [:]
    private var doomedAll: UInt64 = 0
    /// The hashes of keys whose files are not evicted.
    private(set) var pinned: Set<UInt64> = []
    /// The hashes in ``pinned`` by their URLs: a key stays pinned when its files are gone.
    private var pinnedByURL: [String: Set<UInt64>] = [:]
    /// The files that are out of the table and wait for their removal by an I/O thread.
    var deletions = Slab<DiskTable.Slot>()
    var isDeleting = false
    /// The old table after a purge of everything, which an I/O thread releases.
    var discarded: DiskTable?
    var isTrimming = false
    var isClosed = false
    /// Whether another process may have the folder: nothing in it is changed any more.
    var isReleased = false
    /// The last refusal because of missing room: its bytes, and its time in monotonic nanoseconds.
    var refusal: (bytes: Int64, at: UInt64)?
    /// The time of the last failed write in monotonic nanoseconds; nil if a later one succeeded.
    var failure: UInt64?
    /// Whether the folder belongs to another owner now, or cannot be created again.
    var isAway = false
    /// The number of parts of the folder in which empty folders were looked for.
    var prunedParts = 0

    var isSettled: Bool { phase == .settled && !isClosed }

    // MARK: - Arrivals

    /// Adds a file that has got its name.
    /// - Returns: its entry in the table.
    mutating func add(_ slot: DiskTable.Slot) -> DiskTable.Slot {
        statistics.commits += 1
        failure = nil
        return table.insert(slot)
    }

    /// Adds a row of the index.
    /// - Parameter suspect: the first file number of this process: a row with a greater number must be from a damaged
    ///   index, so that the head in its file must be checked.
    mutating func load(_ slot: DiskTable.Slot, unless suspect: UInt64) -> Loaded {
        if isDoomed(slot) { return .doomed }
        // An entry that this process has written, or found in the folder, is newer.
        if table.find(slot.keyHash, slot.name) != nil { return .known }
        if slot.fileID > suspect { return .unknown }
        table.insert(slot)
        return .known
    }

    /// Adds a file that was found in its folder.
    /// - Returns: its entry in the table; nil if the file was removed before it was found.
    mutating func adopt(_ found: DiskTable.Slot) -> DiskTable.Slot? {
        if isDoomed(found) { return nil }
        var slot = found
        if let known = table.find(slot.keyHash, slot.name), known.fileID == slot.fileID {
            slot.takeUse(of: known)
            slot.verifiedStamp = known.verifiedStamp
        }
        return table.insert(slot)
    }

    // MARK: - Removals

    /// Removes a file.
    /// - Returns: its entry, if the table had one.
    mutating func remove(_ file: DiskFileID) -> DiskTable.Slot? {
        if phase != .settled { doom(file.name, through: file.fileID) }
        guard let slot = table.find(file.keyHash, file.name), slot.fileID <= file.fileID else { return nil }
        return table.remove(file.keyHash, file.name)
    }

    /// Removes every variant of a key.
    /// - Parameters:
    ///   - digest: the digest of the key.
    ///   - number: the number of the removal; files of later fetches stay if a walk finds them.
    /// - Returns: the files, and a guess at another one while the table is incomplete.
    mutating func remove(_ digest: StoredFileName, number: UInt64) -> [DiskTable.Slot] {
        let removed = table.find(digest.low)
        for slot in removed { table.remove(slot.keyHash, slot.name) }
        if phase == .settled { return removed }
        // A file that the table lacks must not come back.
        doomed[digest.low] = number
        return removed.contains { $0.name == digest } ? removed : removed + [DiskTable.Slot(guess: digest)]
    }

    /// Removes everything.
    mutating func removeAll(number: UInt64) {
        if phase != .settled { doomedAll = number }
        discarded = emptyTable()
    }

    /// Forgets all files of a folder that may be lost; those that still exist are then looked for.
    /// - Returns: the previous table.
    mutating func forgetFiles() -> DiskTable {
        // Pending removals, and all removals from now on, are remembered, in case the walk finds their files.
        for position in 0..<deletions.count {
            let slot = deletions[position]
            doom(slot.name, through: slot.fileID)
        }
        phase = .walking
        walks += 1
        return emptyTable()
    }

    private mutating func emptyTable() -> DiskTable {
        let before = table
        table = DiskTable()
        table.reserved = before.reserved
        return before
    }

    /// Remembers that this file must not come back when the walk finds it, unless it was written later.
    private mutating func doom(_ name: StoredFileName, through fileID: UInt64) {
        doomedFiles[name] = max(fileID, doomedFiles[name] ?? 0)
    }

    /// Whether the file was removed since the tier was opened, before the table knew it.
    private func isDoomed(_ slot: DiskTable.Slot) -> Bool {
        slot.fileID < doomedAll || slot.fileID < doomed[slot.keyHash] ?? 0 || slot.fileID <= doomedFiles[slot.name] ?? 0
    }

    /// Whether an incomplete table may lack the file of a key without variants.
    func mayLack(_ keyHash: UInt64) -> Bool { phase != .settled && doomed[keyHash] == nil }

    // MARK: - Pins

    /// Protects the files of these keys from eviction.
    /// - Parameter url: the URL of the keys.
    mutating func pin(_ url: String, _ keyHashes: [UInt64]) {
        pinned.formUnion(keyHashes)
        pinnedByURL[url, default: []].formUnion(keyHashes)
    }

    /// Allows the files of this URL to be evicted again, later ones included.
    mutating func unpin(_ url: String) {
        pinned.subtract(pinnedByURL.removeValue(forKey: url) ?? [])
    }

    // MARK: - The table is complete

    /// Declares the table complete.
    mutating func settle() {
        phase = .settled
        doomed = [:]
        doomedFiles = [:]
        doomedAll = 0
    }

    /// Begins a walk.
    /// - Returns: its number; a later walk replaces an earlier one.
    mutating func beginWalk() -> Int {
        phase = .walking
        walks += 1
        return walks
    }

    /// Ends a walk.
    /// - Returns: false if another walk has begun.
    mutating func endWalk(_ number: Int) -> Bool {
        guard walks == number else { return false }
        settle()
        return true
    }

    // MARK: - Room

    /// The bytes by which files, stored and being written, exceed the size of the tier; negative if space is left.
    func excess(_ limits: DiskLimits) -> Int64 { table.used + table.reserved - limits.size }

    /// Removes the next file to be evicted from the table; nil if no file may be evicted.
    mutating func evict() -> DiskTable.Slot? {
        guard let victim = table.evict(besides: pinned) else { return nil }
        statistics.evictions += 1
        return victim
    }
}

extension DiskTable.Slot {
    init(guess name: StoredFileName) {
        self.init(keyHash: name.low, name: name, fileID: 0, bodyLength: 0, size: 0, storedAt: 0, lastUse: 0)
    }
}
