// Waiting for what happens behind an answer: for a state, with a bound that is never reached when all is well.

import Glibc

/// Polls until something holds, for two minutes at most: a sanitizer makes everything ten times slower.
/// - Returns: false where it never held.
package func eventually(_ holds: () async -> Bool) async -> Bool {
    for _ in 0..<60_000 {
        if await holds() { return true }
        try? await Task.sleep(nanoseconds: 2_000_000)
    }
    return false
}

/// As `eventually`, for tests that may block: polls often at first, and then twenty times a second. It has a name of its
/// own, since in an expectation of an asynchronous test the compiler would take it for the other one.
/// - Parameter seconds: how long it rests between its looks in all; what the looks take does not count, so that a
///   machine that is busy has more time.
package func blockUntil(_ seconds: Double = 120, _ holds: () throws -> Bool) rethrows -> Bool {
    var (rested, rest) = (0.0, 0.001)
    while try !holds() {
        guard rested < seconds else { return false }
        usleep(UInt32(rest * 1_000_000))
        rested += rest
        rest = min(rest * 1.5, 0.05)
    }
    return true
}

/// Blocks until a number stands still: ten looks in a row, a hundredth of a second apart, find it as it was.
/// - Parameter floor: the number has to pass it before.
/// - Returns: false where it never does.
package func comesToRest<Number: Comparable>(beyond floor: Number? = nil, _ number: () throws -> Number) rethrows
    -> Bool
{
    var (last, looks): (Number?, Int) = (nil, 0)
    return try blockUntil {
        usleep(10_000)
        let next = try number()
        let mayRest = floor.map { next > $0 } ?? true
        (last, looks) = (next, next == last && mayRest ? looks + 1 : 0)
        return looks == 10
    }
}

/// Whether at least this time has passed, as what measures with another clock sees it: a loop reads the clock once a turn, and its
/// timers may be early by as much, so that nine tenths are enough.
package func hasPassed(_ duration: Duration, since begin: ContinuousClock.Instant) -> Bool {
    begin.duration(to: .now) >= duration * 0.9
}
