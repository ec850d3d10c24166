// Waiting for a task that goes on when the one who waits leaves.

extension Task where Failure == Never {
    /// Nil where the caller is cancelled; the task goes on for others.
    func valueUnlessCancelled() async -> Success? {
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
