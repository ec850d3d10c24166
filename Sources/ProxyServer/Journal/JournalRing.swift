// The bytes of the journal: records one behind the other, of which the oldest make room for the newest.

/// A ring of bytes that holds records whole. A record is its length in four bytes and its content.
///
/// Places count all bytes that were ever written, so that a place says whether its record is still there.
struct JournalRing {
    /// Bytes of one piece: memory is taken piece by piece when the ring first gets there.
    private static let pieceSize = 64 << 10

    /// Bytes of all records at most, their lengths included.
    let capacity: Int
    private let pieceSize: Int
    private var pieces: [[UInt8]] = []
    /// The place of the oldest record.
    private(set) var first: UInt64
    /// Behind the newest.
    private(set) var end: UInt64
    private(set) var count = 0

    /// - Parameters:
    ///   - capacity: at least 1; rounded down to whole pieces.
    ///   - start: the place of the first record.
    init(capacity: Int, from start: UInt64 = 0) {
        pieceSize = max(1, min(capacity, Self.pieceSize))
        self.capacity = max(1, capacity / pieceSize) * pieceSize
        first = start
        end = start
    }

    /// Bytes of all records.
    var size: Int { Int(end - first) }

    /// Appends a record, and drops as many of the oldest as it takes.
    /// - Parameter dropped: called with each record that goes.
    /// - Returns: false where it is longer than the ring; then nothing changes.
    mutating func append(_ record: [UInt8], dropped: (ArraySlice<UInt8>) -> Void) -> Bool {
        let needed = record.count + 4
        guard needed <= capacity else { return false }
        while size + needed > capacity {
            guard let oldest = self.record(at: first) else { return false }
            dropped(oldest.content)
            first = oldest.next
            count -= 1
        }
        let length = UInt32(record.count)
        write((0..<4).map { UInt8(truncatingIfNeeded: length >> (8 * UInt32($0))) })
        write(record)
        count += 1
        return true
    }

    /// The record at a place, and the place of the next one; nil at the end.
    func record(at place: UInt64) -> (content: ArraySlice<UInt8>, next: UInt64)? {
        guard place >= first, place + 4 <= end else { return nil }
        let length = bytes(place..<place + 4).reversed().reduce(0) { $0 << 8 | UInt64($1) }
        let content = place + 4..<place + 4 + length
        guard content.upperBound <= end else { return nil }
        return (bytes(content)[...], content.upperBound)
    }

    mutating func removeAll() {
        pieces = []
        first = end
        count = 0
    }

    private func bytes(_ range: Range<UInt64>) -> [UInt8] {
        var result: [UInt8] = []
        result.reserveCapacity(range.count)
        var place = range.lowerBound
        while place < range.upperBound {
            let (piece, offset) = position(place)
            let count = min(pieceSize - offset, Int(range.upperBound - place))
            result += pieces[piece][offset..<offset + count]
            place += UInt64(count)
        }
        return result
    }

    private mutating func write(_ bytes: [UInt8]) {
        var rest = bytes[...]
        while !rest.isEmpty {
            let (piece, offset) = position(end)
            while pieces.count <= piece { pieces.append([UInt8](repeating: 0, count: pieceSize)) }
            let part = rest.prefix(pieceSize - offset)
            pieces[piece].withUnsafeMutableBytes { buffer in
                UnsafeMutableRawBufferPointer(rebasing: buffer[offset..<offset + part.count]).copyBytes(from: part)
            }
            rest = rest.dropFirst(part.count)
            end += UInt64(part.count)
        }
    }

    private func position(_ place: UInt64) -> (piece: Int, offset: Int) {
        let index = Int(place % UInt64(capacity))
        return (index / pieceSize, index % pieceSize)
    }
}
