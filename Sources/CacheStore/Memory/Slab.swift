// A list of small values in chunks: it grows without copying, and frees memory when it shrinks.

/// A value without a lock. Everything in it can be inlined: tables of other modules are made of it.
public struct Slab<Element> {
    @inlinable static var shift: Int { 12 }
    /// Elements of one chunk.
    @inlinable public static var chunkSize: Int { 1 << shift }

    @usableFromInline var chunks: [ContiguousArray<Element>] = []
    @usableFromInline var length = 0

    public init() {}

    @inlinable public var count: Int { length }

    /// Bytes that the chunks take.
    @inlinable public var capacityBytes: Int {
        chunks.reduce(0) { $0 + $1.capacity } * MemoryLayout<Element>.stride
    }

    // Always inlined: other modules would call the generic accessor, which asks for the type of the chunks each time.
    @inlinable
    public subscript(place: Int) -> Element {
        @inline(__always) get { chunks[place >> Self.shift][place & (Self.chunkSize - 1)] }
        @inline(__always) _modify { yield &chunks[place >> Self.shift][place & (Self.chunkSize - 1)] }
    }

    @inlinable
    public mutating func append(_ element: Element) {
        if length == chunks.count << Self.shift {
            var chunk = ContiguousArray<Element>()
            // The first one grows by itself: a short list takes little.
            if !chunks.isEmpty { chunk.reserveCapacity(Self.chunkSize) }
            chunks.append(chunk)
        }
        chunks[length >> Self.shift].append(element)
        length += 1
    }

    /// The list must not be empty.
    @inlinable
    public mutating func removeLast() {
        length -= 1
        chunks[length >> Self.shift].removeLast()
        // One empty chunk stays, so that going to and fro over a border allocates nothing.
        if chunks.count > (length >> Self.shift) + 2 { chunks.removeLast() }
    }
}

extension Slab: Sendable where Element: Sendable {}
