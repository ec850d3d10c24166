// The clocks of the daemon: monotonic time for waits, wall time for lifetimes.

import Glibc
import Synchronization

/// Monotonic time in nanoseconds; for deadlines and waits.
package enum Monotonic {
    /// The exact time (about 20 ns a call).
    package static func now() -> UInt64 { read(CLOCK_MONOTONIC) }

    /// The time of the kernel's last tick, up to 4 ms old (about 5 ns a call); for idle bookkeeping.
    package static func coarse() -> UInt64 { read(CLOCK_MONOTONIC_COARSE) }

    /// The CPU time of all threads of the process so far.
    package static func cpu() -> UInt64 { read(CLOCK_PROCESS_CPUTIME_ID) }

    private static func read(_ clock: clockid_t) -> UInt64 {
        var time = timespec()
        clock_gettime(clock, &time)
        return UInt64(time.tv_sec) &* 1_000_000_000 &+ UInt64(time.tv_nsec)
    }
}

/// Wall time in whole Unix seconds: the `now` of every caching decision.
///
/// Sendable: its only state is an atomic offset, so that one instance can be shared by all loops.
package final class WallClock: Sendable {
    private let offset = Atomic<Int64>(0)

    package init() {}

    /// Seconds since 1970 plus the offset.
    package func now() -> Int64 {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME_COARSE, &time)
        return Int64(time.tv_sec) &+ offset.load(ordering: .relaxed)
    }

    /// The seconds by which the clock is ahead of the system's.
    package var ahead: Int64 { offset.load(ordering: .relaxed) }

    /// The monotonic nanoseconds plus the time by which the clock was moved forward; used for outages.
    package var elapsed: UInt64 { Monotonic.now() &+ UInt64(max(0, ahead)) &* 1_000_000_000 }

    /// Moves the clock forward by `seconds`, for tests of lifetimes.
    package func advance(seconds: Int64) { offset.wrappingAdd(seconds, ordering: .relaxed) }

    /// Returns to the system's time.
    package func reset() { offset.store(0, ordering: .relaxed) }
}
