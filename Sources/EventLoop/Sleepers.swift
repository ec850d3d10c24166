// The tasks of one loop that wait for a time.

/// Loop-bound: the actor that owns it is its only user.
final class Sleepers {
    private struct Sleeper {
        let timer: LoopTimer
        let waiter: UnsafeContinuation<Void, any Error>
    }

    private var sleepers: [UInt64: Sleeper] = [:]
    private var last: UInt64 = 0

    func nextIdentifier() -> UInt64 {
        last += 1
        return last
    }

    func add(_ id: UInt64, timer: LoopTimer, _ waiter: UnsafeContinuation<Void, any Error>) {
        sleepers[id] = Sleeper(timer: timer, waiter: waiter)
    }

    func start(_ id: UInt64, after nanoseconds: UInt64) { sleepers[id]?.timer.start(after: nanoseconds) }

    /// Resumes the waiter once; later calls for the same identifier do nothing.
    func wake(_ id: UInt64, result: Result<Void, any Error>) {
        guard let sleeper = sleepers.removeValue(forKey: id) else { return }
        sleeper.timer.cancel()
        sleeper.waiter.resume(with: result)
    }
}

@available(*, unavailable) extension Sleepers: Sendable {}
