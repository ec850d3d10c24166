// A queue of asynchronous work: so many at a time, the urgent first, and failures tried again.

import CoreMetrics
public import Drydock
public import Logging
import Policies
import ServiceCore
import Synchronization

/// Runs asynchronous work, so much of it at a time.
///
/// ```swift
/// let queue = TaskQueue(maximumRunning: 4)
/// let task = queue.add(Work("users", retry: .immediate(count: 2)) { try await manager.download(url) })
/// for await state in task.states { print(state.phase, state.attempts) }
/// let users = try await task.value
/// ```
///
/// Tasks get their slots in the order `high`, `normal`, `low`, and within a priority first come, first served. Of five in
/// a row at most four pass over those of a lower priority, so that nobody waits for ever. A task that waits for its retry
/// has no slot: the next one gets it, and the retry comes to the end of its priority.
///
/// A queue lives as long as one of its tasks does, whether anybody holds it or not. Any thread may use it.
public final class WorkQueue: Sendable {
    /// The queue for a whole program, without a limit. It should not be closed.
    public static let shared = WorkQueue()

    private struct State {
        var machine: QueueMachine
        var members: [UInt64: any QueueMember] = [:]
        var nextID: UInt64 = 0
        var isClosed = false
        /// Tasks that were started and have not come back, cancelled ones among them.
        var executing = 0
        /// The callers that wait for the last task to return.
        var waiters: [CheckedContinuation<Void, Never>] = []

        /// The tasks that get a slot. From here on the queue is not quiet before they have come back.
        mutating func starting(_ ids: [UInt64]) -> [any QueueMember] {
            let starting = ids.compactMap { members[$0] }
            executing += starting.count
            return starting
        }
    }

    /// Protects what it holds; members are told, and waiters resumed, outside of it.
    private let state: Mutex<State>
    private let budget = Mutex(RetryBudget())
    private let ends = Broadcast<AnyWorkEnd>()
    let time: Timepiece
    /// Counts and logs what becomes of tasks and groups.
    let journal: WorkJournal
    /// The count of the tasks that have not ended.
    private let counter = ActivityCounter()

    /// A queue without tasks.
    /// - Parameters:
    ///   - maximumRunning: as ``maximumRunning``; no limit by default.
    ///   - clock: what the waits before retries are measured by.
    ///   - logger: where the ends and retries of tasks, and the ends of groups, are told of, at `debug`; at `warning`
    ///     where the budget of retries is used up.
    public convenience init(
        maximumRunning: Int? = nil,
        clock: any Clock<Duration> = ContinuousClock(),
        logger: Logger = Logger(label: "drydock.tasks")
    ) {
        self.init(maximumRunning: maximumRunning, clock: clock, logger: logger, MetricsSystem.factory)
    }

    init(maximumRunning: Int?, clock: any Clock<Duration>, logger: Logger, _ factory: any MetricsFactory) {
        journal = WorkJournal(logger, factory)
        state = Mutex(State(machine: QueueMachine(limit: maximumRunning.map { max(0, $0) })))
        time = Timepiece(clock)
    }

    // MARK: - Adding

    /// Gives the queue something to do. It begins as soon as it has a slot.
    /// - Returns: the task that it has become. It runs whether anybody holds it or not. Of a queue that was closed it has
    ///   failed with ``WorkError/closed``.
    @discardableResult
    public func add<Success>(_ work: Work<Success>) -> QueuedWork<Success> { add(work) { _ in } }

    /// - Parameter onEnd: called once, on any thread.
    func add<Success>(
        _ work: Work<Success>,
        onEnd: @escaping @Sendable (Result<Success, WorkError>) -> Void
    ) -> QueuedWork<Success> {
        let id = state.withLock { state in
            state.nextID += 1
            return state.nextID
        }
        let task = QueuedWork(work, id, self, onEnd)
        let begun = state.withLock { state -> ([any QueueMember], ActivityCounter.Change)? in
            guard !state.isClosed else { return nil }
            state.members[id] = task
            let starts = state.machine.add(id, work.priority.urgency)
            return (state.starting(starts), counter.change(by: 1))
        }
        guard let (starts, change) = begun else {
            task.end(.failure(.closed))
            return task
        }
        change.tell()
        for member in starts { member.start() }
        return task
    }

    /// Does something, and waits for it. A task that is cancelled meanwhile cancels it.
    /// - Throws: `WorkError`.
    public func run<Success>(_ work: Work<Success>) async throws(WorkError) -> Success {
        let task = add(work)
        let result = await withTaskCancellationHandler { () -> Result<Success, WorkError> in
            do throws(WorkError) { return .success(try await task.value) } catch { return .failure(error) }
        } onCancel: {
            task.cancel()
        }
        return try result.get()
    }

