// A closure among settings that are compared: it equals its copies, and nothing else.

/// A value that has no equality of its own, with that of its place.
struct Identified<Value: Sendable>: Sendable, Hashable {
    private final class Place: Sendable {
        let value: Value

        init(_ value: Value) { self.value = value }
    }

    private let place: Place

    init(_ value: Value) { place = Place(value) }

    var value: Value { place.value }

    static func == (left: Self, right: Self) -> Bool { left.place === right.place }

    func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(place)) }
}
