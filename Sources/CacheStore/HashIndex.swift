// From a 64-bit hash to slots of a slab: open addressing without a node per entry.

/// Several slots may have one hash; the caller's `matches` tells them apart.
struct HashIndex {
    private var hashes: [UInt64]
    /// A slot plus one; zero is free.
    private var slots: [UInt32]
    private(set) var count = 0
    /// Bytes that the places take.
    var capacityBytes: Int { slots.count * (MemoryLayout<UInt64>.stride + MemoryLayout<UInt32>.stride) }

    init(minimumCapacity: Int = 16) {
        var capacity = 16
        while capacity * 3 / 4 < minimumCapacity { capacity *= 2 }
        hashes = Array(repeating: 0, count: capacity)
        slots = Array(repeating: 0, count: capacity)
    }

    func find(_ hash: UInt64, matches: (Int) -> Bool) -> Int? {
        let mask = slots.count - 1
        var place = Self.home(hash, mask)
        while slots[place] != 0 {
            if hashes[place] == hash {
                let slot = Int(slots[place]) - 1
                if matches(slot) { return slot }
            }
            place = (place + 1) & mask
        }
        return nil
    }

    mutating func insert(_ hash: UInt64, slot: Int) {
        if (count + 1) * 4 > slots.count * 3 { grow() }
        place(hash, UInt32(slot + 1))
        count += 1
    }

    mutating func remove(_ hash: UInt64, slot: Int) {
        let mask = slots.count - 1
        var hole = Self.home(hash, mask)
        while slots[hole] != UInt32(slot + 1) || hashes[hole] != hash {
            if slots[hole] == 0 { return }
            hole = (hole + 1) & mask
        }
        count -= 1
        // Moves up what follows, so that no search stops too early.
        var next = (hole + 1) & mask
        while slots[next] != 0 {
            let home = Self.home(hashes[next], mask)
            if ((next - home) & mask) >= ((next - hole) & mask) {
                slots[hole] = slots[next]
                hashes[hole] = hashes[next]
                hole = next
            }
            next = (next + 1) & mask
        }
        slots[hole] = 0
    }

    private mutating func place(_ hash: UInt64, _ value: UInt32) {
        let mask = slots.count - 1
        var place = Self.home(hash, mask)
        while slots[place] != 0 { place = (place + 1) & mask }
        slots[place] = value
        hashes[place] = hash
    }

    private mutating func grow() {
        let (oldHashes, oldSlots) = (hashes, slots)
        hashes = Array(repeating: 0, count: oldSlots.count * 2)
        slots = Array(repeating: 0, count: oldSlots.count * 2)
        for place in oldSlots.indices where oldSlots[place] != 0 { self.place(oldHashes[place], oldSlots[place]) }
    }

    private static func home(_ hash: UInt64, _ mask: Int) -> Int { Int(truncatingIfNeeded: hash ^ (hash >> 32)) & mask }
}
