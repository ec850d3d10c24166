// A call that goes on by itself, as an object: waited for, listened to and cancelled from anywhere; which call it is,
// and what happens in its course.

public import Drydock
public import HTTPTypes
import Synchronization

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

// MARK: - Which call it is

/// Which call it is.
public struct CallInfo: Sendable, Hashable, Identifiable {
    /// No two calls of a program have the same.
    public let id: UInt64
    /// The ``Resource/serviceName`` of what is asked for.
    public let name: String
    /// On whose behalf it was made; nil: nobody's.
    public let owner: CallOwner?
    /// The method of the request.
    public let method: HTTPRequest.Method
    /// The location of the endpoint, with its `:names` and without a query; empty if the endpoint cannot be had.
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

    /// Hashes the value, or the identity of the object.
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

// MARK: - What happens

/// What happens in the course of a call.
///
/// ``started(attempt:)`` comes first, then what goes up and what comes down. Where the call is made again,
/// ``retrying(after:_:)`` and another ``started(attempt:)`` follow, and behind ``parked(_:)`` there is another start once it
/// is repeated. ``succeeded(_:)`` or ``failed(_:)`` comes at last, and ``ended`` behind it. A call that cannot start only
/// fails and ends.
public enum CallEvent<Model: Sendable>: Sendable {
    /// An attempt begins; the first one has the number 1.
    case started(attempt: Int)
    /// More of the request's content has been sent.
    case sent(DownloadProgress)
    /// More of the response's body has come.
    case received(DownloadProgress)
    /// What is stored, although it is no longer valid, while the origin is asked; only where the resource's options say
    /// `DownloadOptions.yieldsStaleFirst`.
    case stale(Loaded<Model>)
    /// The attempt has failed, and another one is made after this wait.
    case retrying(after: Duration, ServiceError)
    /// No response came: the call is kept until ``ServiceManager/repeatFailed()``.
    case parked(ServiceError)
    /// The model has come.
    case succeeded(Loaded<Model>)
    /// There is none.
    case failed(ServiceError)
    /// Nothing comes any more.
    case ended
}

// MARK: - What is still to be heard

/// The events of one call. Sendable: its state is under its own mutex, and nobody is resumed under it.
final class CallMailbox<Model: Sendable>: Sendable {
    private struct State {
        var events: [CallEvent<Model>] = []
        var isOver = false
        /// The number of the next listener that waits.
        var number: UInt64 = 0
        var waiters: [UInt64: CheckedContinuation<Void, Never>] = [:]
    }

    /// Events that are kept for who does not listen.
    private static var limit: Int { 256 }

    /// Nobody can listen: nothing is kept.
    private let isUnheard: Bool
    private let state = Mutex(State())

    init(isUnheard: Bool) { self.isUnheard = isUnheard }

    func add(_ event: CallEvent<Model>) {
        if isUnheard { return }
        let (old, waiters) = state.withLock { state in
            var old: CallEvent<Model>?
            if event.replaces(state.events.last) {
                old = state.events.removeLast()
            } else if state.events.count == Self.limit {
                old = state.events.removeFirst()
            }
            state.events.append(event)
            if case .ended = event { state.isOver = true }
            defer { state.waiters = [:] }
            return (old, state.waiters)
        }
        withExtendedLifetime(old) {}
        for waiter in waiters.values { waiter.resume() }
    }

    /// The next event; nil behind the last one, and where the task is cancelled.
    func next() async -> CallEvent<Model>? {
        while true {
            let (event, isOver) = state.withLock { state in
                (state.events.isEmpty ? nil : state.events.removeFirst(), state.isOver)
            }
            if event != nil || isOver || Task.isCancelled { return event }
            await waitForMore()
        }
    }

    /// Returns when there may be an event, or the task is cancelled.
    private func waitForMore() async {
        let number = state.withLock { state in
            state.number += 1
            return state.number
        }
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                // A task that is cancelled from here on is found in the table.
                let isReady = state.withLock { state in
                    if !state.events.isEmpty || state.isOver || Task.isCancelled { return true }
                    state.waiters[number] = continuation
                    return false
                }
                if isReady { continuation.resume() }
            }
        } onCancel: {
            state.withLock { $0.waiters.removeValue(forKey: number) }?.resume()
        }
    }
}

extension CallEvent {
    /// It says more of the same.
    fileprivate func replaces(_ last: CallEvent?) -> Bool {
        switch (self, last) {
        case (.sent, .sent?), (.received, .received?): true
        default: false
        }
    }
}
