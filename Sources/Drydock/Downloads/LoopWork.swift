// Work on a loop for a task that is not there.

import EventLoop

extension EventLoop {
    /// Runs `work` as a task on the loop and waits for it; the caller's cancellation reaches it.
    /// - Parameter onStart: has the task before anybody waits for it.
    nonisolated func perform<Value: Sendable>(
        onStart: (Task<Value, Never>) -> Void = { _ in },
        _ work: @escaping @Sendable (isolated EventLoop) async -> Value
    ) async -> Value {
        let task = await withUnsafeContinuation { (started: UnsafeContinuation<Task<Value, Never>, Never>) in
            submit { loop in
                started.resume(
                    returning: Task.immediate(executorPreference: loop.taskExecutor) { await work(loop) }
                )
            }
        }
        onStart(task)
        return await withTaskCancellationHandler {
            await task.value
        } onCancel: {
            task.cancel()
        }
    }
}
