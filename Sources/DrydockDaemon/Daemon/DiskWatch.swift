// Looks every few seconds whether the disk tier's file system still has what cache.disk.min_free leaves to others.

internal import CacheStore
internal import EventLoop

/// Sendable: see `timer`.
final class DiskWatch: @unchecked Sendable {  // `timer` is touched on the loop only that both methods run on
    private static let interval: UInt64 = 10_000_000_000
    private var timer: LoopTimer?

    func start(_ disk: DiskTier, on loop: isolated EventLoop) {
        let timer = LoopTimer(on: loop) { disk.tend() }
        timer.start(every: Self.interval)
        self.timer = timer
    }

    /// Before the loop ends.
    func stop(on loop: isolated EventLoop) { timer = nil }
}
