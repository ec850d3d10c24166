// What the disk tier knows about its files without asking the disk: a slab of small entries, indexes by hash, and the
// names of one file.

package import CacheStore
import HTTPCaching

/// A value without a lock: `DiskParts` keeps it under its mutex, so nothing here takes longer the more files there are.
struct DiskTable {
    /// 64 bytes: with its places in the indexes, a file costs less than 150.
    struct Slot {
        var keyHash: UInt64
        var name: StoredFileName
        var fileID: UInt64
        var bodyLength: Int64
        var storedAt: Int64
        /// ``verifiedStamp`` and, in the lowest bit, ``isSeen``.
        private var marks: UInt64
        /// Minutes of Unix time of the last use, above ``standing``'s three bits.
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

        /// Unix seconds of the last use that the index knows, in whole minutes.
        var lastUse: UInt32 { (use >> 3) * 60 }
        /// The place in the order of eviction that the index knows.
        var standing: EvictionStanding { EvictionStanding(isInMain: use & 4 != 0, uses: UInt8(use & 3)) }

        /// A use that the index will know.
        mutating func note(useAt seconds: UInt32, _ standing: EvictionStanding) {
            use = (seconds / 60) << 3 | (standing.isInMain ? 4 : 0) | UInt32(standing.uses & 3)
        }

        /// Whether the index has to know of a use: of the first one, which keeps the file, and of one a minute.
        func isNews(useAt seconds: UInt32) -> Bool { use & 7 == 0 || use >> 3 != seconds / 60 }

        /// Takes the last use and the place in the order of eviction from another slot of the same file.
        mutating func takeUse(of other: Slot) { use = other.use }

        /// Bytes of the file, in whole pages.
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

        /// Found in its folder, or written by this process.
        var isSeen: Bool {
            get { marks & 1 == 1 }
            set { marks = marks & ~1 | (newValue ? 1 : 0) }
        }

        func isNewer(than other: Slot) -> Bool { (storedAt, fileID) > (other.storedAt, other.fileID) }
        /// Its name is more than its key: it has selecting fields.
        fileprivate var isVariant: Bool { name.low != keyHash }
    }

    /// Without holes: the last slot moves to where one is removed.
    private var slots = Slab<Slot>()
    private var byKey = HashIndexes()
    /// The files that are not found by their name's hash in `byKey`.
    private var byName = HashIndexes()
    /// Which file makes room next. The memory tier answers what is used often, so that one use of a file says as much
    /// as two of an entry in memory.
    private var order = EvictionOrder<Slab<EvictionNode>>(usesToStay: 1)
    /// Bytes of all files.
    private(set) var used: Int64 = 0
    /// Bytes of files that are being written.
    var reserved: Int64 = 0

    var count: Int { slots.count }
    /// What the table takes.
    var memory: Int { slots.capacityBytes + order.capacityBytes + byKey.capacityBytes + byName.capacityBytes }

    /// The files of a key, newest first.
    func find(_ keyHash: UInt64) -> [Slot] {
        var found: [Slot] = []
        _ = byKey.find(keyHash) { place in
            if slots[place].keyHash == keyHash { found.append(slots[place]) }
            return false
        }
        return found.count < 2 ? found : found.sorted { $0.isNewer(than: $1) }
    }

    /// The file of a key that has no other.
    func findOnly(_ keyHash: UInt64) -> Slot? {
        var only: Slot?
        var count = 0
        _ = byKey.find(keyHash) { place in
            guard slots[place].keyHash == keyHash else { return false }
            only = slots[place]
            count += 1
            return count > 1
        }
        return count == 1 ? only : nil
    }

    func find(_ keyHash: UInt64, _ name: StoredFileName) -> Slot? { place(keyHash, name).map { slots[$0] } }

    /// Adds a file, or replaces what the table knows about it.
    /// - Returns: the slot, with the place in the order of eviction that the file has, or has taken over.
    @discardableResult
    mutating func insert(_ slot: Slot) -> Slot {
        used += slot.size
        if let place = place(slot.keyHash, slot.name) {
            used -= slots[place].size
            slots[place] = slot
            slots[place].note(useAt: slot.lastUse, order.standing(place))
            order.setCost(place, Self.cost(slot))
            return slots[place]
        } else {
            let place = slots.count
            slots.append(slot)
            list(slot, place)
            if slot.standing == EvictionStanding() {
                order.add(place, hash: slot.name.high, cost: Self.cost(slot))
            } else {
                order.add(place, standing: slot.standing, cost: Self.cost(slot))
            }
            return slots[place]
        }
    }

