// Content-Range (RFC 9110 section 14.4): read, written, and compared with what was asked.

package import HTTPWire

/// Which bytes a 206 brings, or how long a representation is of which a 416 has none.
package struct ContentRange: Sendable, Equatable {
    /// Nil: nothing of it (`bytes */N`).
    package var range: Range<Int64>?
    /// Of the whole representation, in bytes; nil where the sender does not know (`*`).
    package var length: Int64?

    /// - Parameter range: not empty, and within `length`.
    package init(range: Range<Int64>? = nil, length: Int64?) {
        self.range = range
        self.length = length
    }

    package var value: String {
        let part = range.map { "\($0.lowerBound)-\($0.upperBound - 1)" } ?? "*"
        return "bytes \(part)/\(length.map { String($0) } ?? "*")"
    }

    /// - Returns: nil where the field is absent, stands twice, has another unit, or does not make sense.
    package static func parse(_ fields: Fields) -> ContentRange? {
        let values = fields.values(.contentRange)
        guard values.count == 1, let value = values.first else { return nil }
        let halves = value.split(separator: 0x20, omittingEmptySubsequences: false)
        guard halves.count == 2, ASCII.equalIgnoringCase(halves[0], "bytes".utf8) else { return nil }
        let sides = halves[1].split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
        guard sides.count == 2 else { return nil }
        let star = [UInt8(ascii: "*")]
        let length = sides[1].elementsEqual(star) ? nil : number(sides[1])
        guard length != nil || sides[1].elementsEqual(star) else { return nil }
        if sides[0].elementsEqual(star) { return length.map { ContentRange(length: $0) } }
        let ends = sides[0].split(separator: UInt8(ascii: "-"), omittingEmptySubsequences: false)
        guard ends.count == 2, let first = number(ends[0]), let last = number(ends[1]), first <= last, last < .max,
            length.map({ last < $0 }) ?? true
        else { return nil }
        return ContentRange(range: first..<last + 1, length: length)
    }

    private static func number(_ digits: ArraySlice<UInt8>) -> Int64? {
        guard !digits.isEmpty, digits.allSatisfy(ASCII.isDigit) else { return nil }
        return Int64(String(decoding: digits, as: UTF8.self))
    }
}

/// Why a 206 is none for what was asked; the raw value is what diagnostics print.
package enum PartMismatch: String, Error, Sendable, CaseIterable {
    /// No Range was sent.
    case unasked
    /// Content-Range is missing or malformed.
    case contentRange = "content-range"
    /// Several parts came although one range was asked for (RFC 9110 section 15.3.7.2).
    case multipart
    /// It begins or ends elsewhere than asked.
    case range
    /// Content-Length is not the length of the range.
    case length

    /// As `Cache-Status` prints it.
    package var detail: String { "part-\(rawValue)" }
}

extension Caching {
    /// Holds a 206 against the one range that was asked for. It may be shorter than asked, because an origin may send
    /// less (RFC 9110 section 15.3.7), but begins where asked; of a suffix it is just that.
    /// - Returns: its Content-Range, which has a range.
    package static func checkPart(
        _ response: ResponseHead,
        asked: ByteRanges.Spec
    ) throws(PartMismatch) -> ContentRange {
        if isMultipart(response.fields) { throw .multipart }
        guard let content = ContentRange.parse(response.fields), let range = content.range else { throw .contentRange }
        if response.fields.contains(.contentLength),
            contentLength(response.fields) != range.upperBound - range.lowerBound
        {
            throw .length
        }
        switch asked {
        case .from(let first, let last):
            guard range.lowerBound == first, last.map({ range.upperBound - 1 <= $0 }) ?? true else { throw .range }
        case .suffix(let count):
            if let length = content.length {
                guard range == asked.resolved(length: length) else { throw .range }
            } else if range.upperBound - range.lowerBound > count {
                throw .range
            }
        }
        return content
    }

    private static func isMultipart(_ fields: Fields) -> Bool {
        guard let type = fields.values(.contentType).first?.split(separator: ASCII.semicolon).first else {
            return false
        }
        return ASCII.equalIgnoringCase(ASCII.trim(type), "multipart/byteranges".utf8)
    }
}
