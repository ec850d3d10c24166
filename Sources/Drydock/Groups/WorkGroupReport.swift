// How a group goes about its members, where it is, and what has become of them.

/// In which order the members of a ``WorkGroup`` begin.
public enum WorkGroupMode: String, Sendable, Hashable, CaseIterable {
    /// Each begins once the one before it has succeeded.
    case serial
    /// All are given to the queue at once, which has a limit of its own.
    case concurrent
}

/// What a ``WorkGroup`` does when a member fails, or is cancelled from outside.
public enum WorkGroupFailureRule: String, Sendable, Hashable, CaseIterable {
    /// It ends: those that have begun are cancelled, and no other one begins.
    case stop
    /// The others go on; one that follows in a serial group begins all the same.
    case `continue`
}

/// Where a ``WorkGroup`` is.
public enum WorkGroupState: String, Sendable, Hashable, CaseIterable {
    /// Nothing has failed so far, and not all have ended.
    case running
    /// All members have succeeded; so has a group without members.
    case finished
    /// A member has failed; with ``WorkGroupFailureRule/continue`` others may still be under way.
    case failed
    /// The group was cancelled.
    case cancelled
}

/// What has become of the members of a ``WorkGroup``.
public struct WorkGroupReport<Success: Sendable>: Sendable {
    /// How the group ended.
    public let state: WorkGroupState
    /// One for each member, in the order in which they were added; nil: it never began.
    public let results: [Result<Success, TaskQueueError>?]
    /// The error of the member that failed first; nil where none has failed.
    public let firstError: TaskQueueError?
}
