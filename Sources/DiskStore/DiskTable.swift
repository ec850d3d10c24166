// The table of the disk tier's files in memory: a slab of small entries, indexes by hash, and identifiers of single
// files.

package import CacheStore
import HTTPCaching

/// The table, a value without a lock: `DiskParts` keeps it under its mutex, so that no operation may take longer the
/// more files there are.
struct DiskTable {
    /// An entry of 64 bytes; with its entries in the indexes, a file takes less than 150.
    struct Slot {
        var keyHash: UInt64
        var name: StoredFileName
        var fileID: UInt64
        var bodyLength: Int64
        var storedAt: Int64
        /// The bits of ``verifiedStamp`` and, in the lowest bit, ``isSeen``.
        private var marks: UInt64
        /// The minutes of Unix time of the last use, above the three bits of ``standing``.
        private var use: UInt32
        private var pages: UInt32

        init(
            keyHash: UInt64,
            name: StoredFileName,
            fileID: UInt64,
            bodyLength: Int64,
            size: Int64,
            storedAt: Int64,
            lastUse: UInt32,
            isSeen: Bool = false
        ) {
            (self.keyHash, self.name, self.fileID) = (keyHash, name, fileID)
            (self.bodyLength, self.storedAt, self.use) = (bodyLength, storedAt, (lastUse / 60) << 3)
            (marks, pages) = (isSeen ? 1 : 0, 0)
            self.size = size
        }

        /// The last use that the index knows, in Unix seconds of whole minutes.
        var lastUse: UInt32 { (use >> 3) * 60 }
        /// The position in the order of eviction that the index knows.
        var standing: EvictionStanding { EvictionStanding(isInMain: use & 4 != 0, uses: UInt8(use & 3)) }

        /// Records a use that is written to the index.
        mutating func note(useAt seconds: UInt32, _ standing: EvictionStanding) {
            use = (seconds / 60) << 3 | (standing.isInMain ? 4 : 0) | UInt32(standing.uses & 3)
        }

        /// Whether a use has to be written to the index: the first one, which keeps the file, and then one a minute.
        func isNews(useAt seconds: UInt32) -> Bool { use & 7 == 0 || use >> 3 != seconds / 60 }

        /// Copies the last use and the position in the order of eviction from another entry of the same file.
        mutating func takeUse(of other: Slot) { use = other.use }

        /// The bytes of the file, in whole pages.
        var size: Int64 {
            get { Int64(pages) * 4096 }
            set { pages = UInt32(clamping: (max(0, newValue) / 4096) + (newValue % 4096 > 0 ? 1 : 0)) }
        }

        /// The file's stamp when all of it was verified, as ``FileStamp/digest``; zero if it never was. A file with
        /// another stamp has changed since, and is verified again.
        var verifiedStamp: UInt64 {
            get { marks & ~1 }
            set { marks = marks & 1 | newValue & ~1 }
        }

        /// Whether the file was found in its folder, or written by this process.
        var isSeen: Bool {
            get { marks & 1 == 1 }
            set { marks = marks & ~1 | (newValue ? 1 : 0) }
        }

        func isNewer(than other: Slot) -> Bool { (storedAt, fileID) > (other.storedAt, other.fileID) }
        /// Whether the name of the file depends on more than its key, namely on selecting fields.
        fileprivate var isVariant: Bool { name.low != keyHash }
    }

    /// The entries without gaps: the last one fills the position of a removed one.
    private var slots = Slab<Slot>()
    private var byKey = HashIndexes()
    /// The files that are not found in `byKey` by the hash of their name.
    private var byName = HashIndexes()
    /// The order of eviction. One use of a file counts as much as two uses of an entry in memory, because the memory
    /// tier answers frequent requests.
    private var order = EvictionOrder<Slab<EvictionNode>>(usesToStay: 1)
    /// The bytes of all files.
    private(set) var used: Int64 = 0
    /// The bytes of files that are being written.
    var reserved: Int64 = 0