    mutating func update(_ keyHash: UInt64, _ name: StoredFileName, _ change: (inout Slot) -> Void) {
        guard let place = place(keyHash, name) else { return }
        used -= slots[place].size
        change(&slots[place])
        used += slots[place].size
        order.setCost(place, Self.cost(slots[place]))
    }

    /// An answer is given from a file.
    /// - Parameter now: Unix seconds.
    /// - Returns: the slot, where the index has to know of the use.
    mutating func use(_ keyHash: UInt64, _ name: StoredFileName, _ now: UInt32) -> Slot? {
        guard let place = place(keyHash, name) else { return nil }
        order.use(place)
        guard slots[place].isNews(useAt: now) else { return nil }
        slots[place].note(useAt: now, order.standing(place))
        return slots[place]
    }

    @discardableResult
    mutating func remove(_ keyHash: UInt64, _ name: StoredFileName) -> Slot? {
        guard let place = place(keyHash, name) else { return nil }
        order.remove(place)
        return takeOut(place)
    }

    /// - Parameter place: of a file that is no longer in the order.
    private mutating func takeOut(_ place: Int) -> Slot {
        let slot = slots[place]
        let last = slots.count - 1
        used -= slot.size
        unlist(slot, place)
        if place != last {
            let moved = slots[last]
            unlist(moved, last)
            slots[place] = moved
            list(moved, place)
            order.move(last, to: place)
        }
        slots.removeLast()
        order.shorten(to: slots.count)
        return slot
    }

    /// Takes the files of a key out that were stored before the newest `count`.
    mutating func removeOldest(_ keyHash: UInt64, beyond count: Int) -> [Slot] {
        let removed = find(keyHash).dropFirst(count)
        for slot in removed { remove(slot.keyHash, slot.name) }
        return Array(removed)
    }

    /// Takes the file out that makes room for others; nil where none may.
    /// - Parameter pinned: hashes of keys whose files stay.
    mutating func evict(besides pinned: Set<UInt64> = []) -> Slot? {
        let victim = pinned.isEmpty ? order.victim() : Self.victim(in: &order, of: slots, besides: pinned)
        guard let place = victim else { return nil }
        order.evict(place, hash: slots[place].name.high)
        return takeOut(place)
    }

    private static func victim(
        in order: inout EvictionOrder<Slab<EvictionNode>>,
        of slots: Slab<Slot>,
        besides pinned: Set<UInt64>
    ) -> Int? {
        order.victim { pinned.contains(slots[$0].keyHash) }
    }

    /// Marks a file that the walk has met; its key is unknown.
    /// - Returns: whether the table has it.
    mutating func markSeen(_ name: StoredFileName) -> Bool {
        let known = byKey.find(name.low) { slots[$0].name == name }
        guard let place = known ?? byName.find(name.low, matches: { slots[$0].name == name }) else { return false }
        slots[place].isSeen = true
        return true
    }

    /// Files of the table that the walk has not met, from the end of the table towards its beginning.
    /// - Parameters:
    ///   - place: where the search continues; nil starts at the end of the table.
    ///   - count: how many entries to examine.
    /// - Returns: the files, and where to continue; nil at the beginning of the table. Entries may be added or
    ///   removed between two calls.
    func unseen(before place: Int?, count: Int) -> (slots: [Slot], next: Int?) {
        let end = min(place ?? .max, slots.count)
        let start = max(0, end - count)
        return ((start..<end).map { slots[$0] }.filter { !$0.isSeen }, start > 0 ? start : nil)
    }

    /// Pages of 4 KiB, which 32 bits hold.
    private static func cost(_ slot: Slot) -> Int { Int(slot.size / 4096) }

    private func place(_ keyHash: UInt64, _ name: StoredFileName) -> Int? {
        byKey.find(keyHash) { slots[$0].name == name }
    }

    private mutating func list(_ slot: Slot, _ place: Int) {
        byKey.insert(slot.keyHash, slot: place)
        if slot.isVariant { byName.insert(slot.name.low, slot: place) }
    }

    private mutating func unlist(_ slot: Slot, _ place: Int) {
        byKey.remove(slot.keyHash, slot: place)
        if slot.isVariant { byName.remove(slot.name.low, slot: place) }
    }
}

/// Many small indexes instead of a large one: each grows for itself, in a moment, and no two
/// copies of all exist at once.
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
    /// When the response arrived, Unix seconds.
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
    /// A file that has replaced it has another id.
    let fileID: UInt64
}
