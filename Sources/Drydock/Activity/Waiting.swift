// Waiting: for work on a loop, for a task that goes on when the one who waits leaves, and for a time of a clock of any
// kind.

import EventLoop
import Synchronization

/// Work on a loop, as something that can be cancelled from any thread, also before it has begun.
///
/// Sendable: its state is under a mutex.
final class LoopWork: Sendable {
    private struct State {
        var task: Task<Void, Never>?
        var isCancelled = false
    }

    private let state = Mutex(State())

    func cancel() {
        let task = state.withLock { state in
            state.isCancelled = true
            return state.task
        }
        task?.cancel()
    }

    fileprivate func began(as task: Task<Void, Never>) {
        let isCancelled = state.withLock { state in
            state.task = task
            return state.isCancelled
        }
        if isCancelled { task.cancel() }
    }
}

extension EventLoop {
    /// Runs `work` as a task on the loop and waits for it; the caller's cancellation reaches it.
    /// - Parameter onStart: has the work before anybody waits for it.
    nonisolated func perform<Value: Sendable>(
        onStart: (LoopWork) -> Void = { _ in },
        _ work: @escaping @Sendable (isolated EventLoop) async -> Value
    ) async -> Value {
        let handle = LoopWork()
        onStart(handle)
        return await withTaskCancellationHandler {
            // The caller is woken once, with the value.
            await withUnsafeContinuation { (caller: UnsafeContinuation<Value, Never>) in
                submit { loop in
                    let task = Task.immediate(executorPreference: loop.taskExecutor) {
                        caller.resume(returning: await work(loop))
                    }
                    handle.began(as: task)
                }
            }
        } onCancel: {
            handle.cancel()
        }
    }
}

// MARK: - Tasks

extension Task where Failure == Never {
    /// The task's value; nil if the caller is cancelled, while the task goes on for others.
    package func valueUnlessCancelled() async -> Success? {
        let (answers, continuation) = AsyncStream.makeStream(of: Success.self)
        let relay = Task<Void, Never> {
            continuation.yield(await value)
            continuation.finish()
        }
        defer { relay.cancel() }
        // A stream ends when the task that waits for it is cancelled, which a task's value does not.
        for await answer in answers { return answer }
        return nil
    }
}

// MARK: - Clocks

/// Sendable: it holds nothing that changes.
package struct Timepiece: Sendable {
    /// How long ago it was made.
    package let now: @Sendable () -> Duration
    /// Waits until it was made so long ago.
    /// - Throws: `CancellationError`.
    package let sleep: @Sendable (_ until: Duration) async throws -> Void

    package init(_ clock: some Clock<Duration>) {
        let start = clock.now
        now = { start.duration(to: clock.now) }
        sleep = { offset in try await clock.sleep(until: start.advanced(by: offset), tolerance: nil) }
    }
}
