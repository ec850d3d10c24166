// Collections of many small values without a node for each: a list in chunks that grows without copying, and an index
// from hashes to its slots.

/// A list in chunks, a value without a lock. Everything in it can be inlined, because tables of other modules are made
/// of it.
public struct Slab<Element> {
    @inlinable static var shift: Int { 12 }
    /// The number of elements in one chunk.
    @inlinable public static var chunkSize: Int { 1 << shift }

    @usableFromInline var chunks: [ContiguousArray<Element>] = []
    @usableFromInline var length = 0

    public init() {}

    @inlinable public var count: Int { length }

    /// The bytes that the chunks take.
    @inlinable public var capacityBytes: Int {
        chunks.reduce(0) { $0 + $1.capacity } * MemoryLayout<Element>.stride
    }

    // Always inlined: other modules would call the generic accessor, which asks for the type of the chunks each time.
    @inlinable
    public subscript(slot: Int) -> Element {
        @inline(__always) get { chunks[slot >> Self.shift][slot & (Self.chunkSize - 1)] }
        @inline(__always) _modify { yield &chunks[slot >> Self.shift][slot & (Self.chunkSize - 1)] }
    }

    @inlinable
    public mutating func append(_ element: Element) {
        if length == chunks.count << Self.shift {
            var chunk = ContiguousArray<Element>()
            // The first chunk grows by itself, so that a short list takes little.
            if !chunks.isEmpty { chunk.reserveCapacity(Self.chunkSize) }
            chunks.append(chunk)
        }
        chunks[length >> Self.shift].append(element)
        length += 1
    }

    /// Removes the last element; the list must not be empty.
    @inlinable
    public mutating func removeLast() {
        length -= 1
        chunks[length >> Self.shift].removeLast()
        // One empty chunk is kept, so that changes around a border do not allocate.
        if chunks.count > (length >> Self.shift) + 2 { chunks.removeLast() }
    }
}

extension Slab: Sendable where Element: Sendable {}

// MARK: - An index by hash

/// An index from hashes to slots. Several slots may have the same hash, and only half of each hash is stored, so that
/// the caller's `matches` decides. All that a hit uses can be inlined, because tables of other modules are made of it.
public struct HashIndex: Sendable {
    @usableFromInline
    struct Entry: Sendable {
        /// The two halves of the hash, combined.
        @usableFromInline var hash: UInt32
        /// The slot plus one; zero for a free entry.
        @usableFromInline var slot: UInt32

        @inlinable
        init(hash: UInt32 = 0, slot: UInt32 = 0) { (self.hash, self.slot) = (hash, slot) }
    }

    /// The most sixteenths of the entries that are in use: a successful search then examines three entries, mostly in one
    /// cache line, and an unsuccessful one fifteen.
    private static let fullness = 13

    @usableFromInline var entries: [Entry]
    private(set) var count = 0
    /// The bytes that the entries take.
    public var capacityBytes: Int { entries.count * MemoryLayout<Entry>.stride }

    public init(minimumCapacity: Int = 16) {
        var capacity = 16
        while capacity * Self.fullness < minimumCapacity * 16 { capacity *= 2 }
        entries = Array(repeating: Entry(), count: capacity)
    }

    /// The slot with this hash for which `matches` is true.
    @inlinable
    public func find(_ hash: UInt64, matches: (Int) -> Bool) -> Int? {
        let mask = entries.count - 1
        let hash = Self.folded(hash)
        var position = Int(hash) & mask
        while entries[position].slot != 0 {
            if entries[position].hash == hash {
                let slot = Int(entries[position].slot) - 1
                if matches(slot) { return slot }
            }
            position = (position + 1) & mask
        }
        return nil
    }

    public mutating func insert(_ hash: UInt64, slot: Int) {
        if (count + 1) * 16 > entries.count * Self.fullness { grow() }
        put(Entry(hash: Self.folded(hash), slot: UInt32(slot + 1)))
        count += 1
    }

    public mutating func remove(_ hash: UInt64, slot: Int) {
        let mask = entries.count - 1
        let hash = Self.folded(hash)
        var hole = Int(hash) & mask
        while entries[hole].slot != UInt32(slot + 1) || entries[hole].hash != hash {
            if entries[hole].slot == 0 { return }
            hole = (hole + 1) & mask
        }
        count -= 1
        // The following entries are moved up, so that no search stops too early.
        var next = (hole + 1) & mask
        while entries[next].slot != 0 {
            let home = Int(entries[next].hash) & mask
            if ((next - home) & mask) >= ((next - hole) & mask) {
                entries[hole] = entries[next]
                hole = next
            }
            next = (next + 1) & mask
        }
        entries[hole].slot = 0
    }

    private mutating func put(_ entry: Entry) {
        let mask = entries.count - 1
        var position = Int(entry.hash) & mask
        while entries[position].slot != 0 { position = (position + 1) & mask }
        entries[position] = entry
    }

    private mutating func grow() {
        let old = entries
        entries = Array(repeating: Entry(), count: old.count * 2)
        for entry in old where entry.slot != 0 { put(entry) }
    }

    @inlinable
    static func folded(_ hash: UInt64) -> UInt32 { UInt32(truncatingIfNeeded: hash ^ (hash >> 32)) }
}
