// What a service is: a resource with a name, and with its own rules for its calls.

public import Drydock

/// A resource that is called by a ``ServiceManager``: it has a name, and rules for its calls.
///
/// ```swift
/// struct GetUser: WebService {
///     typealias Model = User
///     let id: Int
///     var endpoint: Endpoint { .get("/users/:id", path: ["id": JSONValue(id)]) }
/// }
/// let user = try await manager.call(GetUser(id: 7)).model
/// ```
public protocol WebService<Model>: Resource {
    /// What hooks and logs call it, and what ``ServiceManager/cancel(named:)`` looks for; the name of the type by default.
    var name: String { get }

    /// The rules for its calls; the defaults unless a service says otherwise.
    var policy: ServicePolicy { get }
}

extension WebService {
    public var name: String { "\(Self.self)" }
    public var policy: ServicePolicy { ServicePolicy() }
}

/// Rules for the calls of a service.
public struct ServicePolicy: Sendable {
    /// What a call does with the store of its transport.
    public struct Storing: OptionSet, Sendable, Hashable {
        /// The bits of the options.
        public let rawValue: Int

        /// Options with these bits.
        public init(rawValue: Int) { self.rawValue = rawValue }

        /// What is stored may answer.
        public static let read = Storing(rawValue: 1)
        /// What comes may be stored.
        public static let write = Storing(rawValue: 2)
    }

    /// A call to which no response came is kept, and made again by ``ServiceManager/repeatFailed()``, instead of failing.
    /// False by default.
    ///
    /// It is kept only where its request may be sent again: nothing of it has reached the origin, or its method is
    /// idempotent (RFC 9110 section 9.2.2), or the call's rules for retries name
    /// `DownloadConfiguration.Retry.Methods.any`. A POST whose answer was cut short, or did not come in time,
    /// fails, since the origin may have acted on it.
    public var parksWithoutResponse: Bool
    /// Both by default. Without either, what is stored is left alone; without ``Storing/read`` alone the origin is asked
    /// in any case; without ``Storing/write`` alone what comes is not stored.
    public var storing: Storing
    /// The bodies of successes are logged; those of failures are in any case. True by default.
    public var logsBodies: Bool
    /// When a call is made again; nil, the default, is ``ServiceManager/Configuration/retry``.
    public var retry: DownloadConfiguration.Retry?

    /// Rules; what is left out is the default.
    public init(
        parksWithoutResponse: Bool = false,
        storing: Storing = [.read, .write],
        logsBodies: Bool = true,
        retry: DownloadConfiguration.Retry? = nil
    ) {
        self.parksWithoutResponse = parksWithoutResponse
        self.storing = storing
        self.logsBodies = logsBodies
        self.retry = retry
    }
}
