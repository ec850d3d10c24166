// Remembers reports of responses that were not stored, so that the log does not repeat them.

import CacheStore
import Synchronization

/// The last report for each key, and its time, so that the log gets at most one line in two minutes for a key.
/// Sendable: its state is under its own mutex.
final class ToldUnstored: Sendable {
    private static let limit = 10_000
    /// Seconds between two lines about the same.
    private static let pause: Int64 = 120
    private let last = Mutex<[UInt64: (reason: UnstoredReason, time: Int64)]>([:])

    /// Whether this report is due; if so, it is remembered.
    /// - Parameter now: Unix seconds.
    func isNews(_ key: CacheKey, _ reason: UnstoredReason, now: Int64) -> Bool {
        last.withLock { last in
            if let told = last[key.hash], told.reason == reason, (0..<Self.pause).contains(now &- told.time) {
                return false
            }
            if last.count >= Self.limit, let oldest = last.values.map(\.time).min() {
                last = last.filter { $0.value.time > oldest }
            }
            last[key.hash] = (reason, now)
            return true
        }
    }
}
