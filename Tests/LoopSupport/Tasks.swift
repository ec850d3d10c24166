// Tasks on loops, begun so that a test knows how far they have come.

package import EventLoop

/// Runs `body` as a task on `loop`, and returns it when it has come to its first wait: what it did until then is done,
/// so that another task, or a cancellation, comes after it however busy the machine is.
package func begin<R: Sendable>(
    on loop: EventLoop,
    _ body: @escaping @Sendable (isolated EventLoop) async -> R
) async -> Task<R, Never> {
    await withCheckedContinuation { done in
        loop.submit { loop in
            loop.holdNextTask()
            let task = Task.immediate(executorPreference: loop.taskExecutor) { await body(loop) }
            loop.runHeldTask()
            done.resume(returning: task)
        }
    }
}

/// Runs `body` as a task on `loop` and waits for it.
package func onLoop<R: Sendable>(
    _ loop: EventLoop,
    _ body: @escaping @Sendable (isolated EventLoop) async -> R
) async -> R { await begin(on: loop, body).value }
