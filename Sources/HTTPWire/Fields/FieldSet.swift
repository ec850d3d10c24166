// Which known fields occur in a head, as one machine word.

/// A set of known fields; the hot path asks it before it looks at any line.
package struct FieldSet: OptionSet, Sendable, Hashable {
    package var rawValue: UInt64

    package init(rawValue: UInt64) { self.rawValue = rawValue }

    package init(_ fields: KnownField...) {
        rawValue = 0
        for field in fields { insert(field) }
    }

    /// Whether the field occurs.
    @inlinable @inline(__always)
    package func contains(_ field: KnownField) -> Bool { rawValue & (1 << UInt64(field.rawValue)) != 0 }

    /// Whether no field is in both.
    @inlinable @inline(__always)
    package func isDisjoint(with other: FieldSet) -> Bool { rawValue & other.rawValue == 0 }

    @inlinable @inline(__always)
    package mutating func insert(_ field: KnownField) { rawValue |= 1 << UInt64(field.rawValue) }

    @inlinable @inline(__always)
    package mutating func remove(_ field: KnownField) { rawValue &= ~(1 << UInt64(field.rawValue)) }
}
