// Work on a loop for a task that is not there.

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