    var count: Int { slots.count }
    /// The bytes that the table takes.
    var memory: Int { slots.capacityBytes + order.capacityBytes + byKey.capacityBytes + byName.capacityBytes }

    /// The files of a key, newest first.
    func find(_ keyHash: UInt64) -> [Slot] {
        var found: [Slot] = []
        _ = byKey.find(keyHash) { position in
            if slots[position].keyHash == keyHash { found.append(slots[position]) }
            return false
        }
        return found.count < 2 ? found : found.sorted { $0.isNewer(than: $1) }
    }

    /// The file of a key that has only one; nil otherwise.
    func findOnly(_ keyHash: UInt64) -> Slot? {
        var only: Slot?
        var count = 0
        _ = byKey.find(keyHash) { position in
            guard slots[position].keyHash == keyHash else { return false }
            only = slots[position]
            count += 1
            return count > 1
        }
        return count == 1 ? only : nil
    }

    func find(_ keyHash: UInt64, _ name: StoredFileName) -> Slot? { position(keyHash, name).map { slots[$0] } }

    /// Adds a file, or replaces its entry.
    /// - Returns: the entry, with the position in the order of eviction that the file has, or has taken over.
    @discardableResult
    mutating func insert(_ slot: Slot) -> Slot {
        used += slot.size
        if let position = position(slot.keyHash, slot.name) {
            used -= slots[position].size
            slots[position] = slot
            slots[position].note(useAt: slot.lastUse, order.standing(position))
            order.setCost(position, Self.cost(slot))
            return slots[position]
        } else {
            let position = slots.count
            slots.append(slot)
            list(slot, position)
            if slot.standing == EvictionStanding() {
                order.add(position, hash: slot.name.high, cost: Self.cost(slot))
            } else {
                order.add(position, standing: slot.standing, cost: Self.cost(slot))
            }
            return slots[position]
        }
    }

    mutating func update(_ keyHash: UInt64, _ name: StoredFileName, _ change: (inout Slot) -> Void) {
        guard let position = position(keyHash, name) else { return }
        used -= slots[position].size
        change(&slots[position])
        used += slots[position].size
        order.setCost(position, Self.cost(slots[position]))
    }

    /// Records that a file answers a request.
    /// - Parameter now: the time in Unix seconds.
    /// - Returns: the entry, if the use has to be written to the index.
    mutating func use(_ keyHash: UInt64, _ name: StoredFileName, _ now: UInt32) -> Slot? {
        guard let position = position(keyHash, name) else { return nil }
        order.use(position)
        guard slots[position].isNews(useAt: now) else { return nil }
        slots[position].note(useAt: now, order.standing(position))
        return slots[position]
    }

    @discardableResult
    mutating func remove(_ keyHash: UInt64, _ name: StoredFileName) -> Slot? {
        guard let position = position(keyHash, name) else { return nil }
        order.remove(position)
        return takeOut(position)
    }

    /// Removes an entry.
    /// - Parameter position: the position of a file that is no longer in the order of eviction.
    private mutating func takeOut(_ position: Int) -> Slot {
        let slot = slots[position]
        let last = slots.count - 1
        used -= slot.size
        unlist(slot, position)
        if position != last {
            let moved = slots[last]
            unlist(moved, last)
            slots[position] = moved
            list(moved, position)
            order.move(last, to: position)
        }
        slots.removeLast()
        order.shorten(to: slots.count)
        return slot
    }

    /// Removes the files of a key that were stored before the newest `count`.
    mutating func removeOldest(_ keyHash: UInt64, beyond count: Int) -> [Slot] {
        let removed = find(keyHash).dropFirst(count)
        for slot in removed { remove(slot.keyHash, slot.name) }
        return Array(removed)
    }

