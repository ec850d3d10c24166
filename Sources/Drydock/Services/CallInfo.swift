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

    /// An object, by its identity. It is not kept: whoever goes cancels its calls before.
    public init(_ object: AnyObject) { value = ObjectIdentifier(object) }

    /// Whether both are the same owner.
    public static func == (left: Self, right: Self) -> Bool { AnyHashable(left.value) == AnyHashable(right.value) }

    /// Of the value, or of the identity.
    public func hash(into hasher: inout Hasher) { hasher.combine(AnyHashable(value)) }
}
