// A clock that goes on when a test says so, so that waits are tested without waiting.

import Synchronization

/// A clock whose time a test advances.
///
/// Who sleeps on it waits until ``advance(by:)`` has brought the time there. A test lets the others come to their sleep
/// with ``waitForSleepers(_:)``, and advances then, so that nothing depends on how fast the machine is:
///
/// ```swift
/// let clock = ManualClock()
/// let task = Task { try await clock.sleep(for: .seconds(3)) }
/// try await clock.waitForSleepers(1)
/// clock.advance(by: .seconds(3))
/// try await task.value
/// ```
///
/// Any thread may use it.
public final class ManualClock: Clock {
    /// A time of such a clock.
    public struct Instant: InstantProtocol {
        /// How long after the beginning of the clock it is.
        public let offset: Duration

        /// The time that is so long after the beginning.
        public init(offset: Duration = .zero) { self.offset = offset }

        /// The time that is so much later.
        public func advanced(by duration: Duration) -> Instant { Instant(offset: offset + duration) }

        /// How much later the other time is.
        public func duration(to other: Instant) -> Duration { other.offset - offset }

        /// Whether a time is before another one.
        public static func < (lhs: Instant, rhs: Instant) -> Bool { lhs.offset < rhs.offset }
    }

    private struct Sleeper {
        let deadline: Instant
        let continuation: CheckedContinuation<Void, any Error>
    }

    private struct Watcher {
        let count: Int
        let continuation: CheckedContinuation<Void, any Error>
    }

    private struct State {
        var now = Instant()
        /// Numbers of sleepers and watchers, in the order in which they came.
        var next: UInt64 = 0
        var sleepers: [UInt64: Sleeper] = [:]
        /// The callers that wait for others to sleep.
        var watchers: [UInt64: Watcher] = [:]

        /// Takes the watchers out that have seen enough.
        mutating func takeSatisfied() -> [Watcher] {
            let numbers = watchers.filter { $0.value.count <= sleepers.count }.keys.sorted()
            return numbers.compactMap { watchers.removeValue(forKey: $0) }
        }
    }

    private let state = Mutex(State())

    /// A clock at its beginning.
    public init() {}

    /// The time that the test has come to.
    public var now: Instant { state.withLock { $0.now } }

    /// A nanosecond.
    public var minimumResolution: Duration { .nanoseconds(1) }

    // MARK: - Sleeping

    /// Waits until the time has been advanced so far; returns at once where it has been already.
    /// - Parameters:
    ///   - deadline: the time to be waited for.
    ///   - tolerance: has no effect.
    /// - Throws: `CancellationError` as soon as the task is cancelled.
    public func sleep(until deadline: Instant, tolerance: Duration? = nil) async throws {
        let number = nextNumber()
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                // A task that is cancelled from here on is found in the table.
                let (isOver, isCancelled, seen) = state.withLock { state -> (Bool, Bool, [Watcher]) in
                    if Task.isCancelled { return (false, true, []) }
                    if deadline <= state.now { return (true, false, []) }
                    state.sleepers[number] = Sleeper(deadline: deadline, continuation: continuation)
                    return (false, false, state.takeSatisfied())
                }
                if isCancelled { continuation.resume(throwing: CancellationError()) }
                if isOver { continuation.resume() }
                for watcher in seen { watcher.continuation.resume() }
            }
        } onCancel: {
            state.withLock { $0.sleepers.removeValue(forKey: number) }?
                .continuation.resume(throwing: CancellationError())
        }
    }

    // MARK: - For a test

    /// How many sleep at this moment.
    public var sleeperCount: Int { state.withLock { $0.sleepers.count } }

    /// The earliest time that somebody waits for; nil where nobody sleeps.
    public var nextDeadline: Instant? { state.withLock { $0.sleepers.values.map(\.deadline).min() } }

    /// Brings the time forward, and wakes those whose time has come, the earliest first.
    /// - Parameter duration: not negative.
    public func advance(by duration: Duration) { advance { $0.advanced(by: duration) } }

    /// Brings the time to the one that is given, and wakes those whose time has come, the earliest first. An earlier
    /// time than ``now`` changes nothing.
    public func advance(to instant: Instant) { advance { _ in instant } }

    private func advance(_ target: (Instant) -> Instant) {
        let woken = state.withLock { state -> [Sleeper] in
            state.now = max(state.now, target(state.now))
            let due = state.sleepers.filter { $0.value.deadline <= state.now }
            for number in due.keys { state.sleepers[number] = nil }
            return due.sorted { ($0.value.deadline, $0.key) < ($1.value.deadline, $1.key) }.map(\.value)
        }
        for sleeper in woken { sleeper.continuation.resume() }
    }

    /// Waits until so many sleep at the same time, or more.
    /// - Throws: `CancellationError` as soon as the task is cancelled.
    public func waitForSleepers(_ count: Int = 1) async throws {
        let number = nextNumber()
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let (isSeen, isCancelled) = state.withLock { state -> (Bool, Bool) in
                    if Task.isCancelled { return (false, true) }
                    if state.sleepers.count >= count { return (true, false) }
                    state.watchers[number] = Watcher(count: count, continuation: continuation)
                    return (false, false)
                }
                if isCancelled { continuation.resume(throwing: CancellationError()) }
                if isSeen { continuation.resume() }
            }
        } onCancel: {
            state.withLock { $0.watchers.removeValue(forKey: number) }?
                .continuation.resume(throwing: CancellationError())
        }
    }

    private func nextNumber() -> UInt64 {
        state.withLock { state in
            state.next += 1
            return state.next
        }
    }
}
