// A heap for long-lived responses, separate from malloc's, so that short-lived allocations leave no holes in it; and
// its free spans, by size.

import Glibc
import Synchronization

/// A heap of blocks of bytes, aligned to 8. Any thread; a hit needs it only if its entry was removed meanwhile.
///
/// Sendable: everything is under one mutex, which an insertion and the release of a block hold for less than a
/// microsecond, except when a mapping is added or removed.
package final class BlockHeap: Sendable {
    /// The heap of all resident responses of every tier, because they may outlive their tier.
    package static let shared = BlockHeap(isPlain: isSanitized)

    /// The largest block of the heap; larger ones are allocated by the C library.
    static let largest = 256 << 10

    /// The sanitizers can follow a block only if the C library allocates it.
    #if DRYDOCK_SANITIZED
        private static let isSanitized = true
    #else
        private static let isSanitized = false
    #endif

    private let mappings = Mutex(Mappings())
    private let isPlain: Bool

    /// Makes a heap.
    /// - Parameter isPlain: whether the C library allocates every block.
    init(isPlain: Bool = false) { self.isPlain = isPlain }

    deinit { mappings.withLock { $0.unmapAll() } }

    /// Allocates a block.
    /// - Returns: nil if the kernel has no memory.
    func allocate(_ count: Int) -> UnsafeMutableRawPointer? {
        if isPlain || count > Self.largest { return malloc(count) }
        let span = mappings.withLock { $0.take(count) }
        return span?.bytes
    }

    /// Frees a block that ``allocate(_:)`` has returned for the same count.
    func free(_ bytes: UnsafeMutableRawPointer, _ count: Int) {
        if isPlain || count > Self.largest { return Glibc.free(bytes) }
        let span = Span(start: bytes - Span.tagSize)
        mappings.withLock { $0.release(span) }
    }

    /// Returns empty pages to the kernel. Takes milliseconds, so not on a loop.
    package func giveBack() {
        // The lists are handled one by one, so that an insertion never waits for all of them.
        for list in FreeSpans.lists(from: Mappings.page) { mappings.withLock { $0.discardPages(list) } }
    }

    /// The bytes that a block of this size takes.
    static func cost(_ count: Int) -> Int { count > largest ? (count + 23) & ~15 : Mappings.size(count) }

    var mappedBytes: Int { mappings.withLock { $0.bytes } }

    /// Whether every tag agrees with its neighbours, and every free span is in its list once; for tests.
    var isSound: Bool { mappings.withLock { $0.isSound } }
}

/// The memory of a heap: mappings that are cut into spans. Adjacent free spans are joined at once.
private struct Mappings {
    private static let mappingSize = 2 << 20
    static let page = 4096

    private var free = FreeSpans()
    /// The addresses of the mappings.
    private var starts: Set<UnsafeMutableRawPointer> = []
    /// The number of empty mappings; one is kept for the next allocation.
    private var emptyCount = 0

    var bytes: Int { starts.count * Self.mappingSize }

    static func size(_ count: Int) -> Int { max(Span.least, (count + Span.tagSize + 7) & ~7) }

    mutating func take(_ count: Int) -> Span? {
        let size = Self.size(count)
        guard let span = free.find(size) ?? map() else { return nil }
        free.remove(span)
        if isWhole(span) { emptyCount -= 1 }
        if span.size - size >= Span.least {
            let rest = Span(start: span.start + size)
            makeFree(rest, span.size - size)
            rest.sizeBefore = size
            span.size = size
        }
        span.isFree = false
        return span
    }

    mutating func release(_ released: Span) {
        var span = released
        var size = span.size
        if span.next.isFree {
            free.remove(span.next)
            size += span.next.size
        }
        if span.sizeBefore > 0, span.before.isFree {
            span = span.before
            free.remove(span)
            size += span.size
        }
        makeFree(span, size)
        guard isWhole(span) else { return }
        if emptyCount > 0 { unmap(span) } else { emptyCount += 1 }
    }

    private mutating func makeFree(_ span: Span, _ size: Int) {
        span.size = size
        span.isFree = true
        span.next.sizeBefore = size
        free.add(span)
    }

    private func isWhole(_ span: Span) -> Bool { span.sizeBefore == 0 && span.next.size == 0 }

