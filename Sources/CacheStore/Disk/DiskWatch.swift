// Looks every few seconds whether the disk tier's file system still has what is to stay free there, and whether the folder is whole.

package import EventLoop

/// Sendable: see `timer`.
package final class DiskWatch: @unchecked Sendable {  // `timer` is touched on the loop only that both methods run on
    /// Nanoseconds between two looks.
    package static let interval: UInt64 = 10_000_000_000
    private var timer: LoopTimer?

    package init() {}

    package func start(_ disk: DiskTier, every interval: UInt64 = interval, on loop: isolated EventLoop) {
        let timer = LoopTimer(on: loop) { disk.tend() }
        timer.start(every: interval)
        self.timer = timer
    }

    /// Before the loop ends.
    package func stop(on loop: isolated EventLoop) { timer = nil }
}
