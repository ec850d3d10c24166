// What a queue is to do: a description that can be given to a queue as often as one likes.

public import Drydock
public import HTTPTypes

/// Something to be done by a ``WorkQueue``: a name, a closure, how urgent it is, and when it is tried again.
///
/// It is a description, and runs nowhere by itself. Each time it is given to a queue, it becomes a task of its own, which
/// runs once: so there is nothing to start twice, and repeating something by hand is giving it to the queue again.
///
/// ```swift
/// let work = Work("users", retry: .steady(count: 2)) { try await manager.download(url) }
/// let result = try await WorkQueue.shared.run(work)
/// ```
public struct Work<Success: Sendable>: Sendable {
    /// What those call it who listen to the queue; several may have one name.
    public var name: String
    /// Who gets the next slot.
    public var priority: DownloadOptions.Priority
    /// After which failures it is tried again, how often, and after which waits; `RetryPolicy.never` by
    /// default.
    public var retry: RetryPolicy
    /// The method of the request that it makes. `RetryPolicy.methods` looks at it: with one that is
    /// not idempotent, such as POST, a failure after which the origin may have acted is final by default. GET, the
    /// default, is right for everything that may be repeated.
    public var method: HTTPRequest.Method
    /// The cause of an error of the program's own, which makes ``retry`` repeat it: nil, and final, by default. The errors of
    /// the library have their causes, and so has a `DecodingError`, which is `content`: nobody is asked about them.
    public var retryCause: (@Sendable (any Error) -> RetryCause?)?
    let perform: @Sendable () async throws -> Success

    /// A piece of work.
    /// - Parameters:
    ///   - name: what those call it who listen to the queue; empty by default.
    ///   - priority: who gets the next slot; normal by default.
    ///   - retry: when it is tried again; never by default.
    ///   - method: of the request that it makes; GET by default.
    ///   - perform: does it once; called anew for each attempt, in a task of its own. It is told of a cancellation as
    ///     every Swift task is.
    public init(
        _ name: String = "",
        priority: DownloadOptions.Priority = .normal,
        retry: RetryPolicy = .never,
        method: HTTPRequest.Method = .get,
        perform: @escaping @Sendable () async throws -> Success
    ) {
        self.name = name
        self.priority = priority
        self.retry = retry
        self.method = method
        self.perform = perform
    }

    /// The same work with another value, so that works of several types can be members of one group.
    /// - Parameter transform: makes the value; what it throws is a failure of the work.
    public func map<Other: Sendable>(
        _ transform: @escaping @Sendable (Success) async throws -> Other
    ) -> Work<Other> {
        let perform = perform
        var work = Work<Other>(name, priority: priority, retry: retry, method: method) {
            try await transform(try await perform())
        }
        work.retryCause = retryCause
        return work
    }
}

extension Work {
    /// Calls a resource.
    /// - Parameters:
    ///   - resource: the location of its endpoint, without the query, is the name of the work; its method is that of the work.
    ///   - manager: who calls it.
    ///   - priority: who gets the next slot; normal by default.
    ///   - retry: when it is tried again; never by default. These retries come on top of those of the transport.
    public init<R: Resource>(
        _ resource: R,
        from manager: ServiceManager,
        priority: DownloadOptions.Priority = .normal,
        retry: RetryPolicy = .never
    ) where Success == Loaded<R.Model> {
        // One whose endpoint cannot be had says so when it is loaded.
        let endpoint = try? resource.endpoint
        self.init(String(endpoint?.path ?? ""), priority: priority, retry: retry, method: endpoint?.method ?? .get) {
            try await manager.call(resource)
        }
    }
}
