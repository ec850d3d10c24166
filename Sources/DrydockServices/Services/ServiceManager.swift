// Calls services: what they share, who is asked and told, and what becomes of those that fail.

public import Drydock
public import FoundationEssentials
public import HTTPTypes
public import Logging

/// Calls resources through a transport: it adds what they share, repeats and keeps what failed, counts and cancels calls
/// by their owners, and tells of all of it.
///
/// ```swift
/// var configuration = ServiceManager.Configuration()
/// configuration.base = URL(string: "https://api.example/v1")
/// configuration.retry = .steady(count: 2)
/// let manager = ServiceManager(configuration: configuration)
/// let user = try await manager.call(GetUser(id: 7)).model
/// let users = try await manager.load([User].self, from: "/users").model
/// ```
///
/// Any task may use it. Calls go on when nobody holds the manager any more, but for those that are parked, which nobody
/// could repeat: they end with ``ServiceError/cancelled``.
public final class ServiceManager: Sendable {
    /// What all calls of a manager share.
    public struct Configuration: Sendable {
        /// What the paths of endpoints are appended to; nil, the default: endpoints have whole URLs. `user:password@` in
        /// it becomes `Authorization: Basic`, and a query is kept. A file URL reads files below a folder.
        public var base: URL?
        /// Fields, each for the calls of a resource without one of the same name, in upper or lower case; none by default.
        public var headerFields: HTTPFields
        /// Query items, each for the calls of a resource without one of the same name; none by default.
        public var query: Parameters
        /// Fields and query items for the calls of one resource; they win over ``headerFields`` and ``query``, and the
        /// resource wins over them. None by default.
        public var defaultsForResource: (@Sendable (any Resource) -> (headerFields: HTTPFields, query: Parameters))?
        /// When a call is made again; `RetryPolicy.never` by default, which leaves it to the transport.
        /// Where this or the service says more, the transport makes no retries of its own.
        public var retry: RetryPolicy
        /// Who is asked and told.
        public var hooks: ServiceHooks
        /// Models that were decoded already; nil, the default, decodes each response.
        public var models: DecodedModels?
        /// Bytes that a body may have; 256 MiB by default.
        public var maximumBody: Int
        /// Calls that are kept without a response; one more fails. 1000 by default.
        public var maximumParked: Int
        /// Bytes of a content that are logged; 1024 by default.
        public var loggedBytes: Int
        /// What waits between attempts; a test has one that it advances.
        public var clock: any Clock<Duration>

        /// The defaults.
        public init() {
            headerFields = HTTPFields()
            query = [:]
            retry = .never
            hooks = ServiceHooks()
            maximumBody = 256 << 20
            maximumParked = 1000
            loggedBytes = 1024
            clock = ContinuousClock()
        }
    }

    /// The manager for a whole program, over `DownloadManager.shared`; it has no base URL.
    public static let shared = ServiceManager()

    /// What the manager was made with.
    public let configuration: Configuration
    private let loader: ResourceLoader
    private let logger: Logger
    private let table: CallTable

    /// Makes a manager.
    /// - Parameters:
    ///   - transport: who carries the requests; `DownloadManager.shared` by default.
    ///   - configuration: the defaults where it is left out.
    ///   - logger: where requests, responses and failures are told of, at `debug`, as ``ServiceHooks/onLog`` has them.
    public convenience init(
        transport: any Transport = DownloadManager.shared,
        configuration: Configuration = Configuration(),
        logger: Logger = Logger(label: "drydock.services")
    ) {
        self.init(transport: transport, configuration: configuration, logger: logger, RefusedRetries(of: .calls))
    }

    /// Makes a manager that differs from others in its base URL alone.
    /// - Parameters:
    ///   - transport: who carries the requests; `DownloadManager.shared` by default.
    ///   - base: as ``Configuration/base``.
    public convenience init(transport: any Transport = DownloadManager.shared, base: URL?) {
        var configuration = Configuration()
        configuration.base = base
        self.init(transport: transport, configuration: configuration)
    }

    init(transport: any Transport, configuration: Configuration, logger: Logger, _ metric: RefusedRetries) {
        table = CallTable(metric)
        self.configuration = configuration
        self.logger = logger
        loader = ResourceLoader(transport, configuration)
    }

    deinit {
        table.closeParking()
        for entry in table.entries() where entry.control.isParked { entry.control.cancel() }
    }

    // MARK: - Calling

    /// Calls a service, and waits for its model. Where the task is cancelled, so is the call.
    /// - Parameters:
    ///   - resource: what is asked for.
    ///   - owner: on whose behalf; nobody's by default.
    /// - Throws: `ServiceError`.
    @discardableResult
    public func call<R: Resource>(
        _ resource: R,
        for owner: CallOwner? = nil
    ) async throws(ServiceError) -> Loaded<R.Model> {
        try await start(resource, for: owner, isUnheard: true).ownedValue
    }

    /// Begins a call that goes on by itself, and tells of what happens.
    /// - Parameters:
    ///   - resource: what is asked for.
    ///   - owner: on whose behalf; nobody's by default.
    public func start<R: Resource>(_ resource: R, for owner: CallOwner? = nil) -> ServiceCall<R.Model> {
        start(resource, for: owner, isUnheard: false)
    }

