// Where a task of a queue is, how it ended, and what those are told of its end who listen to the queue.

import Drydock
public import HTTPTypes

/// Where a piece of work of a ``WorkQueue`` is, and how often it was tried.
public struct WorkState: Sendable {
    /// Where work of a ``WorkQueue`` is, or a ``WorkGroup``, which is never ``queued`` or ``waitingForRetry``.
    public enum Phase: Sendable, Hashable, CaseIterable {
        /// It waits for its turn.
        case queued
        /// It runs; of a group, nothing has failed so far, and not all have ended.
        case running
        /// It has failed, and will be tried again; it has no slot meanwhile.
        case waitingForRetry
        /// It has succeeded; so has a group without members.
        case done
        /// It has failed, and is not tried again. In a group that does not stop then, others may still be under way.
        case failed
        /// It was cancelled.
        case cancelled

        /// Whether nothing follows.
        public var isOver: Bool {
            switch self {
            case .queued, .running, .waitingForRetry: false
            case .done, .failed, .cancelled: true
            }
        }
    }

    /// Where it is.
    public var phase: Phase
    /// Attempts that have begun; 0 before the first.
    public var attempts: Int
    /// Why the last attempt failed; nil where none has failed, or the last one succeeded.
    public var error: (any Error)?
    /// How long it waits for its retry; nil in every other phase.
    public var retryDelay: Duration?

    /// Whether the work has ended: no other state follows.
    public var isOver: Bool { phase.isOver }

    /// Makes a state, for a program's own tests.
    public init(_ phase: Phase, attempts: Int = 0, error: (any Error)? = nil, retryDelay: Duration? = nil) {
        self.phase = phase
        self.attempts = attempts
        self.error = error
        self.retryDelay = retryDelay
    }
}

/// Why a task of a queue has no value.
public enum WorkError: Error, Sendable, CustomStringConvertible {
    /// It was cancelled, or the task that waited for it was.
    case cancelled
    /// The queue was closed before.
    case closed
    /// Its last attempt threw this.
    case failed(any Error)

    /// What happened and what to do.
    public var description: String {
        switch self {
        case .cancelled: "the task was cancelled"
        case .closed: "the task queue has been closed: make another one"
        case .failed(let error): "\(error)"
        }
    }
}

// MARK: - Ends

/// The end of one task of a queue, as those hear of it who listen to the queue.
public struct WorkEnd<Value: Sendable>: Sendable {
    /// The task's ``Work/name``.
    public let name: String
    /// The task's ``Work/method``.
    public let method: HTTPRequest.Method
    /// How it ended: ``WorkState/Phase/done``, ``WorkState/Phase/failed`` or ``WorkState/Phase/cancelled``.
    public let state: WorkState
    /// Its value, or why there is none.
    public let result: Result<Value, WorkError>
}

/// The end of a task of any type, with the type that it has.
struct AnyWorkEnd: Sendable {
    private let end: any WorkEndOfType
    let name: String
    let method: HTTPRequest.Method

    init<Value>(_ end: WorkEnd<Value>) {
        self.end = end
        name = end.name
        method = end.method
    }

    /// The end with the type of the task; nil if the task has another type.
    func typed<Value>(_ type: Value.Type) -> WorkEnd<Value>? { end as? WorkEnd<Value> }

    func isOf<Value: Sendable>(_ type: Value.Type) -> Bool { end is WorkEnd<Value> }

    var untyped: WorkEnd<any Sendable> { end.untyped }
}

private protocol WorkEndOfType: Sendable {
    var untyped: WorkEnd<any Sendable> { get }
}

extension WorkEnd: WorkEndOfType {
    fileprivate var untyped: WorkEnd<any Sendable> {
        WorkEnd<any Sendable>(name: name, method: method, state: state, result: result.map { $0 })
    }
}
