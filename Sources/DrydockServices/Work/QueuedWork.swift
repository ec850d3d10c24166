// One task of a queue: its attempts, its state for whoever wants to know, and its end, which it has once.

public import Drydock
import HTTPTypes
import Synchronization

/// A task of a ``WorkQueue``, which ``WorkQueue/add(_:)`` has made.
///
/// It runs once: it has begun when the program gets it, and there is nothing that would begin it again. Any thread may
/// use it.
public final class QueuedWork<Success: Sendable>: Sendable, QueueMember {
    private struct Content {
        var state = WorkState(.queued)
        /// The work of the task; nil once it has ended.
        var work: Work<Success>?
        var end: Result<Success, WorkError>?
        var onEnd: (@Sendable (Result<Success, WorkError>) -> Void)?
        /// What runs for it: an attempt, or the wait for a retry.
        var running: Task<Void, Never>?
        /// The number of that one; a greater one began later.
        var step = 0
    }

    /// Its ``Work/name``.
    public let name: String
    /// Who gets the next slot.
    public let priority: DownloadOptions.Priority
    private let method: HTTPRequest.Method
    private let id: UInt64
    private let queue: WorkQueue
    /// Protects what it holds; listeners are rung, and tasks cancelled, outside of it.
    private let content: Mutex<Content>
    private let news = Broadcast(replaying: WorkState(.queued))

    init(
        _ work: Work<Success>,
        _ id: UInt64,
        _ queue: WorkQueue,
        _ onEnd: @escaping @Sendable (Result<Success, WorkError>) -> Void
    ) {
        (name, priority, method) = (work.name, work.priority, work.method)
        (self.id, self.queue) = (id, queue)
        content = Mutex(Content(work: work, onEnd: onEnd))
    }

    // MARK: - For programs

    /// The state that the task has.
    public var state: WorkState { content.withLock { $0.state } }

    /// The states of the task: the one that it has, and then each that it comes to, up to its end. A listener that is
    /// slow misses the oldest of more than 64.
    public var states: some AsyncSequence<WorkState, Never> & Sendable {
        let news = news
        return MailboxSequence { news.listen(limit: 64) }
    }

    /// Waits for the end. A task that is cancelled meanwhile leaves this one alone; ``WorkQueue/run(_:)`` is for those
    /// who want the contrary.
    /// - Throws: `WorkError`: why there is no value; ``WorkError/cancelled`` where it or the waiting task was
    ///   cancelled.
    public var value: Success {
        get async throws(WorkError) {
            for await _ in states {}
            guard let end = content.withLock({ $0.end }) else { throw .cancelled }
            return try end.get()
        }
    }

    /// Ends it, wherever it is: one that waits, for its turn or for a retry, never runs again. One that runs is cancelled
    /// as a Swift task is, and its slot is free at once; what its closure returns all the same is dropped.
    /// - Returns: whether it had not ended before.
    @discardableResult
    public func cancel() -> Bool { end(.failure(.cancelled)) }

    // MARK: - Attempts

    func start() {
        let begun = content.withLock { content -> (Work<Success>, Int, Broadcast<WorkState>.Delivery)? in
            guard content.end == nil, let work = content.work else { return nil }
            content.step += 1
            // The error of the last attempt goes on with it, so that nothing is released here.
            let old = content.state
            content.state = WorkState(.running, attempts: old.attempts + 1, error: old.error)
            return (work, content.step, news.put(content.state))
        }
        guard let (work, step, delivery) = begun else { return queue.closureReturned() }
        delivery.carryOut()
        if step == 1, let share = work.retry.budget { queue.earnRetries(share) }
        let attempt = Task {
            do {
                end(.success(try await work.perform()))
            } catch {
                failed(error, work)
            }
            queue.closureReturned()
        }
        keep(attempt, step)
    }

