// A list of small values in chunks: it grows without copying, and frees memory when it shrinks.

struct Slab<Element> {
    private static var shift: Int { 12 }
    /// Elements of one chunk.
    static var chunkSize: Int { 1 << shift }

    private var chunks: [ContiguousArray<Element>] = []
    private(set) var count = 0

    /// Bytes that the chunks take.
    var capacityBytes: Int { chunks.reduce(0) { $0 + $1.capacity } * MemoryLayout<Element>.stride }

    subscript(place: Int) -> Element {
        get { chunks[place >> Self.shift][place & (Self.chunkSize - 1)] }
        _modify { yield &chunks[place >> Self.shift][place & (Self.chunkSize - 1)] }
    }

    mutating func append(_ element: Element) {
        if count == chunks.count << Self.shift {
            var chunk = ContiguousArray<Element>()
            // The first one grows by itself: a short list takes little.
            if !chunks.isEmpty { chunk.reserveCapacity(Self.chunkSize) }
            chunks.append(chunk)
        }
        chunks[count >> Self.shift].append(element)
        count += 1
    }

    mutating func removeLast() {
        count -= 1
        chunks[count >> Self.shift].removeLast()
        // One empty chunk stays, so that going to and fro over a border allocates nothing.
        if chunks.count > (count >> Self.shift) + 2 { chunks.removeLast() }
    }
}

extension Slab: Sendable where Element: Sendable {}
