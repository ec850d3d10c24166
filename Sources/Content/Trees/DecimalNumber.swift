// Numbers compared by their digits: an id of 64 bits is not rounded to the nearest one that a Double has.

/// A number as JSON writes it, exactly (RFC 8259 section 6); zeros before it and a plus sign do no harm.
package struct DecimalNumber: Sendable, Equatable {
    private let isNegative: Bool
    /// Without zeros at either end; none for zero.
    private let digits: [UInt8]
    /// Places between the point and the first digit, negative where zeros are between them.
    private let magnitude: Int

    /// Exponents beyond it are taken for it.
    private static let largestExponent = 1 << 40

    /// - Returns: nil for what is no number.
    package init?(_ text: String) {
        var rest = Substring(text).utf8[...]
        func takeDigits() -> [UInt8] {
            let digits = rest.prefix { 48...57 ~= $0 }
            rest = rest.dropFirst(digits.count)
            return Array(digits)
        }
        func takeSign() -> Bool {
            guard let first = rest.first, first == UInt8(ascii: "-") || first == UInt8(ascii: "+") else { return false }
            rest = rest.dropFirst()
            return first == UInt8(ascii: "-")
        }
        let isNegative = takeSign()
        var digits = takeDigits()
        var magnitude = digits.count
        if rest.first == UInt8(ascii: ".") {
            rest = rest.dropFirst()
            let fraction = takeDigits()
            guard !fraction.isEmpty else { return nil }
            digits += fraction
        }
        guard !digits.isEmpty else { return nil }
        if let mark = rest.first, mark | 0x20 == UInt8(ascii: "e") {
            rest = rest.dropFirst()
            let isSmall = takeSign()
            let exponent = takeDigits()
            guard !exponent.isEmpty else { return nil }
            let size = exponent.reduce(0) { min($0 * 10 + Int($1 - 48), Self.largestExponent) }
            magnitude += isSmall ? -size : size
        }
        guard rest.isEmpty else { return nil }
        let zeros = digits.prefix { $0 == 48 }.count
        digits.removeFirst(zeros)
        while digits.last == 48 { digits.removeLast() }
        self.digits = digits
        self.magnitude = digits.isEmpty ? 0 : magnitude - zeros
        self.isNegative = isNegative && !digits.isEmpty
    }
}

extension DecimalNumber: Comparable {
    package static func < (first: DecimalNumber, second: DecimalNumber) -> Bool {
        guard first.isNegative == second.isNegative else { return first.isNegative }
        return first.isNegative ? second.isSmaller(than: first) : first.isSmaller(than: second)
    }

    /// Without the signs.
    private func isSmaller(than other: DecimalNumber) -> Bool {
        if digits.isEmpty || other.digits.isEmpty { return digits.isEmpty && !other.digits.isEmpty }
        return magnitude == other.magnitude
            ? digits.lexicographicallyPrecedes(other.digits) : magnitude < other.magnitude
    }
}
