// The secret query items of a service and of the services behind it, and their removal from the URLs in an origin's
// answers.

import HTTPWire

/// The query items that are added to requests and that no client may see.
package struct SecretQuery: Sendable, Hashable {
    /// The items `name=value`, decoded; an empty value is no secret, and is left out.
    private var items: [[UInt8]] = []

    package init() {}

    package var isEmpty: Bool { items.isEmpty }

    /// Adds an item for each value.
    /// - Parameters:
    ///   - name: the name, not percent-encoded.
    ///   - values: the values, not percent-encoded.
    package mutating func insert(_ name: String, _ values: [String]) {
        for value in values where !value.isEmpty {
            let item = Piece.all("\(name)=\(value)").map(\.byte)
            if !items.contains(item) { items.append(item) }
        }
    }

    package mutating func formUnion(_ other: SecretQuery) {
        items += other.items.filter { !items.contains($0) }
    }

    /// A URL, or a text with URLs in it, without the secret items, however they are encoded: an origin may redirect a
    /// client to the requested URL, or put that URL into the query of another.
    package func removed(from text: String) -> String {
        if items.isEmpty { return text }
        var text = text
        for item in items {
            // The loop ends, because each turn makes the text shorter.
            while let shorter = Self.removing(item, from: text) { text = shorter }
        }
        return text
    }

    /// The text without one occurrence of the item; nil if there is none.
    private static func removing(_ item: [UInt8], from text: String) -> String? {
        let pieces = Piece.all(text)
        guard pieces.count >= item.count,
            let start = (0...pieces.count - item.count).first(where: { isItem(item, pieces, at: $0) })
        else { return nil }
        var (first, last) = (start, start + item.count - 1)
        let before = start > 0 && "?&;".utf8.contains(pieces[start - 1].byte) ? pieces[start - 1] : nil
        if last + 1 < pieces.count, "&;".utf8.contains(pieces[last + 1].byte),
            // A separator with another encoding belongs to the URL around this one, and is kept.
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

    /// Whether the item stands at a position, and is not a part of a longer one.
    private static func isItem(_ item: [UInt8], _ pieces: [Piece], at start: Int) -> Bool {
        for offset in item.indices where !pieces[start + offset].stands(for: item[offset]) { return false }
        let end = start + item.count
        return !(start > 0 && isWord(pieces[start - 1].byte)) && !(end < pieces.count && isWord(pieces[end].byte))
    }

    /// Whether the byte is unreserved (RFC 3986 section 2.3).
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

/// One byte of a decoded text, and the range of bytes that encode it.
private struct Piece {
    let byte: UInt8
    let range: Range<Int>

    /// Whether the byte is the wanted one; a plus sign also counts as a space, as in HTML forms.
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
                    return (0..<count).map { index in
                        let end = index + 1 < count ? starts[index + 1] : bytes.count
                        return Piece(byte: settled[index], range: starts[index]..<end)
                    }
                }
            }
        }
    }
}
