// What was told of responses that were not stored, so that the log does not say the same again and again.

import CacheStore
import Synchronization

/// What was told last of a key, and when, so that the log has one line in two minutes. Sendable: its state is under its own mutex.
final class ToldUnstored: Sendable {
    private static let limit = 10_000
    /// Seconds between two lines about the same.
    private static let pause: Int64 = 120
    private let last = Mutex<[UInt64: (reason: UnstoredReason, time: Int64)]>([:])

    /// Whether this is to be told.
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
