// Free spans of a heap by their size: two levels of lists, so that one that fits is found without a search.
//
// The lists are those of TLSF (M. Masmano and others, "TLSF: a new dynamic memory allocator for real-time systems",
// 2004): one level by powers of two, and within each 32 equal steps.

/// A span of a heap: eight bytes with its size and that of the span before it, and then the bytes for its owner.
///
/// Sendable: the tag, and the places in a list, are read and written under the heap's mutex only.
struct Span: @unchecked Sendable {
    /// Of the lengths of the span and of the one before it.
    static let tagSize = 8
    /// The tag, and the places in a list while it is free.
    static let least = 32

    // Inside a mapping of the heap, which its mutex protects; the bytes of a span in use are their owner's.
    let start: UnsafeMutableRawPointer

    var bytes: UnsafeMutableRawPointer { start + Self.tagSize }

    /// Bytes with the tag, a multiple of 8; 0 for what ends a mapping.
    var size: Int {
        get { Int(lengths[0] & ~7) }
        nonmutating set { lengths[0] = UInt32(newValue) | lengths[0] & 7 }
    }

    var isFree: Bool {
        get { lengths[0] & 1 != 0 }
        nonmutating set { lengths[0] = lengths[0] & ~7 | (newValue ? 1 : 0) }
    }

    /// Bytes of the span before it; 0 for the first of a mapping.
    var sizeBefore: Int {
        get { Int(lengths[1]) }
        nonmutating set { lengths[1] = UInt32(newValue) }
    }

    var next: Span { Span(start: start + size) }
    var before: Span { Span(start: start - sizeBefore) }

    /// While it is free.
    var newer: Span? {
        get { links[0].map(Span.init) }
        nonmutating set { links[0] = newValue?.start }
    }

    var older: Span? {
        get { links[1].map(Span.init) }
        nonmutating set { links[1] = newValue?.start }
    }

    private var lengths: UnsafeMutablePointer<UInt32> { start.assumingMemoryBound(to: UInt32.self) }
    private var links: UnsafeMutablePointer<UnsafeMutableRawPointer?> {
        bytes.assumingMemoryBound(to: UnsafeMutableRawPointer?.self)
    }
}

/// A value without a lock, as the heap that it belongs to.
struct FreeSpans {
    private static let steps = 32
    private static let minimumPower = 5
    private static let powers = 17
    /// How many of the list of the very size are looked at: those of the lists above fit all.
    private static let looks = 8

    private var newest: [Span?] = Array(repeating: nil, count: powers * steps)
    /// For each power a bit for each step whose list is not empty.
    private var filled: [UInt32] = Array(repeating: 0, count: powers)

    mutating func add(_ span: Span) {
        let place = Self.place(span.size)
        span.newer = nil
        span.older = newest[place]
        newest[place]?.newer = span
        newest[place] = span
        filled[place / Self.steps] |= 1 << UInt32(place % Self.steps)
    }

    mutating func remove(_ span: Span) {
        let place = Self.place(span.size)
        span.older?.newer = span.newer
        if let newer = span.newer { newer.older = span.older } else { newest[place] = span.older }
        if newest[place] == nil { filled[place / Self.steps] &= ~(1 << UInt32(place % Self.steps)) }
    }

    /// A span of at least so many bytes, among the smallest; it stays until ``remove(_:)``.
    func find(_ size: Int) -> Span? {
        let place = Self.place(size)
        var best: Span?
        var next = newest[place]
        for _ in 0..<Self.looks {
            guard let span = next else { break }
            if span.size >= size, span.size < best?.size ?? .max { best = span }
            next = span.older
        }
        if let best { return best }
        let power = place / Self.steps
        // Only the higher steps of the same power; a shift by 32 gives no bits.
        let above = filled[power] & (UInt32.max << UInt32(place % Self.steps + 1))
        if above != 0 { return newest[power * Self.steps + above.trailingZeroBitCount] }
        for power in power + 1..<max(power + 1, Self.powers) where filled[power] != 0 {
            return newest[power * Self.steps + filled[power].trailingZeroBitCount]
        }
        return nil
    }

    /// The lists that have all spans of at least `size` bytes.
    static func lists(from size: Int) -> Range<Int> { place(size)..<powers * steps }

    func forEach(in list: Int, _ body: (Span) -> Void) {
        var next = newest[list]
        while let span = next {
            body(span)
            next = span.older
        }
    }

    /// Which list is that of a size of 32 bytes to 4 MiB.
    private static func place(_ size: Int) -> Int {
        let power = Int.bitWidth - 1 - size.leadingZeroBitCount
        return (power - minimumPower) * steps + (size >> (power - minimumPower)) & (steps - 1)
    }
}