    private mutating func map() -> Span? {
        let start = mmap(nil, Self.mappingSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
        guard let start, start != MAP_FAILED else { return nil }
        starts.insert(start)
        // New pages are zero: so the tag at the end of the mapping has size 0 and is not free, and the first span has
        // no span before it.
        let span = Span(start: start)
        makeFree(span, Self.mappingSize - Span.tagSize)
        emptyCount += 1
        return span
    }

    private mutating func unmap(_ span: Span) {
        free.remove(span)
        if munmap(span.start, Self.mappingSize) == 0 {
            starts.remove(span.start)
        } else {
            // The kernel has no mapping left to split this one, which is kept for later allocations.
            free.add(span)
            emptyCount += 1
        }
    }

    func discardPages(_ list: Int) {
        free.forEach(in: list) { span in
            // The tag and the links in a list are kept.
            let first = (UInt(bitPattern: span.start) + UInt(Span.least) + UInt(Self.page - 1)) & ~UInt(Self.page - 1)
            let end = UInt(bitPattern: span.next.start) & ~UInt(Self.page - 1)
            guard end > first, let start = UnsafeMutableRawPointer(bitPattern: first) else { return }
            madvise(start, Int(end - first), MADV_DONTNEED)
        }
    }

    mutating func unmapAll() {
        for start in starts { munmap(start, Self.mappingSize) }
        starts = []
    }

    var isSound: Bool {
        var found: Set<UnsafeMutableRawPointer> = []
        for start in starts {
            var (span, before, wasFree) = (Span(start: start), 0, false)
            while span.size > 0 {
                if span.sizeBefore != before || span.isFree && wasFree || span.size < Span.least { return false }
                if span.isFree { found.insert(span.start) }
                (before, wasFree) = (span.size, span.isFree)
                span = span.next
            }
            if span.sizeBefore != before || span.start != start + (Self.mappingSize - Span.tagSize) { return false }
        }
        var count = 0
        var areFound = true
        for list in FreeSpans.lists(from: Span.least) {
            free.forEach(in: list) { span in
                count += 1
                if !found.contains(span.start) { areFound = false }
            }
        }
        return areFound && count == found.count
    }
}

// MARK: - Free spans

// The lists are those of TLSF (M. Masmano and others, "TLSF: a new dynamic memory allocator for real-time systems",
// 2004): one level by powers of two, and 32 equal steps within each.

/// A span of a heap: eight bytes with its size and that of the span before it, and then the bytes for its owner.
///
/// Sendable: the tag, and the links in a list, are read and written under the heap's mutex only.
struct Span: @unchecked Sendable {
    /// The bytes of a tag, which has the lengths of the span and of the one before it.
    static let tagSize = 8
    /// The bytes of a free span at least: the tag, and the links in a list.
    static let least = 32

    // An address inside a mapping of the heap, which its mutex protects; the bytes of a used span belong to its owner.
    let start: UnsafeMutableRawPointer

    var bytes: UnsafeMutableRawPointer { start + Self.tagSize }

    /// The bytes of the span with the tag, a multiple of 8; 0 for the end of a mapping.
    var size: Int {
        get { Int(lengths[0] & ~7) }
        nonmutating set { lengths[0] = UInt32(newValue) | lengths[0] & 7 }
    }

    var isFree: Bool {
        get { lengths[0] & 1 != 0 }
        nonmutating set { lengths[0] = lengths[0] & ~7 | (newValue ? 1 : 0) }
    }

    /// The bytes of the span before; 0 for the first one of a mapping.
    var sizeBefore: Int {
        get { Int(lengths[1]) }
        nonmutating set { lengths[1] = UInt32(newValue) }
    }

    var next: Span { Span(start: start + size) }
    var before: Span { Span(start: start - sizeBefore) }

    /// The next span in the list, while the span is free.
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

/// The lists of free spans, a value without a lock, like the heap that it belongs to.
struct FreeSpans {
    private static let steps = 32
    private static let minimumPower = 5
    private static let powers = 17
    /// The number of spans that are examined in the list of the size itself; those of the lists above all fit.
    private static let looks = 8

    private var newest: [Span?] = Array(repeating: nil, count: powers * steps)
    /// For each power of two, a bit for each step whose list is not empty.
    private var filled: [UInt32] = Array(repeating: 0, count: powers)

    mutating func add(_ span: Span) {
        let list = Self.list(span.size)
        span.newer = nil
        span.older = newest[list]
        newest[list]?.newer = span
        newest[list] = span
        filled[list / Self.steps] |= 1 << UInt32(list % Self.steps)
    }

    mutating func remove(_ span: Span) {
        let list = Self.list(span.size)
        span.older?.newer = span.newer
        if let newer = span.newer { newer.older = span.older } else { newest[list] = span.older }
        if newest[list] == nil { filled[list / Self.steps] &= ~(1 << UInt32(list % Self.steps)) }
    }

    /// A span of at least this size, one of the smallest; it stays in its list until ``remove(_:)``.
    func find(_ size: Int) -> Span? {
        let list = Self.list(size)
        var best: Span?
        var next = newest[list]
        for _ in 0..<Self.looks {
            guard let span = next else { break }
            if span.size >= size, span.size < best?.size ?? .max { best = span }
            next = span.older
        }
        if let best { return best }
        let power = list / Self.steps
        // The higher steps of the same power; a shift by 32 gives no bits.
        let above = filled[power] & (UInt32.max << UInt32(list % Self.steps + 1))
        if above != 0 { return newest[power * Self.steps + above.trailingZeroBitCount] }
        for power in power + 1..<max(power + 1, Self.powers) where filled[power] != 0 {
            return newest[power * Self.steps + filled[power].trailingZeroBitCount]
        }
        return nil
    }

    /// The lists whose spans all have at least this size.
    static func lists(from size: Int) -> Range<Int> { list(size)..<powers * steps }

    func forEach(in list: Int, _ body: (Span) -> Void) {
        var next = newest[list]
        while let span = next {
            body(span)
            next = span.older
        }
    }

    /// The list for a size from 32 bytes to 4 MiB.
    private static func list(_ size: Int) -> Int {
        let power = Int.bitWidth - 1 - size.leadingZeroBitCount
        return (power - minimumPower) * steps + (size >> (power - minimumPower)) & (steps - 1)
    }
}
