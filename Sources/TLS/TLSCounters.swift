// How many handshakes there were, and how they ended.

import Synchronization

/// Counters of handshakes.
///
/// Sendable: each counter is atomic.
package final class TLSCounters: Sendable {
    private let full = Atomic<Int>(0)
    private let resumed = Atomic<Int>(0)
    private let failed: Mutex<[TLSFailure.Kind: Int]> = Mutex([:])

    package init() {}

    func addHandshake(isResumed: Bool) {
        if isResumed { resumed.wrappingAdd(1, ordering: .relaxed) } else { full.wrappingAdd(1, ordering: .relaxed) }
    }

    func add(_ kind: TLSFailure.Kind) { failed.withLock { $0[kind, default: 0] += 1 } }

    /// Handshakes that were complete.
    package func handshakes(areResumed: Bool) -> Int {
        areResumed ? resumed.load(ordering: .relaxed) : full.load(ordering: .relaxed)
    }

    /// Handshakes that failed for a reason.
    package func failures(_ kind: TLSFailure.Kind) -> Int { failed.withLock { $0[kind] ?? 0 } }
}
