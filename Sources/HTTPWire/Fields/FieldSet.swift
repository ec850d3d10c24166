// Which known fields occur in a head, as one machine word.

/// A set of known fields; the hot path asks it before it looks at any line.
public struct FieldSet: OptionSet, Sendable, Hashable {
    public var rawValue: UInt64

    public init(rawValue: UInt64) { self.rawValue = rawValue }

    public init(_ fields: KnownField...) {
        rawValue = 0
        for field in fields { insert(field) }
    }

    /// Whether the field occurs.
    @inlinable @inline(__always)
    public func contains(_ field: KnownField) -> Bool { rawValue & (1 << UInt64(field.rawValue)) != 0 }

    /// Whether no field is in both.
    @inlinable @inline(__always)
    public func isDisjoint(with other: FieldSet) -> Bool { rawValue & other.rawValue == 0 }

    @inlinable @inline(__always)
    public mutating func insert(_ field: KnownField) { rawValue |= 1 << UInt64(field.rawValue) }

    @inlinable @inline(__always)
    public mutating func remove(_ field: KnownField) { rawValue &= ~(1 << UInt64(field.rawValue)) }
}
