// Which call it is: for hooks, for logs, and for those who cancel.

public import HTTPTypes

/// Which call it is.
public struct CallInfo: Sendable, Hashable, Identifiable {
    /// No two calls of a program have the same.
    public let id: UInt64
    /// Of the service; of a resource that is none, the name of its type.
    public let name: String
    /// On whose behalf it was made; nil: nobody's.
    public let owner: CallOwner?
    /// Of the request.
    public let method: HTTPRequest.Method
    /// Of the endpoint, with its `:names` and without a query; empty where the endpoint cannot be had.
    public let location: String
}

/// On whose behalf calls are made: they are counted, and cancelled together.
public struct CallOwner: Sendable, Hashable {
    private let value: any Hashable & Sendable

    /// An owner that is equal to others, such as the name of a page.
    public init(_ value: some Hashable & Sendable) { self.value = value }

    /// An object, by its identity. The owner does not keep it from ending, and belongs to it alone for ever: no object
    /// that is made later is the same owner. An object may end its calls in its `deinit`.
    public init(_ object: AnyObject) { value = ObjectOwner(object) }

    /// Whether both are the same owner.
    public static func == (left: Self, right: Self) -> Bool { AnyHashable(left.value) == AnyHashable(right.value) }

    /// Of the value, or of the identity.
    public func hash(into hasher: inout Hasher) { hasher.combine(AnyHashable(value)) }
}

/// An object that may have ended.
///
/// Sendable: the object is never read. The unowned reference keeps its memory, so that no other object has its address as
/// long as this is there.
private struct ObjectOwner: Hashable, @unchecked Sendable {
    private unowned let object: AnyObject
    private let identifier: ObjectIdentifier

    init(_ object: AnyObject) {
        self.object = object
        identifier = ObjectIdentifier(object)
    }

    static func == (one: Self, other: Self) -> Bool { one.identifier == other.identifier }

    func hash(into hasher: inout Hasher) { hasher.combine(identifier) }
}
