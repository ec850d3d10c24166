// A loop or a pool as the watch over them sees it: something that is asked for a sign of life.

import EventLoop

/// Something that has to go on for the daemon to do its work. Any thread may call its closures.
struct Pulse: Sendable {
    /// What the log calls it, such as `loop 1`.
    let name: String
    /// Nanoseconds without a sign of life after which it stands still.
    let bound: UInt64
    /// It ends before the daemon does, and is not asked any more when the daemon is about to end it.
    var isLoop = false
    /// A daemon that is to end does so without it where it stands still.
    var holdsUpEnd = true
    /// Has it call the closure when its turn comes.
    /// - Returns: false where it has ended in order, and does nothing any more.
    let ask: @Sendable (@escaping @Sendable () -> Void) -> Bool
    /// A number that changes where it goes on, although the turn of what it was asked has not come yet.
    var progress: @Sendable () -> Int = { 0 }
    /// It waits for a disk, or computes what takes long: it is slow, and does not stand still.
    var isSlow: @Sendable () -> Bool = { false }
}

extension Pulse {
    /// Nanoseconds: a loop does nothing that takes as long, short of waiting for a disk.
    static let loopBound: UInt64 = 10_000_000_000
    /// Nanoseconds: work of a pool may wait for a pipe or for another thread, and is done again soon.
    static let poolBound: UInt64 = 30_000_000_000
    /// Nanoseconds: a question for a name waits for name servers that do not answer, one after the
    /// other, each again and again.
    static let namesBound: UInt64 = 120_000_000_000

    /// A loop comes to what is submitted to it in its next turn. It may wait for a disk where the kernel has taken
    /// pages of a file that were there a moment ago.
    init(_ loop: EventLoop, bound: UInt64 = Pulse.loopBound) {
        name = "loop \(loop.index)"
        self.bound = bound
        isLoop = true
        ask = { beat in
            loop.submit { _ in beat() }
            return true
        }
        isSlow = { loop.waitsForDisk }
    }

    /// A pool comes to what is submitted to it when all before it has been begun.
    init(_ pool: IOPool, bound: UInt64 = Pulse.poolBound) {
        name = "the I/O pool '\(pool.name)'"
        self.bound = bound
        ask = { beat in pool.submit { beat() } }
        progress = { pool.finished }
        isSlow = { pool.isAtWork }
    }
}
