// What all parts of the disk tier share: the folder, the index, the locks of the files, and under its own lock the
// state: what is known of the files and still to be done with them.

import CacheStore
import EventLoop
import HTTPCaching
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

/// A lock of a whole piece of work, on I/O threads only.
final class FileLock: Sendable {
    private let mutex = Mutex(())

    func withLock<R, E: Error>(_ body: () throws(E) -> R) throws(E) -> R {
        try mutex.withLock { _ throws(E) in try body() }
    }
}

/// The parts of the tier know one another by what they do; what they do it with is here.
///
/// Sendable: the state is under its mutex; a file is changed, removed or given its name under its lock, on an I/O
/// thread; everything else never changes.
final class DiskParts: Sendable {
    let folder: DiskFolder
    let index: DiskIndex
    let pool: IOPool
    let limits: DiskLimits
    /// Stored beside the files, so that the rules outlive whatever the files outlive.
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

    /// The hash of a key: the name of its file, where it has no selecting fields.
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

/// Its owner's lock protects it.
struct DiskState {
    /// How much the table knows.
    enum Phase {
        /// Rows of the index are still to come.
        case loading
        /// The folders are walked for files without a row.
        case walking
        /// Every file.
        case settled
    }

    /// What becomes of a row of the index.
    enum Loaded { case known, doomed, unknown }

    var table = DiskTable()
    var statistics = TierStatistics()
    var phase = Phase.loading
    /// Walks that have begun.
    var walks = 0
    /// Removals before the table was complete, each with its number: older files that the walk finds are removed.
    /// Three tables: by the hash of the key, by the file's name, and one for all files.
    private var doomed: [UInt64: UInt64] = [:]
    private var doomedFiles: [StoredFileName: UInt64] = [:]
    private var doomedAll: UInt64 = 0
    /// Hashes of keys whose files are not evicted.
    private(set) var pinned: Set<UInt64> = []
    /// ``pinned`` by the URLs that are pinned: a key stays known as pinned when its files have gone.
    private var pinnedByURL: [String: Set<UInt64>] = [:]
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

    var isSettled: Bool { phase == .settled && !isClosed }

    // MARK: - Arrivals

    /// A file has got its name.
    /// - Returns: what the table knows of it.
    mutating func add(_ slot: DiskTable.Slot) -> DiskTable.Slot {
        statistics.commits += 1
        failure = nil
        return table.insert(slot)
    }

    /// A row of the index.
    /// - Parameter suspect: files of an earlier process have smaller numbers; if a row has a greater one, the head in
    ///   its file must be checked.
    mutating func load(_ slot: DiskTable.Slot, unless suspect: UInt64) -> Loaded {
        if isDoomed(slot) { return .doomed }
        // What this process has written, or found in the folder, is newer.
        if table.find(slot.keyHash, slot.name) != nil { return .known }
        if slot.fileID > suspect { return .unknown }
        table.insert(slot)
        return .known
    }

    /// A file that was found in its folder.
    /// - Returns: what the table knows of it now; nil where it was removed before it was found.
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

    /// - Returns: the file, where the table had it.
    mutating func remove(_ file: DiskFileID) -> DiskTable.Slot? {
        if phase != .settled { doom(file.name, through: file.fileID) }
        guard let slot = table.find(file.keyHash, file.name), slot.fileID <= file.fileID else { return nil }
        return table.remove(file.keyHash, file.name)
    }

    /// Removes every variant of a key.
    /// - Parameters:
    ///   - digest: of the key.
    ///   - number: files of fetches that began later stay, where the walk finds them.
    /// - Returns: the files, and the one that there may be beside them while the table is not complete.
    mutating func remove(_ digest: StoredFileName, number: UInt64) -> [DiskTable.Slot] {
        let removed = table.find(digest.low)
        for slot in removed { table.remove(slot.keyHash, slot.name) }
        if phase == .settled { return removed }
        // A file that the table does not have yet must not come back.
        doomed[digest.low] = number
        return removed.contains { $0.name == digest } ? removed : removed + [DiskTable.Slot(guess: digest)]
    }

    /// Removes everything.
    mutating func removeAll(number: UInt64) {
        if phase != .settled { doomedAll = number }
        discarded = emptyTable()
    }

    /// The folder's files may be gone: those that are still there are looked for.
    /// - Returns: the table as it was.
    mutating func forgetFiles() -> DiskTable {
        // Pending removals, and all removals from now on, are remembered, in case the walk finds their files.
        for place in 0..<deletions.count {
            let slot = deletions[place]
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

    /// Removed since the tier was opened, before the table knew the file.
    private func isDoomed(_ slot: DiskTable.Slot) -> Bool {
        slot.fileID < doomedAll || slot.fileID < doomed[slot.keyHash] ?? 0 || slot.fileID <= doomedFiles[slot.name] ?? 0
    }

    /// While the table is not complete: whether it may lack the file of a key that has no variants.
    func mayLack(_ keyHash: UInt64) -> Bool { phase != .settled && doomed[keyHash] == nil }

    // MARK: - Pins

    /// Files of these keys make no room for others.
    /// - Parameter url: of the keys.
    mutating func pin(_ url: String, _ keyHashes: [UInt64]) {
        pinned.formUnion(keyHashes)
        pinnedByURL[url, default: []].formUnion(keyHashes)
    }

    /// Files of this URL make room for others again, those too that are stored later.
    mutating func unpin(_ url: String) {
        pinned.subtract(pinnedByURL.removeValue(forKey: url) ?? [])
    }

    // MARK: - The table is complete

    /// The table knows every file.
    mutating func settle() {
        phase = .settled
        doomed = [:]
        doomedFiles = [:]
        doomedAll = 0
    }

    /// - Returns: the number of the walk: a later one takes the place of an earlier one.
    mutating func beginWalk() -> Int {
        phase = .walking
        walks += 1
        return walks
    }

    /// - Returns: false where another walk has begun.
    mutating func endWalk(_ number: Int) -> Bool {
        guard walks == number else { return false }
        settle()
        return true
    }

    // MARK: - Room

    /// Bytes of files, stored and being written, beyond the size of the tier; negative if space is left.
    func excess(_ limits: DiskLimits) -> Int64 { table.used + table.reserved - limits.size }

    /// Takes the file out of the table whose turn it is to make room; nil where none may go.
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
