// The hashes of entries that made room lately, 16 bytes each, in a table that grows by one bucket at a time.

/// A hash counts for as many evictions as `limit` says. Half of it is kept: with a million ghosts, one question in some
/// four thousand finds what was never there. A full bucket forgets its oldest hash earlier:
/// one in a hundred, and some more while the table grows.
@usableFromInline
struct GhostTable: Sendable {
    /// A line of the processor's cache.
    private struct Bucket {
        /// Zero is free.
        var marks = SIMD8<UInt32>(repeating: 0)
        /// The number of the eviction.
        var numbers = SIMD8<UInt32>(repeating: 0)
    }

    /// Hashes of one bucket on the average.
    private static let load = 4

    // Linear hashing: bucket n is split into itself and one at the end, when it is its turn.
    private var buckets = Slab<Bucket>()
    private var number: UInt32 = 0
    private var limit: UInt32 = 0

    @usableFromInline
    init() {}

    /// Bytes that the buckets take.
    @usableFromInline var capacityBytes: Int { buckets.capacityBytes }

    /// - Parameter limit: evictions after which a hash is forgotten.
    @usableFromInline
    mutating func add(_ hash: UInt64, limit: Int) {
        self.limit = UInt32(clamping: limit)
        number &+= 1
        while buckets.count == 0 || buckets.count * Self.load < limit { grow() }
        put(Self.mark(hash), number)
    }

    /// Forgets a hash.
    /// - Returns: whether it was there.
    @usableFromInline
    mutating func remove(_ hash: UInt64) -> Bool {
        guard buckets.count > 0 else { return false }
        let mark = Self.mark(hash)
        let place = place(mark)
        for lane in 0..<8 where buckets[place].marks[lane] == mark {
            buckets[place].marks[lane] = 0
            return number &- buckets[place].numbers[lane] < limit
        }
        return false
    }

    private mutating func put(_ mark: UInt32, _ number: UInt32) {
        let place = place(mark)
        var bucket = buckets[place]
        var (chosen, most) = (0, UInt32(0))
        for lane in 0..<8 {
            // The same hash counts once.
            if bucket.marks[lane] == mark {
                chosen = lane
                break
            }
            let age = bucket.marks[lane] == 0 ? .max : self.number &- bucket.numbers[lane]
            if age > most { (chosen, most) = (lane, age) }
        }
        bucket.marks[chosen] = mark
        bucket.numbers[chosen] = number
        buckets[place] = bucket
    }

    private mutating func grow() {
        buckets.append(Bucket())
        let last = buckets.count - 1
        guard last > 0 else { return }
        let split = last - Self.power(last)
        let old = buckets[split]
        buckets[split] = Bucket()
        for lane in 0..<8 where old.marks[lane] != 0 { put(old.marks[lane], old.numbers[lane]) }
    }

    private func place(_ mark: UInt32) -> Int {
        let low = Self.power(max(1, buckets.count - 1))
        let place = Int(mark) & (2 * low - 1)
        return place < buckets.count ? place : place & (low - 1)
    }

    /// The greatest power of two that is not greater.
    private static func power(_ count: Int) -> Int { 1 << (Int.bitWidth - 1 - count.leadingZeroBitCount) }

    private static func mark(_ hash: UInt64) -> UInt32 { max(1, UInt32(truncatingIfNeeded: hash ^ (hash >> 32))) }
}
