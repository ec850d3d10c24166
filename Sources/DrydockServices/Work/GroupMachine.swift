// Whose turn it is among the members of a group: which are to begin, which are to be cancelled, and when it has ended.

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

    private enum Stage { case waiting, submitted, ended }

    private let isInOrder: Bool
    private let stopsOnFailure: Bool
    private var stages: [Stage] = []
    private var submitted = 0
    /// Members before this one do not wait.
    private var next = 0
    private(set) var state = WorkState.Phase.running
    /// No further member begins.
    private(set) var isEnding = false
    private(set) var isOver = false
    /// The first member that failed.
    private(set) var firstFailure: Int?

    init(inOrder isInOrder: Bool, stopsOnFailure: Bool) {
        (self.isInOrder, self.stopsOnFailure) = (isInOrder, stopsOnFailure)
    }

    var count: Int { stages.count }

    /// The group begins with so many members.
    mutating func begin(_ count: Int) -> [Action] {
        stages = Array(repeating: .waiting, count: count)
        return advance()
    }

    /// Another member comes; nil where the group takes none any more.
    mutating func add() -> [Action]? {
        guard !isEnding, !isOver else { return nil }
        stages.append(.waiting)
        return advance()
    }

    /// A member has ended.
    /// - Parameter hasFailed: it has no value; one that was cancelled has none either.
    mutating func ended(_ member: Int, hasFailed: Bool) -> [Action] {
        guard stages[member] == .submitted else { return [] }
        stages[member] = .ended
        submitted -= 1
        guard hasFailed else { return advance() }
        if firstFailure == nil { firstFailure = member }
        // A group that was cancelled stays so, whatever its members say then.
        if state == .running { state = .failed }
        guard stopsOnFailure, !isEnding else { return advance() }
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
        return stages.indices.filter { stages[$0] == .submitted }.map { .cancel($0) } + advance()
    }

    private mutating func advance() -> [Action] {
        var actions: [Action] = []
        while !isEnding, next < stages.count, !isInOrder || submitted == 0 {
            stages[next] = .submitted
            submitted += 1
            actions.append(.submit(next))
            next += 1
        }
        guard !isOver, submitted == 0 else { return actions }
        isOver = true
        if state == .running { state = .done }
        return actions + [.finish]
    }
}
