// A value of many members in one reference, so that each function that waits has that alone in its frame.

/// Holds members behind one reference; they are copied when they are changed while another value refers to them.
/// Public, with its functions inlinable, because the compiler specialises nothing of a `package` type in another module.
public struct CopyOnWrite<Members> {
    @usableFromInline final class Box {
        // Unchecked: no code runs while a member is changed, and a check would cost instructions with every use.
        @usableFromInline @exclusivity(unchecked) var members: Members

        @inlinable init(_ members: Members) { self.members = members }
    }

    @usableFromInline var box: Box

    @inlinable public init(_ members: Members) { box = Box(members) }

    @inlinable public var members: Members {
        _read { yield box.members }
        _modify {
            if !isKnownUniquelyReferenced(&box) { box = Box(box.members) }
            yield &box.members
        }
    }
}

/// Unchecked: the members are changed only while one value alone refers to them.
extension CopyOnWrite: @unchecked Sendable where Members: Sendable {}