    // MARK: - The whole queue

    /// How many tasks run at the same time at most; nil is any number. It may be changed at any time: a greater one lets
    /// waiting tasks begin at once, a smaller one lets those that run go on to their ends, and with 0 none begins.
    public var maximumRunning: Int? {
        get { state.withLock { $0.machine.maximum } }
        set { change { $0.setLimit(newValue.map { max(0, $0) }) } }
    }

    /// Tasks that have not ended, those that wait among them.
    public var count: Int { state.withLock { $0.machine.count } }

    /// Tasks that have a slot.
    public var runningCount: Int { state.withLock { $0.machine.running } }

    /// Tasks that wait for a slot. Those that wait for their retry are not among them.
    public var queuedCount: Int { state.withLock { $0.machine.queued } }

    /// Whether it has tasks that have not ended.
    public var activity: ActivityStream { ActivityStream(counters: [counter]) }

    /// What it has done so far, in one look.
    var statistics: WorkStatistics { journal.statistics }

    /// Tasks that have a value so far.
    public var doneCount: Int { statistics.done }

    /// Tasks that have failed so far, those among them that came to a closed queue.
    public var failedCount: Int { statistics.failed }

    /// Tasks that were cancelled so far.
    public var cancelledCount: Int { statistics.cancelled }

    /// Attempts after the first ones so far.
    public var retries: Int { statistics.retries }

    /// Retries that were due so far, and for which the budget had none left.
    public var refusedRetries: Int { statistics.refusedRetries }

    /// Groups that have ended so far, however they did.
    public var groupCount: Int { statistics.groups }

    /// Cancels every task that has not ended.
    /// - Returns: how many there were.
    @discardableResult
    public func cancelAll() -> Int {
        // Those without a slot first: none of them is to begin because another one leaves.
        let (members, running) = state.withLock { state in
            let isRunning = Dictionary(grouping: state.members) { state.machine.isRunning($0.key) }
            return (isRunning[false]?.map(\.value) ?? [], isRunning[true]?.map(\.value) ?? [])
        }
        return (members + running).count { $0.cancel() }
    }

    /// Takes no further task, cancels every task, and returns when the last closure has returned. A closure of the queue
    /// that waits for this would wait for itself.
    public func close() async {
        state.withLock { $0.isClosed = true }
        cancelAll()
        await withCheckedContinuation { waiter in
            let isQuiet = state.withLock { state in
                if state.executing > 0 { state.waiters.append(waiter) }
                return state.executing == 0
            }
            if isQuiet { waiter.resume() }
        }
        ends.finish()
    }

    // MARK: - Listening

    /// The ends of tasks, from now on, until the queue is closed; they are heard once.
    /// Whoever is slow misses the oldest of more than 256.
    /// - Parameter name: of the ones that are meant; nil, the default, means all of them.
    public func ends(named name: String? = nil) -> some AsyncSequence<WorkEnd<any Sendable>, Never> & Sendable {
        let mailbox = ends.listen(limit: Self.maximumUnheard) { name == nil || $0.name == name }
        return MailboxSequence { mailbox }.map { @Sendable end in end.untyped }
    }

    /// As ``ends(named:)``, of the tasks that load an endpoint (``Work/init(_:from:priority:retry:)``).
    /// - Parameter endpoint: its location without a query, and its method, say which tasks are meant, whatever their
    ///   parameters are.
    public func ends(at endpoint: Endpoint) -> some AsyncSequence<WorkEnd<any Sendable>, Never> & Sendable {
        let (name, method) = (String(endpoint.path), endpoint.method)
        let mailbox = ends.listen(limit: Self.maximumUnheard) { $0.name == name && $0.method == method }
        return MailboxSequence { mailbox }.map { @Sendable end in end.untyped }
    }

    /// The ends of the tasks that have values of a type, as ``ends(named:)`` has those with a name.
    /// - Parameters:
    ///   - type: exactly this one.
    ///   - name: of the ones that are meant; nil, the default, means all of them.
    public func ends<Value: Sendable>(
        of type: Value.Type,
        named name: String? = nil
    ) -> some AsyncSequence<WorkEnd<Value>, Never> & Sendable {
        let mailbox = ends.listen(limit: Self.maximumUnheard) { end in
            end.isOf(type) && (name == nil || end.name == name)
        }
        return MailboxSequence { mailbox }.compactMap { @Sendable end in end.typed(type) }
    }

    private static let maximumUnheard = 256

    // MARK: - For tasks

