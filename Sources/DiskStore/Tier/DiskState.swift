// What the disk tier knows of its files and still has to do with them, as one value: nothing in it waits or asks a disk.

import CacheStore

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
    /// The same by the URLs that are pinned: a key stays known as pinned when its files have gone.
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
