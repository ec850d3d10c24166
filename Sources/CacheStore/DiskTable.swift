// What the disk tier knows about its files without asking the disk: a slab of small entries and an index by key.

/// One file of the disk tier, as the table knows it.
package struct DiskEntry: Sendable, Equatable {
    package let key: CacheKey
    let name: Digest
    let fileID: UInt64
    /// In bytes.
    package let bodyLength: Int64
    /// When the response arrived, Unix seconds.
    package let storedAt: Int64
    /// The table is not complete yet: the file may not exist.
    let isGuess: Bool
    let isVerified: Bool
}

/// A value without a lock: `DiskTier` keeps it under its mutex.
struct DiskTable {
    struct Slot {
        var keyHash: UInt64
        var name: Digest
        var fileID: UInt64
        var bodyLength: Int64
        /// Bytes of the file, in whole pages.
        var size: Int64
        var storedAt: Int64
        /// Unix seconds.
        var lastUse: UInt32
        var isVerified = false
        /// Found in its folder, or written by this process.
        var isSeen = false
        var isLive = true

        func isNewer(than other: Slot) -> Bool { (storedAt, fileID) > (other.storedAt, other.fileID) }
    }

    private var slots: [Slot] = []
    private var free: [UInt32] = []
    /// Only while the folders are walked.
    private var byName: [Digest: UInt32] = [:]
    private var index: HashIndex
    /// Bytes of all files.
    private(set) var used: Int64 = 0
    /// Bytes of files that are being written.
    var reserved: Int64 = 0

    init(capacity: Int = 16) {
        index = HashIndex(minimumCapacity: capacity)
        slots.reserveCapacity(capacity)
    }

    var count: Int { index.count }

    /// The greatest number of a file; 0 where there is none.
    var newestFileID: UInt64 { slots.reduce(0) { $1.isLive ? max($0, $1.fileID) : $0 } }

    /// The files of a key, newest first.
    func find(_ keyHash: UInt64) -> [Slot] {
        var found: [Slot] = []
        _ = index.find(keyHash) { place in
            found.append(slots[place])
            return false
        }
        return found.count < 2 ? found : found.sorted { $0.isNewer(than: $1) }
    }

    func find(_ keyHash: UInt64, _ name: Digest) -> Slot? { place(keyHash, name).map { slots[$0] } }

    /// Adds a file, or replaces what the table knows about it.
    mutating func insert(_ slot: Slot) {
        used += slot.size
        if let place = place(slot.keyHash, slot.name) {
            used -= slots[place].size
            slots[place] = slot
        } else if let place = free.popLast() {
            slots[Int(place)] = slot
            index.insert(slot.keyHash, slot: Int(place))
        } else {
            slots.append(slot)
            index.insert(slot.keyHash, slot: slots.count - 1)
        }
    }

    mutating func update(_ keyHash: UInt64, _ name: Digest, _ change: (inout Slot) -> Void) {
        guard let place = place(keyHash, name) else { return }
        used -= slots[place].size
        change(&slots[place])
        used += slots[place].size
    }

    @discardableResult
    mutating func remove(_ keyHash: UInt64, _ name: Digest) -> Slot? {
        guard let place = place(keyHash, name) else { return nil }
        let slot = slots[place]
        used -= slot.size
        slots[place].isLive = false
        free.append(UInt32(place))
        index.remove(keyHash, slot: place)
        return slot
    }

    /// Takes the files of a key out that were stored before the newest `count`.
    mutating func removeOldest(_ keyHash: UInt64, beyond count: Int) -> [Slot] {
        let removed = find(keyHash).dropFirst(count)
        for slot in removed { remove(slot.keyHash, slot.name) }
        return Array(removed)
    }

    /// The longest unused of a few files chosen at random: close to least recent use, without a list to maintain.
    func victim() -> Slot? {
        guard index.count > 0 else { return nil }
        var best: Slot?
        var seen = 0
        for _ in 0..<64 where seen < 12 {
            let slot = slots[Int.random(in: slots.indices)]
            guard slot.isLive else { continue }
            seen += 1
            if slot.lastUse < best?.lastUse ?? .max { best = slot }
        }
        return best ?? slots.first { $0.isLive }
    }

    /// The walk over the folders has met a file, whose key is not known yet.
    /// - Returns: whether it is in the table.
    mutating func markSeen(_ name: Digest) -> Bool {
        if byName.isEmpty {
            for (place, slot) in slots.enumerated() where slot.isLive { byName[slot.name] = UInt32(place) }
        }
        // Files that came after the walk began are found by it only if they are unknown to this list: then their
        // record is read, which is as good.
        guard let place = byName[name].map(Int.init), slots[place].isLive, slots[place].name == name else {
            return false
        }
        slots[place].isSeen = true
        return true
    }

    /// The walk is over.
    mutating func forgetNames() { byName = [:] }

    /// Every file, in no order.
    var all: [Slot] { slots.filter(\.isLive) }

    private func place(_ keyHash: UInt64, _ name: Digest) -> Int? { index.find(keyHash) { slots[$0].name == name } }
}
