// Shared state with a lock and a bounded wait: what every thread of the test support meets at.

import Foundation

/// A value under a lock that other threads can wait on.
///
/// Safe from any thread; never wait on it from an event loop.
package final class Monitor<State>: @unchecked Sendable {
    // `state` is only touched while `condition` is locked, which makes the unchecked conformance hold.
    private let condition = NSCondition()
    private var state: State

    package init(_ state: State) {
        self.state = state
    }

    /// Runs `body` with the state, alone, and wakes everybody who waits for a change.
    @discardableResult
    package func update<Result>(_ body: (inout State) throws -> Result) rethrows -> Result {
        condition.lock()
        defer {
            condition.broadcast()
            condition.unlock()
        }
        return try body(&state)
    }

    /// Runs `body` with the state, alone; nobody is woken.
    package func read<Result>(_ body: (State) throws -> Result) rethrows -> Result {
        condition.lock()
        defer { condition.unlock() }
        return try body(state)
    }

    /// Blocks until `condition` holds for the state or `seconds` have passed; says whether it holds.
    @discardableResult
    package func wait(_ seconds: Double, until holds: (State) -> Bool) -> Bool {
        let limit = Date(timeIntervalSinceNow: seconds)
        condition.lock()
        defer { condition.unlock() }
        while !holds(state) {
            if !condition.wait(until: limit) { return holds(state) }
        }
        return true
    }
}

/// A door that stays open once opened; origins wait at it in the middle of an answer.
package final class Gate: Sendable {
    private let isOpen = Monitor(false)

    package init() {}

    /// Lets everybody through, now and later.
    package func open() {
        isOpen.update { $0 = true }
    }

    /// Whether it was opened.
    package var isOpened: Bool { isOpen.read { $0 } }

    /// Blocks until the gate is open; `false` when `seconds` (default 120) passed first.
    @discardableResult
    package func wait(seconds: Double = 120) -> Bool {
        isOpen.wait(seconds) { $0 }
    }
}

/// A number that threads raise and others wait for.
package final class Counter: Sendable {
    private let count = Monitor(0)

    package init() {}

    package var value: Int { count.read { $0 } }

    package func add(_ amount: Int = 1) {
        count.update { $0 += amount }
    }

    /// Blocks until the count is at least `goal`; `false` when `seconds` (default 120) passed first.
    @discardableResult
    package func wait(for goal: Int, seconds: Double = 120) -> Bool {
        count.wait(seconds) { $0 >= goal }
    }
}

/// A clock that stands still until it is told to move, for rooms that take a `now`.
package struct FakeClock: Sendable {
    /// Unix seconds.
    package private(set) var now: Int64

    package init(now: Int64 = 1_800_000_000) {
        self.now = now
    }

    /// Moves the clock by `seconds`, backwards when negative.
    package mutating func advance(by seconds: Int64) {
        now += seconds
    }
}
