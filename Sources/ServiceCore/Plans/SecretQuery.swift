// The secret query items of a service and of those behind it, and how they are taken out of what
// an origin says of its URLs.

import HTTPWire

/// Query items that are added to requests and that no client may see.
package struct SecretQuery: Sendable, Hashable {
    /// `name=value`, decoded; never with an empty value, which is no secret.
    private var items: [[UInt8]] = []

    package init() {}

    package var isEmpty: Bool { items.isEmpty }

    /// - Parameters:
    ///   - name: not percent-encoded.
    ///   - values: not percent-encoded.
    package mutating func insert(_ name: String, _ values: [String]) {
        for value in values where !value.isEmpty {
            let item = Piece.all("\(name)=\(value)").map(\.byte)
            if !items.contains(item) { items.append(item) }
        }
    }

    package mutating func formUnion(_ other: SecretQuery) {
        items += other.items.filter { !items.contains($0) }
    }

    /// A URL, or another text with URLs in it, without these items, however they are encoded: an origin may send a
    /// client back to the URL that it was asked for, or put that URL into the query of another.
    package func removed(from text: String) -> String {
        if items.isEmpty { return text }
        var text = text
        for item in items {
            // Each turn makes the text shorter.
            while let shorter = Self.removing(item, from: text) { text = shorter }
        }
        return text
    }

    /// Nil where the item does not occur.
    private static func removing(_ item: [UInt8], from text: String) -> String? {
        let pieces = Piece.all(text)
        guard pieces.count >= item.count,
            let start = (0...pieces.count - item.count).first(where: { isItem(item, pieces, at: $0) })
        else { return nil }
        var (first, last) = (start, start + item.count - 1)
        let before = start > 0 && "?&;".utf8.contains(pieces[start - 1].byte) ? pieces[start - 1] : nil
        if last + 1 < pieces.count, "&;".utf8.contains(pieces[last + 1].byte),
            // A separator of another encoding belongs to a URL around this one, and stays.
            pieces[last + 1].range.count == before?.range.count ?? 1
        {
            last += 1
        } else if before != nil {
            first -= 1
        }
        let bytes = Array(text.utf8)
        let kept = bytes[..<pieces[first].range.lowerBound] + bytes[pieces[last].range.upperBound...]
        return String(decoding: kept, as: UTF8.self)
    }

    /// Whether the item stands at a place, and is not a part of a longer one.
    private static func isItem(_ item: [UInt8], _ pieces: [Piece], at start: Int) -> Bool {
        for offset in item.indices where !pieces[start + offset].stands(for: item[offset]) { return false }
        let end = start + item.count
        return !(start > 0 && isWord(pieces[start - 1].byte)) && !(end < pieces.count && isWord(pieces[end].byte))
    }

    /// Unreserved bytes (RFC 3986 section 2.3).
    private static func isWord(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"),
            UInt8(ascii: "~"):
            true
        default: false
        }
    }
}

/// One byte of a text after decoding, and the bytes that stand for it.
private struct Piece {
    let byte: UInt8
    let range: Range<Int>

    /// As forms are read, a plus sign is a space.
    func stands(for wanted: UInt8) -> Bool {
        byte == wanted || wanted == UInt8(ascii: " ") && byte == UInt8(ascii: "+") && range.count == 1
    }

    static func all(_ text: String) -> [Piece] {
        var text = text
        return text.withUTF8 { bytes in
            let bytes = UnsafeRawBufferPointer(bytes)
            return withUnsafeTemporaryAllocation(of: UInt8.self, capacity: bytes.count) { settled in
                withUnsafeTemporaryAllocation(of: Int.self, capacity: bytes.count) { starts in
                    let count = PercentDecoding.settle(bytes, into: settled, starts: starts)
                    return (0..<count).map { place in
                        let end = place + 1 < count ? starts[place + 1] : bytes.count
                        return Piece(byte: settled[place], range: starts[place]..<end)
                    }
                }
            }
        }
    }
}
