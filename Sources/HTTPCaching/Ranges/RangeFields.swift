// Range and Content-Range (RFC 9110 section 14): read within bounds, written, resolved against a representation, and
// compared with each other.

package import HTTPWire

/// The ranges of bytes that one request asks for.
package struct ByteRanges: Sendable, Equatable {
    /// One member of the field; a number that is too large becomes `Int64.max`.
    package enum Spec: Sendable, Equatable {
        /// The positions of the first and the last byte, both included; `through` is nil for the end of the
        /// representation.
        case from(Int64, through: Int64?)
        /// The number of bytes at the end of the representation.
        case suffix(Int64)
    }

    /// The most members of one field; a request for more gets the whole representation.
    package static let limit = 16

    /// The members in the order of the request; at least one.
    package let specs: [Spec]

    package init?(specs: [Spec]) {
        guard !specs.isEmpty else { return nil }
        self.specs = specs
    }

    /// Reads the Range field.
    /// - Returns: nil if the request is answered as if it had no Range: there is none or more than one, its unit is not
    ///   `bytes`, it is malformed (RFC 9110 section 14.2), or it has more than ``limit`` members.
    package static func parse(_ fields: Fields) -> ByteRanges? {
        fields.only(.range) { value in
            guard let set = set(of: value) else { return nil }
            var specs: [Spec] = []
            var isMalformed = false
            set.forEachMember { member in
                if member.isEmpty || isMalformed { return }
                guard specs.count < limit, let spec = Spec(member) else { return isMalformed = true }
                specs.append(spec)
            }
            return isMalformed ? nil : ByteRanges(specs: specs)
        }
    }

    /// The range of a request that asks for just one in the plainest spelling; nil otherwise. Allocates nothing.
    static func only(_ lines: some FieldLines) -> Spec? { lines.only(.range) { set(of: $0).flatMap { Spec($0) } } }

    /// The text after `bytes=`; nil if the unit is another one.
    private static func set(of value: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer? {
        guard value.count > 6, value.part(0..<6).equalsIgnoringCase("bytes=") else { return nil }
        let set = value.part(6..<value.count)
        // The grammar has no whitespace before the first member.
        return ASCII.isSpace(set[0]) ? nil : set
    }

    /// The satisfiable ranges in the order of the request; those that overlap or touch are merged, in the place of the
    /// first.
    /// - Parameter length: the length of the representation in bytes.
    package func resolved(length: Int64) -> [Range<Int64>] {
        var result: [Range<Int64>] = []
        for spec in specs {
            guard var range = spec.resolved(length: length) else { continue }
            var index = result.endIndex
            // The new range may close the gap between two others.
            while let other = result.firstIndex(where: {
                $0.lowerBound <= range.upperBound && range.lowerBound <= $0.upperBound
            }) {
                let joined = result.remove(at: other)
                range = min(range.lowerBound, joined.lowerBound)..<max(range.upperBound, joined.upperBound)
                index = min(index, other)
            }
            result.insert(range, at: min(index, result.endIndex))
        }
        return result
    }

    /// The value of a Range field that asks for the same ranges.
    package var value: String { "bytes=" + specs.map(\.text).joined(separator: ",") }
}

extension ByteRanges.Spec {
    /// Reads `first-`, `first-last` or `-suffix`; nil for anything else, or if the last byte comes before the first.
    init?(_ member: UnsafeRawBufferPointer) {
        guard let hyphen = member.firstIndex(of: UInt8(ascii: "-")) else { return nil }
        let (first, last) = (member[..<hyphen], member[(hyphen + 1)...])
        guard first.allSatisfy(ASCII.isDigit), last.allSatisfy(ASCII.isDigit), !(first.isEmpty && last.isEmpty) else {
            return nil
        }
        if first.isEmpty {
            self = .suffix(Self.number(last))
        } else if last.isEmpty {
            self = .from(Self.number(first), through: nil)
        } else {
            guard !Self.isLess(last, first) else { return nil }
            self = .from(Self.number(first), through: Self.number(last))
        }
    }

    /// The bytes of a representation of this length that the member asks for; nil if it has none of them.
    package func resolved(length: Int64) -> Range<Int64>? {
        switch self {
        case .from(let first, let last):
            guard first < length else { return nil }
            return first..<(last.map { $0 < length ? $0 + 1 : length } ?? length)
        case .suffix(let count):
            guard count > 0, length > 0 else { return nil }
            return max(0, length - count)..<length
        }
    }

    package var text: String {
        switch self {
        case .from(let first, let last): "\(first)-" + (last.map { "\($0)" } ?? "")
        case .suffix(let count): "-\(count)"
        }
    }

    /// The number that the digits spell; `Int64.max` if it is larger.
    private static func number(_ digits: Slice<UnsafeRawBufferPointer>) -> Int64 {
        var value: Int64 = 0
        for digit in digits {
            let (tens, tooMany) = value.multipliedReportingOverflow(by: 10)
            let (sum, tooMuch) = tens.addingReportingOverflow(Int64(digit - 0x30))
            if tooMany || tooMuch { return .max }
            value = sum
        }
        return value
    }

    /// Whether the left number is less than the right one; the numbers may be of any size.
    private static func isLess(_ left: Slice<UnsafeRawBufferPointer>, _ right: Slice<UnsafeRawBufferPointer>) -> Bool {
        let (left, right) = (left.drop { $0 == 0x30 }, right.drop { $0 == 0x30 })
        return left.count != right.count ? left.count < right.count : left.lexicographicallyPrecedes(right)
    }
}

// MARK: - Content-Range

/// The value of Content-Range: the bytes of a 206, or the length of the representation for a 416.
package struct ContentRange: Sendable, Equatable {
    /// The positions of the content's bytes; nil in a 416, which has none of the representation (`bytes */N`).
    package var range: Range<Int64>?
    /// The length of the whole representation in bytes; nil if the sender does not know it (`*`).
    package var length: Int64?

    /// - Parameter range: a range that is not empty and lies within `length`.
    package init(range: Range<Int64>? = nil, length: Int64?) {
        self.range = range
        self.length = length
    }

    package var value: String {
        let part = range.map { "\($0.lowerBound)-\($0.upperBound - 1)" } ?? "*"
        return "bytes \(part)/\(length.map { String($0) } ?? "*")"
    }

    /// Reads the Content-Range field.
    /// - Returns: nil if the field is absent, occurs twice, has another unit, or contradicts itself.
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

/// The reason why a 206 does not answer the range that was asked for; the raw value is what diagnostics print.
package enum PartMismatch: String, Error, Sendable, CaseIterable {
    /// The request had no Range.
    case unasked
    /// Content-Range is missing or malformed.
    case contentRange = "content-range"
    /// The part begins or ends at another byte than the request asked for.
    case multipart
    /// The part begins or ends elsewhere than asked.
    case range
    /// Content-Length is not the length of the range.
    case length

    /// The mismatch as `Cache-Status` prints it.
    package var detail: String { "part-\(rawValue)" }
}

extension Caching {
    /// Checks a 206 against the one range that was asked for. It must begin where asked, but may be shorter, because an
    /// origin may send less (RFC 9110 section 15.3.7); a suffix must be exactly the one asked for.
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
