// How a group goes about its members: its modes and states, which members are to begin, when it has ended, and what has
// become of them.

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
    /// The results of the members, in the order in which they were added; nil for one that never began.
    public let results: [Result<Success, TaskQueueError>?]
    /// The error of the member that failed first; nil where none has failed.
    public let firstError: TaskQueueError?
}

// MARK: - Whose turn it is

/// A member waits, is in the queue, or has ended. What a group is told of a member that has ended changes nothing.
struct GroupMachine {
    enum Action: Equatable {
        /// Give the member to the queue.
        case submit(Int)
        /// Cancel the member, which is in the queue.
        case cancel(Int)
        /// All is over.
        case finish
    }

    private enum Place { case waiting, submitted, ended }

    private let mode: WorkGroupMode
    private let rule: WorkGroupFailureRule
    private var places: [Place] = []
    private var submitted = 0
    /// Members before this one do not wait.
    private var next = 0
    private(set) var state = WorkGroupState.running
    /// No further member begins.
    private(set) var isEnding = false
    private(set) var isOver = false
    /// The first member that failed.
    private(set) var firstFailure: Int?

    init(_ mode: WorkGroupMode, _ rule: WorkGroupFailureRule) { (self.mode, self.rule) = (mode, rule) }

    var count: Int { places.count }

    /// The group begins with so many members.
    mutating func begin(_ count: Int) -> [Action] {
        places = Array(repeating: .waiting, count: count)
        return advance()
    }

    /// Another member comes; nil where the group takes none any more.
    mutating func add() -> [Action]? {
        guard !isEnding, !isOver else { return nil }
        places.append(.waiting)
        return advance()
    }

    /// A member has ended.
    /// - Parameter hasFailed: it has no value; one that was cancelled has none either.
    mutating func ended(_ member: Int, hasFailed: Bool) -> [Action] {
        guard places[member] == .submitted else { return [] }
        places[member] = .ended
        submitted -= 1
        guard hasFailed else { return advance() }
        if firstFailure == nil { firstFailure = member }
        // A group that was cancelled stays so, whatever its members say then.
        if state == .running { state = .failed }
        guard rule == .stop, !isEnding else { return advance() }
        return end()
    }

    mutating func cancel() -> [Action] {
        // One that ends already because a member has failed has failed.
        guard !isOver, !isEnding else { return [] }
        state = .cancelled
        return end()
    }

    /// Ends the group: no other member begins, and those in the queue are cancelled.
    private mutating func end() -> [Action] {
        isEnding = true
        return places.indices.filter { places[$0] == .submitted }.map { .cancel($0) } + advance()
    }

    private mutating func advance() -> [Action] {
        var actions: [Action] = []
        while !isEnding, next < places.count, mode == .concurrent || submitted == 0 {
            places[next] = .submitted
            submitted += 1
            actions.append(.submit(next))
            next += 1
        }
        guard !isOver, submitted == 0 else { return actions }
        isOver = true
        if state == .running { state = .finished }
        return actions + [.finish]
    }
}
