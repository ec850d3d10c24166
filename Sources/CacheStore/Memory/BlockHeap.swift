// A heap for long-lived responses, apart from malloc's, so that short-lived allocations leave no holes in it.

import Glibc
import Synchronization

/// Blocks of bytes, aligned to 8. Any thread; a hit comes here only where its entry has gone meanwhile.
///
/// Sendable: everything is under one mutex, which an insertion and the release of a block hold for less than a
/// microsecond, but where a mapping comes or goes.
package final class BlockHeap: Sendable {
    /// The heap of all resident responses, of every tier, since they may outlive their tier.
    package static let shared = BlockHeap(isPlain: isSanitized)

    /// Larger blocks are the C library's.
    static let largest = 256 << 10

    /// The sanitizers see what becomes of a block where each is the C library's.
    #if DRYDOCK_SANITIZED
        private static let isSanitized = true
    #else
        private static let isSanitized = false
    #endif

    private let mappings = Mutex(Mappings())
    private let isPlain: Bool

    /// - Parameter isPlain: every block is the C library's.
    init(isPlain: Bool = false) { self.isPlain = isPlain }

    deinit { mappings.withLock { $0.unmapAll() } }

    /// - Returns: nil where the kernel has no memory.
    func allocate(_ count: Int) -> UnsafeMutableRawPointer? {
        if isPlain || count > Self.largest { return malloc(count) }
        let span = mappings.withLock { $0.take(count) }
        return span?.bytes
    }

    /// Gives back what ``allocate(_:)`` has given for the same count.
    func free(_ bytes: UnsafeMutableRawPointer, _ count: Int) {
        if isPlain || count > Self.largest { return Glibc.free(bytes) }
        let span = Span(start: bytes - Span.tagSize)
        mappings.withLock { $0.release(span) }
    }

    /// Gives the pages in which nothing is back to the kernel. Takes milliseconds: not on a loop.
    package func giveBack() {
        // The lists are handled one by one, so that an insertion never waits for all of them.
        for list in FreeSpans.lists(from: Mappings.page) { mappings.withLock { $0.discardPages(list) } }
    }

    /// Bytes that a block of so many takes.
    static func cost(_ count: Int) -> Int { count > largest ? (count + 23) & ~15 : Mappings.size(count) }

    var mappedBytes: Int { mappings.withLock { $0.bytes } }

    /// Whether every tag says what its neighbours say, and every free span is in its list once; for tests.
    var isSound: Bool { mappings.withLock { $0.isSound } }
}

/// The memory of a heap: mappings that are cut into spans. Free neighbours are joined at once.
private struct Mappings {
    private static let mappingSize = 2 << 20
    static let page = 4096

    private var free = FreeSpans()
    /// Where the mappings begin.
    private var starts: Set<UnsafeMutableRawPointer> = []
    /// The count of empty mappings; one is kept for the next allocation.
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
        // New pages are zero: so the tag at the end of the mapping has no size and is not free, and the first
        // span has no span before it.
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
            // The kernel has no mapping left to split this one: it stays for later allocations.
            free.add(span)
            emptyCount += 1
        }
    }

    func discardPages(_ list: Int) {
        free.forEach(in: list) { span in
            // The tag and the places in a list stay.
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
