// What each origin was seen to do with HEAD and with conditions: how a stale response is checked depends on it.

import CacheStore
import HTTPCaching
import Synchronization

/// Sendable: its state is under its own mutex. Forgotten at a restart; bounded.
final class OriginCapabilityTable: Sendable {
    private static let limit = 4096
    private let origins = Mutex<[[UInt8]: OriginCapabilities]>([:])

    /// Of the origin that a key belongs to, as they count at `now`, in Unix seconds.
    subscript(key: CacheKey, now: Int64) -> OriginCapabilities {
        let capabilities = origins.withLock { $0[key.originBytes] ?? OriginCapabilities() }
        return capabilities.current(at: now)
    }

    /// Learns from what the origin of a key has answered.
    func note(_ key: CacheKey, _ learn: (inout OriginCapabilities) -> Void) {
        let origin = key.originBytes
        origins.withLock { origins in
            if origins.count >= Self.limit, origins[origin] == nil { origins.removeAll(keepingCapacity: true) }
            learn(&origins[origin, default: OriginCapabilities()])
        }
    }
}