    private func failed(_ error: any Error, _ work: Work<Success>) {
        let attempts = content.withLock { $0.state.attempts }
        if error.isCancellation {
            end(.failure(.cancelled))
        } else if let delay = work.retry.delay(
            after: error,
            attempt: attempts,
            method: work.method,
            path: work.name,
            cause: work.retryCause?(error)
        ) {
            if work.retry.budget != nil, let refusal = queue.refusesRetry() {
                queue.journal.refused(name, method, attempts: attempts, error, refusal)
                return _ = end(.failure(.failed(error.withoutRetry)))
            }
            queue.journal.repeats(name, method, attempts: attempts, error, in: delay)
            wait(delay, error)
        } else {
            end(.failure(.failed(error)))
        }
    }

    /// Waits for a retry, without a slot.
    private func wait(_ delay: Duration, _ error: any Error) {
        let due = queue.time.now() + delay
        let begun = content.withLock { content -> (Int, WorkState, Broadcast<WorkState>.Delivery)? in
            guard content.end == nil else { return nil }
            content.step += 1
            let old = content.state
            content.state = WorkState(
                .waitingForRetry,
                attempts: old.attempts,
                error: error,
                retryDelay: delay
            )
            return (content.step, old, news.put(content.state))
        }
        guard let (step, old, delivery) = begun else { return }
        queue.wait(id)
        withExtendedLifetime(old) { delivery.carryOut() }
        let alarm = Task {
            do { try await queue.time.sleep(due) } catch { return }
            isDue()
        }
        keep(alarm, step)
    }

    /// Lets the task, which has waited for its retry, queue for a slot.
    private func isDue() {
        let delivery = content.withLock { content -> Broadcast<WorkState>.Delivery? in
            guard content.end == nil else { return nil }
            // The error goes on with it, so that nothing is released here.
            content.state = WorkState(.queued, attempts: content.state.attempts, error: content.state.error)
            return news.put(content.state)
        }
        guard let delivery else { return }
        delivery.carryOut()
        queue.due(id)
    }

    /// Keeps what runs for it, so that it can be cancelled; cancels it where it has ended meanwhile.
    private func keep(_ task: Task<Void, Never>, _ step: Int) {
        let (isOver, old) = content.withLock { content -> (Bool, Task<Void, Never>?) in
            // An attempt may be over, and the next step begun, before anybody has kept it.
            guard content.step == step else { return (false, nil) }
            if content.end != nil { return (true, nil) }
            defer { content.running = task }
            return (false, content.running)
        }
        withExtendedLifetime(old) { if isOver { task.cancel() } }
    }

    /// Ends it once: its slot is free before anybody hears of it.
    @discardableResult
    func end(_ result: Result<Success, WorkError>) -> Bool {
        let taken = content.withLock { content -> (Content, Broadcast<WorkState>.Delivery)? in
            guard content.end == nil else { return nil }
            let old = content
            content = Content(state: old.state.end(result), end: result, step: old.step)
            return (old, news.put(content.state, isLast: true))
        }
        guard let (old, delivery) = taken else { return false }
        // Before the next task begins, and before whoever waits for this one goes on and ends another: the queue tells of
        // ends in their order.
        queue.leave(id, telling: WorkEnd(name: name, method: method, state: old.state.end(result), result: result))
        if case .failure(.cancelled) = result { old.running?.cancel() }
        delivery.carryOut()
        old.onEnd?(result)
        return true
    }
}

extension WorkState {
    /// The state of one that ends so.
    fileprivate func end<Value>(_ result: Result<Value, WorkError>) -> WorkState {
        switch result {
        case .success: WorkState(.done, attempts: attempts)
        case .failure(.cancelled): WorkState(.cancelled, attempts: attempts, error: error)
        case .failure(.closed): WorkState(.failed, attempts: attempts, error: WorkError.closed)
        case .failure(.failed(let error)): WorkState(.failed, attempts: attempts, error: error)
        }
    }
}

extension Error {
    /// What was done was cancelled, and has not failed.
    fileprivate var isCancellation: Bool {
        switch self {
        case is CancellationError: true
        case let error as DownloadError: error == .cancelled
        case let error as ServiceError: if case .cancelled = error { true } else { false }
        case let error as WorkError: if case .cancelled = error { true } else { false }
        default: false
        }
    }
}