    /// A task has ended.
    func leave<Value>(_ id: UInt64, telling end: WorkEnd<Value>) {
        let (member, starts, change) = state.withLock { state in
            let member = state.members.removeValue(forKey: id)
            let starts = state.machine.leave(id)
            return (member, state.starting(starts), member.map { _ in counter.change(by: -1) })
        }
        tell(end)
        for member in starts { member.start() }
        withExtendedLifetime(member) { change?.tell() }
    }

    /// A task waits for its retry.
    func wait(_ id: UInt64) { change { $0.wait(id) } }

    /// A task has waited for its retry.
    func due(_ id: UInt64) { change { $0.due(id) } }

    /// A task that was started has come back: its closure has returned, or it had ended before.
    func closureReturned() {
        let waiters = state.withLock { state -> [CheckedContinuation<Void, Never>] in
            state.executing -= 1
            guard state.executing == 0 else { return [] }
            defer { state.waiters = [] }
            return state.waiters
        }
        for waiter in waiters { waiter.resume() }
    }

    /// A first attempt is made, which earns a share of a retry.
    func earnRetries(_ share: Double) {
        let now = time.now().wholeNanoseconds + 1
        budget.withLock { $0.earn(share, now: now) }
    }

    /// Takes a retry out of the budget of the queue.
    /// - Returns: nil where there was one to take.
    func refusesRetry() -> RetryBudget.Refusal? {
        let now = time.now().wholeNanoseconds + 1
        return budget.withLock { $0.refuses(now: now) }
    }

    private func tell<Value>(_ end: WorkEnd<Value>) {
        journal.ended(end)
        ends.put(AnyWorkEnd(end)).carryOut()
    }

    private func change(_ event: (inout QueueMachine) -> [UInt64]) {
        let starts = state.withLock { state in
            let starts = event(&state.machine)
            return state.starting(starts)
        }
        for member in starts { member.start() }
    }
}

/// A task of a queue, whatever its value is.
protocol QueueMember: AnyObject, Sendable {
    /// It has a slot.
    func start()
    /// - Returns: whether it had not ended before.
    @discardableResult
    func cancel() -> Bool
}

// MARK: - Whose turn it is

/// A task is queued, running, or waits for its retry. One that waits has no slot, and comes back to the end of its
/// priority. What it is told of a task that has left changes nothing.
struct QueueMachine {
    typealias ID = UInt64

    private enum Phase: Equatable {
        /// - `ticket`: its number in the queue, which nobody has twice.
        case queued(ticket: UInt64)
        case running
        case waiting
    }

    private struct Entry {
        var phase: Phase
        let priority: FetchPriority
    }

    private var entries: [ID: Entry] = [:]
    private var queue = AdmissionQueue<ID>()
    private var nextTicket: UInt64 = 0
    /// Tasks that have a slot.
    private(set) var running = 0
    /// How many may have one; nil: any number.
    private var limit: Int?

    init(limit: Int?) { self.limit = limit }

    /// Tasks that have not left.
    var count: Int { entries.count }
    /// Tasks that wait for a slot.
    var queued: Int { queue.count }
    var maximum: Int? { limit }

    func isRunning(_ id: ID) -> Bool { entries[id]?.phase == .running }

    // MARK: - Events; each returns whom to start, in order.

    mutating func add(_ id: ID, _ priority: FetchPriority) -> [ID] {
        entries[id] = Entry(phase: .waiting, priority: priority)
        return enqueue(id)
    }

    /// A task has ended, or was cancelled wherever it was.
    mutating func leave(_ id: ID) -> [ID] {
        switch entries.removeValue(forKey: id)?.phase {
        case .queued(let ticket): _ = queue.remove(ticket)
        case .running: running -= 1
        case .waiting, nil: break
        }
        return starts()
    }

    /// A task that ran has failed, and waits for its retry.
    mutating func wait(_ id: ID) -> [ID] {
        guard entries[id]?.phase == .running else { return [] }
        entries[id]?.phase = .waiting
        running -= 1
        return starts()
    }

    /// A task has waited long enough.
    mutating func due(_ id: ID) -> [ID] {
        guard entries[id]?.phase == .waiting else { return [] }
        return enqueue(id)
    }

    mutating func setLimit(_ limit: Int?) -> [ID] {
        self.limit = limit
        return starts()
    }

    private mutating func enqueue(_ id: ID) -> [ID] {
        guard let priority = entries[id]?.priority else { return [] }
        nextTicket += 1
        entries[id]?.phase = .queued(ticket: nextTicket)
        queue.append(nextTicket, id, priority)
        return starts()
    }

    private mutating func starts() -> [ID] {
        var starts: [ID] = []
        while running < limit ?? .max, let id = queue.popFirst() {
            entries[id]?.phase = .running
            running += 1
            starts.append(id)
        }
        return starts
    }
}
