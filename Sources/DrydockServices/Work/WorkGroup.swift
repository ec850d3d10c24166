// Work that belongs together, one after the other or all at once.

import Synchronization

/// Work that belongs together: in a row, or at once, until all of it is done or a part of it fails.
///
/// ```swift
/// let group = WorkGroup([login, profile, photos], inOrder: true)
/// let values = try await group.values
/// ```
///
/// A group has begun when the program gets it, and runs once: there is nothing that would begin it again. It goes on
/// whether anybody holds it or not. Members may be added until it has ended. Any thread may use it.
public final class WorkGroup<Success: Sendable>: Sendable {
    private struct Member {
        /// The work of the member; nil once it is in the queue.
        var work: Work<Success>?
        var task: QueuedWork<Success>?
        var result: Result<Success, WorkError>?
    }

    private struct Content {
        var machine: GroupMachine
        var members: [Member]
        /// What is to be done, in order; somebody does it where ``isBusy``.
        var actions: [GroupMachine.Action] = []
        var isBusy = false
        /// Where those who listen know it to be.
        var told = WorkState.Phase.running
    }

    /// Whether each member begins once the one before it has succeeded; else all are given to the queue at once.
    public let isInOrder: Bool
    private let queue: WorkQueue
    /// Protects what it holds; the queue is told outside of it.
    private let content: Mutex<Content>
    private let news = Broadcast(replaying: WorkState.Phase.running)

    /// A group that begins at once. One without work has ended at once.
    /// - Parameters:
    ///   - works: the members, in their order.
    ///   - isInOrder: each begins once the one before it has succeeded; else all are given to the queue at once, which has
    ///     a limit of its own.
    ///   - stopsOnFailure: a member that fails, or is cancelled from outside, ends the group: those that have begun are
    ///     cancelled, and no other one begins. True by default; with false the others go on, and one that follows begins
    ///     all the same.
    ///   - queue: who runs them; ``WorkQueue/shared`` by default.
    public init(
        _ works: [Work<Success>],
        inOrder isInOrder: Bool,
        stopsOnFailure: Bool = true,
        queue: WorkQueue = .shared
    ) {
        self.isInOrder = isInOrder
        self.queue = queue
        content = Mutex(
            Content(
                machine: GroupMachine(inOrder: isInOrder, stopsOnFailure: stopsOnFailure),
                members: works.map { Member(work: $0) }
            )
        )
        perform { $0.begin(works.count) }
    }

    // MARK: - For programs

    /// Adds a member behind the others.
    /// - Returns: false, and nothing is added, where the group has ended, or is ending after a failure.
    @discardableResult
    public func add(_ work: Work<Success>) -> Bool {
        var isAdded = false
        perform(adding: work) { machine in
            let actions = machine.add()
            isAdded = actions != nil
            return actions
        }
        return isAdded
    }

    /// Ends the group: members that have begun are cancelled, and no other one begins. Nothing happens where it has
    /// ended.
    public func cancel() { perform { $0.cancel() } }

    /// Where the group is.
    public var state: WorkState.Phase { content.withLock { $0.machine.state } }

    /// Where the group is, and then where it comes to, up to its end: whoever listens late is told the latest state first.
    public var states: some AsyncSequence<WorkState.Phase, Never> & Sendable {
        let news = news
        return MailboxSequence { news.listen(limit: 8) }
    }

    /// How many members there are.
    public var count: Int { content.withLock { $0.members.count } }

    /// The members that are in the queue, in their order: at most one where ``isInOrder`` is set.
    public var tasks: [QueuedWork<Success>] { content.withLock { $0.members.compactMap(\.task) } }

    /// Waits for the end, and says what has become of each member, in the order in which they were added; nil for one that
    /// never began. A task that is cancelled meanwhile gets what has by then.
    public var results: [Result<Success, WorkError>?] {
        get async {
            for await _ in states {}
            return content.withLock { $0.members.map(\.result) }
        }
    }

    /// The error of the member that failed first; nil where none has failed so far.
    public var firstError: WorkError? { content.withLock { Self.firstError(of: $0) } }

    /// The error of the member that failed first.
    private static func firstError(of content: Content) -> WorkError? {
        let failed = content.machine.firstFailure.flatMap { content.members[$0].result }
        guard case .failure(let first) = failed else { return nil }
        return first
    }

    /// Waits for the end, and returns the values of all members in their order. A task that is cancelled meanwhile leaves
    /// the group alone.
    /// - Throws: `WorkError`: the error of the member that failed first; ``WorkError/cancelled`` where the group
    ///   or the waiting task was cancelled.
    public var values: [Success] {
        get async throws(WorkError) {
            let results = await results
            if state == .cancelled { throw .cancelled }
            if let firstError { throw firstError }
            var values: [Success] = []
            for result in results {
                guard let result else { throw .cancelled }
                values.append(try result.get())
            }
            return values
        }
    }

    // MARK: - Members

    private func ended(_ index: Int, _ result: Result<Success, WorkError>) {
        var hasFailed = false
        if case .failure = result { hasFailed = true }
        let old = content.withLock { content in
            defer { content.members[index].task = nil }
            content.members[index].result = result
            return content.members[index].task
        }
        withExtendedLifetime(old) { perform { $0.ended(index, hasFailed: hasFailed) } }
    }

    /// Tells the machine of an event, and does what it says. One thread at a time does; what comes meanwhile, it does
    /// too, so that members that end at once do not pile up on a stack.
    /// - Parameters:
    ///   - work: that of a member that comes with the event.
    ///   - event: nil where it is none.
    private func perform(adding work: Work<Success>? = nil, _ event: (inout GroupMachine) -> [GroupMachine.Action]?) {
        let (isMine, delivery) = content.withLock { content -> (Bool, Broadcast<WorkState.Phase>.Delivery?) in
            guard let actions = event(&content.machine) else { return (false, nil) }
            if let work { content.members.append(Member(work: work)) }
            content.actions += actions
            defer { content.isBusy = true }
            // A group that has failed or is cancelled may have members that have not ended.
            let state = content.machine.state
            guard state != content.told else { return (!content.isBusy, nil) }
            content.told = state
            return (!content.isBusy, news.put(state))
        }
        delivery?.carryOut()
        guard isMine else { return }
        while let actions = take() {
            for action in actions { perform(action) }
        }
    }

    /// What is to be done; nil, and nobody is busy any more, where there is nothing.
    private func take() -> [GroupMachine.Action]? {
        content.withLock { content in
            if content.actions.isEmpty {
                content.isBusy = false
                return nil
            }
            defer { content.actions = [] }
            return content.actions
        }
    }

    private func perform(_ action: GroupMachine.Action) {
        switch action {
        case .submit(let index): submit(index)
        case .cancel(let index): _ = content.withLock { $0.members[index].task }?.cancel()
        case .finish:
            let (state, count, error) = content.withLock { content in
                (content.machine.state, content.members.count, Self.firstError(of: content))
            }
            queue.journal.groupEnded(state, members: count, error)
            news.finish()
        }
    }

    private func submit(_ index: Int) {
        let work = content.withLock { content in
            defer { content.members[index].work = nil }
            return content.members[index].work
        }
        guard let work else { return }
        let task = queue.add(work) { result in self.ended(index, result) }
        content.withLock { content in
            if content.members[index].result == nil { content.members[index].task = task }
        }
    }
}
