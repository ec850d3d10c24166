// Lets tiers look every few seconds whether they keep to their limits, and whether what they need is still there.

package import EventLoop

/// Sendable: see `timer`.
package final class TierWatch: @unchecked Sendable {  // `timer` is touched on the loop only that both methods run on
    /// Nanoseconds between two checks.
    package static let interval: UInt64 = 10_000_000_000
    private var timer: LoopTimer?

    package init() {}

    /// - Parameter tend: called every few seconds, on the loop.
    package func start(
        every interval: UInt64 = interval,
        on loop: isolated EventLoop,
        _ tend: @escaping @Sendable () -> Void
    ) {
        let timer = LoopTimer(on: loop) { tend() }
        timer.start(every: interval)
        self.timer = timer
    }

    /// Before the loop ends.
    package func stop(on loop: isolated EventLoop) { timer = nil }
}