    /// Removes the next file to be evicted; nil if no file may be evicted.
    /// - Parameter pinned: the hashes of keys whose files stay.
    mutating func evict(besides pinned: Set<UInt64> = []) -> Slot? {
        let victim = pinned.isEmpty ? order.victim() : Self.victim(in: &order, of: slots, besides: pinned)
        guard let position = victim else { return nil }
        order.evict(position, hash: slots[position].name.high)
        return takeOut(position)
    }

    private static func victim(
        in order: inout EvictionOrder<Slab<EvictionNode>>,
        of slots: Slab<Slot>,
        besides pinned: Set<UInt64>
    ) -> Int? {
        order.victim { pinned.contains(slots[$0].keyHash) }
    }

    /// Marks a file that a walk has found; its key is unknown.
    /// - Returns: whether the table has it.
    mutating func markSeen(_ name: StoredFileName) -> Bool {
        let known = byKey.find(name.low) { slots[$0].name == name }
        guard let position = known ?? byName.find(name.low, matches: { slots[$0].name == name }) else { return false }
        slots[position].isSeen = true
        return true
    }

    /// The files of the table that a walk has not found, from the end of the table towards its beginning.
    /// - Parameters:
    ///   - position: the position at which the search continues; nil to start at the end of the table.
    ///   - count: the number of entries to examine.
    /// - Returns: the files, and the position at which to continue; nil at the beginning of the table. Entries may be
    ///   added or removed between two calls.
    func unseen(before position: Int?, count: Int) -> (slots: [Slot], next: Int?) {
        let end = min(position ?? .max, slots.count)
        let start = max(0, end - count)
        return ((start..<end).map { slots[$0] }.filter { !$0.isSeen }, start > 0 ? start : nil)
    }

    /// The cost of a file in pages of 4 KiB, which 32 bits hold.
    private static func cost(_ slot: Slot) -> Int { Int(slot.size / 4096) }

    private func position(_ keyHash: UInt64, _ name: StoredFileName) -> Int? {
        byKey.find(keyHash) { slots[$0].name == name }
    }

    private mutating func list(_ slot: Slot, _ position: Int) {
        byKey.insert(slot.keyHash, slot: position)
        if slot.isVariant { byName.insert(slot.name.low, slot: position) }
    }

    private mutating func unlist(_ slot: Slot, _ position: Int) {
        byKey.remove(slot.keyHash, slot: position)
        if slot.isVariant { byName.remove(slot.name.low, slot: position) }
    }
}

/// Many small indexes instead of a large one: each grows for itself within a moment, and two copies of the whole never
/// exist.
private struct HashIndexes {
    private var parts = Array(repeating: HashIndex(), count: 256)

    var capacityBytes: Int { parts.reduce(0) { $0 + $1.capacityBytes } }

    func find(_ hash: UInt64, matches: (Int) -> Bool) -> Int? { parts[Int(hash >> 56)].find(hash, matches: matches) }

    mutating func insert(_ hash: UInt64, slot: Int) { parts[Int(hash >> 56)].insert(hash, slot: slot) }

    mutating func remove(_ hash: UInt64, slot: Int) { parts[Int(hash >> 56)].remove(hash, slot: slot) }
}

// MARK: - Names of a file

/// One file of the disk tier, as the table knows it.
package struct DiskEntry: Sendable, Equatable {
    package let key: CacheKey
    let name: StoredFileName
    package let fileID: UInt64
    /// The length of the body, in bytes.
    package let bodyLength: Int64
    /// The arrival of the response in Unix seconds.
    package let storedAt: Int64
    /// The entry is a guess from the name, while the table is incomplete: the file may not exist.
    let isGuess: Bool
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

/// The head in a file of the disk tier.
struct DiskHead: Sendable {
    let entry: DiskEntry
    let head: StoredHead
}

/// One file of the disk tier, as the index names it.
struct DiskFileID: Sendable, Hashable {
    let keyHash: UInt64
    let name: StoredFileName
    /// The number of the file, which differs for a file that has replaced it.
    let fileID: UInt64
}