    /// Calls an endpoint, and reads JSON.
    /// - Parameters:
    ///   - type: what the body becomes.
    ///   - endpoint: where it is; a text is a GET.
    ///   - options: how the cache is used.
    ///   - owner: on whose behalf; nobody's by default.
    /// - Throws: `ServiceError`.
    public func load<Model: Decodable & Sendable>(
        _ type: Model.Type,
        from endpoint: Endpoint,
        options: DownloadOptions = DownloadOptions(),
        for owner: CallOwner? = nil
    ) async throws(ServiceError) -> Loaded<Model> {
        try await call(HTTPResource(endpoint, .json, options: options), for: owner)
    }

    /// Calls an endpoint, and reads the body as a format says.
    /// - Parameters:
    ///   - format: how the body is read, such as `.text`, or `.nothing` where it does not matter.
    ///   - endpoint: where it is; a text is a GET.
    ///   - options: how the cache is used.
    ///   - owner: on whose behalf; nobody's by default.
    /// - Throws: `ServiceError`.
    @discardableResult
    public func load<Model>(
        _ format: ResponseFormat<Model>,
        from endpoint: Endpoint,
        options: DownloadOptions = DownloadOptions(),
        for owner: CallOwner? = nil
    ) async throws(ServiceError) -> Loaded<Model> {
        try await call(HTTPResource(endpoint, format, options: options), for: owner)
    }

    /// A resource as it is stored, where that is no longer valid, and then as its origin has it. Each iteration asks
    /// anew; it is no call: no hook is told of it, and the transport alone makes retries.
    ///
    /// ```swift
    /// for try await users in manager.values(of: userList) { show(users.model, isFinal: !users.isStale) }
    /// ```
    ///
    /// A stored response that cannot be read is left out. An error ends the sequence, also behind a stored value.
    public func values<R: Resource>(
        of resource: R
    ) -> some AsyncSequence<Loaded<R.Model>, ServiceError> & Sendable {
        LoadedValues(loader, resource)
    }

    /// - Parameter isUnheard: nobody gets the events.
    private func start<R: Resource>(
        _ resource: R,
        for owner: CallOwner?,
        isUnheard: Bool
    ) -> ServiceCall<R.Model> {
        let endpoint = try? resource.endpoint
        let info = CallInfo(
            id: CallTable.nextNumber,
            name: resource.serviceName,
            owner: owner,
            method: endpoint?.method ?? .get,
            location: endpoint?.shownLocation ?? ""
        )
        let control = CallControl()
        table.insert(CallTable.Entry(info: info, type: ObjectIdentifier(R.self), control: control))
        let mailbox = CallMailbox<R.Model>(isUnheard: isUnheard)
        let run = ServiceRun(
            resource: resource,
            info: info,
            configuration: configuration,
            loader: loader,
            logger: logger,
            table: table,
            control: control,
            mailbox: mailbox
        )
        let task = Task { await run.result() }
        control.begin { task.cancel() }
        return ServiceCall(info, control, mailbox, task)
    }

    // MARK: - The calls

    /// The calls that have not ended, in the order in which they began.
    public var calls: [CallInfo] { table.entries().map(\.info) }

    /// How many have not ended; those that wait for a retry or are parked count.
    public var callCount: Int { table.count }

    /// Counts the calls that have not ended, for an `ActivityStream`.
    public var activity: ActivityStream { ActivityStream(counters: [table.activity]) }

    /// How many of an owner have not ended.
    public func callCount(of owner: CallOwner) -> Int { table.entries { $0.info.owner == owner }.count }

    /// Retries that were due so far, and for which `RetryPolicy.budget` had none left.
    public var refusedRetries: Int { table.refusedRetries }

    /// How many wait for ``repeatFailed()``.
    public var parkedCount: Int { table.entries { $0.control.isParked }.count }

    /// Makes the calls again to which no response came and whose services keep them
    /// (``Resource/parksWithoutResponse``).
    /// - Returns: how many there were.
    @discardableResult
    public func repeatFailed() -> Int { table.entries().count { $0.control.repeatParked() } }

    /// Ends all calls of an owner with ``ServiceError/cancelled``.
    /// - Returns: how many there were.
    @discardableResult
    public func cancelCalls(of owner: CallOwner) -> Int { cancel { $0.info.owner == owner } }

    /// Ends all calls of a service with ``ServiceError/cancelled``.
    /// - Returns: how many there were.
    @discardableResult
    public func cancelCalls<R: Resource>(to type: R.Type) -> Int { cancel { $0.type == ObjectIdentifier(type) } }

    /// Ends all calls of services with exactly this name with ``ServiceError/cancelled``.
    /// - Returns: how many there were.
    @discardableResult
    public func cancelCalls(named name: String) -> Int { cancel { $0.info.name == name } }

    /// Ends all calls of this manager with ``ServiceError/cancelled``; those of other managers go on, also over the same
    /// transport.
    /// - Returns: how many there were.
    @discardableResult
    public func cancelAll() -> Int { cancel { _ in true } }

    private func cancel(where isWanted: (CallTable.Entry) -> Bool) -> Int {
        let entries = table.entries(where: isWanted)
        for entry in entries { entry.control.cancel() }
        return entries.count
    }
}
