// A call that goes on by itself, as an object: waited for, listened to and cancelled from anywhere.

/// A call under way, which ``ServiceManager/start(_:for:)`` has begun. It goes on when nobody holds it.
///
/// ```swift
/// let call = manager.start(GetUser(id: 7))
/// for await event in call.events { print(event) }
/// let user = try await call.value.model
/// ```
public final class ServiceCall<Model: Sendable>: Sendable, Identifiable {
    /// Which call it is.
    public let info: CallInfo
    private let control: CallControl
    private let mailbox: CallMailbox<Model>
    private let task: Task<Result<Loaded<Model>, ServiceError>, Never>

    init(
        _ info: CallInfo,
        _ control: CallControl,
        _ mailbox: CallMailbox<Model>,
        _ task: Task<Result<Loaded<Model>, ServiceError>, Never>
    ) {
        self.info = info
        self.control = control
        self.mailbox = mailbox
        self.task = task
    }

    /// No two calls of a program have the same.
    public var id: UInt64 { info.id }

    /// What happens, from the beginning; ``CallEvent`` says in which order. Of progress only the latest counts for who is
    /// slow, and of more than 256 events for which nobody asks the earliest go. There is one sequence of them: of several
    /// who listen, each event reaches one, and one whose task is cancelled leaves the rest to others.
    public var events: AsyncStream<CallEvent<Model>> { AsyncStream { [mailbox] in await mailbox.next() } }

    /// Waits for the end. A task that is cancelled meanwhile waits no longer, and leaves the call alone.
    /// - Throws: `ServiceError`: why there is no model; ``ServiceError/cancelled`` where the waiting task was cancelled, too.
    public var value: Loaded<Model> {
        get async throws(ServiceError) {
            guard let result = await task.valueUnlessCancelled() else { throw .cancelled }
            return try result.get()
        }
    }

    /// Waits for the end, and cancels the call where the task is cancelled.
    var ownedValue: Loaded<Model> {
        get async throws(ServiceError) {
            let result = await withTaskCancellationHandler {
                await task.value
            } onCancel: {
                control.cancel()
            }
            return try result.get()
        }
    }

    /// Whether no response came, and it waits for ``ServiceManager/repeatFailed()``.
    public var isParked: Bool { control.isParked }

    /// Ends it; it fails with ``ServiceError/cancelled``, and a wait for another attempt ends.
    public func cancel() { control.cancel() }
}
