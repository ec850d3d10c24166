// What a Range field asks for (RFC 9110 section 14): read within bounds, and resolved against the
// length of a representation.

package import HTTPWire

/// The ranges of bytes that one request asks for.
package struct ByteRanges: Sendable, Equatable {
    /// One member of the field; numbers that are too large are `Int64.max`.
    package enum Spec: Sendable, Equatable {
        /// Positions of the first and the last byte, both included; nil: up to the end.
        case from(Int64, through: Int64?)
        /// So many bytes at the end.
        case suffix(Int64)
    }

    /// Members of one field at most; a request for more gets the whole representation.
    package static let limit = 16

    /// At least one, in the order of the request.
    package let specs: [Spec]

    package init?(specs: [Spec]) {
        guard !specs.isEmpty else { return nil }
        self.specs = specs
    }

    /// - Returns: nil where the request is to be answered as if it had no Range: there is none or more than one, its
    ///   unit is not `bytes`, it is malformed (RFC 9110 section 14.2), or it has more than ``limit`` members.
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

    /// The one range of a request that asks for just one in the plainest way; nil otherwise. No allocation.
    static func only(_ lines: some FieldLines) -> Spec? { lines.only(.range) { set(of: $0).flatMap { Spec($0) } } }

    /// What follows `bytes=`; nil where the unit is another one.
    private static func set(of value: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer? {
        guard value.count > 6, value.part(0..<6).equalsIgnoringCase("bytes=") else { return nil }
        let set = value.part(6..<value.count)
        // The grammar has no whitespace before the first member.
        return ASCII.isSpace(set[0]) ? nil : set
    }

    /// The satisfiable ranges in the order of the request; those that overlap or touch are one,
    /// in the place of the first.
    /// - Parameter length: of the representation, in bytes.
    package func resolved(length: Int64) -> [Range<Int64>] {
        var result: [Range<Int64>] = []
        for spec in specs {
            guard var range = spec.resolved(length: length) else { continue }
            var place = result.endIndex
            // What the new range fills may join two that were apart.
            while let other = result.firstIndex(where: {
                $0.lowerBound <= range.upperBound && range.lowerBound <= $0.upperBound
            }) {
                let joined = result.remove(at: other)
                range = min(range.lowerBound, joined.lowerBound)..<max(range.upperBound, joined.upperBound)
                place = min(place, other)
            }
            result.insert(range, at: min(place, result.endIndex))
        }
        return result
    }

    /// The value of a Range field that asks for the same.
    package var value: String { "bytes=" + specs.map(\.text).joined(separator: ",") }
}

extension ByteRanges.Spec {
    /// `first-`, `first-last` or `-suffix`; nil for anything else, and where the last byte comes before the first.
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

    /// The bytes that this asks for of a representation with `length` bytes; nil where it has none of them.
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

    /// Digits only.
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

    /// Compares numbers of any size.
    private static func isLess(_ left: Slice<UnsafeRawBufferPointer>, _ right: Slice<UnsafeRawBufferPointer>) -> Bool {
        let (left, right) = (left.drop { $0 == 0x30 }, right.drop { $0 == 0x30 })
        return left.count != right.count ? left.count < right.count : left.lexicographicallyPrecedes(right)
    }
}
