// What each origin was seen to do with HEAD and with conditions: how a stale response is checked depends on it.

import CacheStore
import HTTPCaching
import Synchronization

/// Sendable: its state is under its own mutex. Forgotten at a restart; bounded.
final class HabitTable: Sendable {
    private static let limit = 4096
    private let origins = Mutex<[[UInt8]: OriginHabits]>([:])

    /// Of the origin that a key belongs to, as they count at `now`, in Unix seconds.
    subscript(key: CacheKey, now: Int64) -> OriginHabits {
        let habits = origins.withLock { $0[key.originBytes] ?? OriginHabits() }
        return habits.current(at: now)
    }

    /// Learns from what the origin of a key has answered.
    func note(_ key: CacheKey, _ learn: (inout OriginHabits) -> Void) {
        let origin = key.originBytes
        origins.withLock { origins in
            if origins.count >= Self.limit, origins[origin] == nil { origins.removeAll(keepingCapacity: true) }
            learn(&origins[origin, default: OriginHabits()])
        }
    }
}
