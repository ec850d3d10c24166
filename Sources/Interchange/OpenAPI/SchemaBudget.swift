// What the checks of one request may take together: steps, and the time of the thread.

import Matching

/// For the length of one check, on one thread. What goes beyond it is not known to be right.
package final class SchemaBudget {
    /// Values and schemas that are compared, and pieces of 16 bytes of a text.
    private static let mostSteps = 100_000
    /// Nanoseconds of the thread's time. A check is on a loop, which has other clients.
    package static let mostTime: UInt64 = 10_000_000
    /// How many steps are taken between two looks at the clock.
    private static let stride = 64

    private let time: UInt64
    /// By the clock of the thread's time; nil before the first step.
    private var end: UInt64?
    private var steps = 0
    private var nextLook = 0
    package private(set) var isOver = false

    /// - Parameter time: nanoseconds of the thread's time, from the first step on.
    package init(time: UInt64 = mostTime) { self.time = time }

    /// Counts steps before they are taken.
    /// - Returns: false where they must not be taken.
    func take(_ count: Int = 1) -> Bool {
        guard !isOver else { return false }
        steps += count
        if steps > Self.mostSteps {
            isOver = true
        } else if steps >= nextLook {
            nextLook = steps + Self.stride
            isOver = timeLeft == 0
        }
        return !isOver
    }

    func giveUp() { isOver = true }

    /// Nanoseconds that are left.
    var timeLeft: UInt64 {
        let now = Pattern.threadTime()
        let (sum, overflow) = now.addingReportingOverflow(time)
        let end = self.end ?? (overflow ? .max : sum)
        self.end = end
        return now < end ? end - now : 0
    }
}

@available(*, unavailable) extension SchemaBudget: Sendable {}
