// Where a task of a queue is, how it ended, and what is told of its end.

/// Where a task of a ``TaskQueue`` is, and how often it was tried.
public struct TaskState: Sendable {
    /// Where it is.
    public enum Phase: String, Sendable, Hashable, CaseIterable {
        /// It waits for its turn.
        case queued
        /// It runs.
        case running
        /// It has failed, and will be tried again; it has no slot meanwhile.
        case waitingForRetry
        /// It has succeeded.
        case done
        /// It has failed, and is not tried again.
        case failed
        /// It was cancelled.
        case cancelled
    }

    /// Where it is.
    public var phase: Phase
    /// Attempts that have begun; 0 before the first.
    public var attempts: Int
    /// Why the last attempt failed; nil where none has failed, or the last one succeeded.
    public var error: (any Error)?
    /// How long it waits for its retry; nil in every other phase.
    public var retryDelay: Duration?

    /// It has ended: no other state follows.
    public var isOver: Bool {
        switch phase {
        case .queued, .running, .waitingForRetry: false
        case .done, .failed, .cancelled: true
        }
    }

    /// Makes a state, for a program's own tests.
    public init(_ phase: Phase, attempts: Int = 0, error: (any Error)? = nil, retryDelay: Duration? = nil) {
        self.phase = phase
        self.attempts = attempts
        self.error = error
        self.retryDelay = retryDelay
    }
}

/// Why a task of a queue has no value.
public enum TaskQueueError: Error, Sendable, CustomStringConvertible {
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
