// A bounded set of keys, each of which expires: for example those whose last response could not be shared, so that
// requests do not wait for one another.

import CacheStore
import EventLoop
import HTTPCaching
import Synchronization

/// Sendable: its state is under its own mutex.
final class ExpiringKeySet: Sendable {
    /// How long a key is remembered, in seconds.
    static let lifetime: Int64 = 120
    private static let limit = 10_000

    private let until = Mutex<[UInt64: Int64]>([:])

    /// Remembers a key by its hash: a collision costs a shared fetch, never an answer.
    func note(_ key: CacheKey, now: Int64) {
        until.withLock { until in
            if until.count >= Self.limit { until = until.filter { $0.value > now } }
            if until.count >= Self.limit { until.removeAll(keepingCapacity: true) }
            until[key.hash] = now + Self.lifetime
        }
    }

    func forget(_ key: CacheKey) { until.withLock { _ = $0.removeValue(forKey: key.hash) } }

    /// Not where the clock was set back since.
    func contains(_ key: CacheKey, now: Int64) -> Bool {
        until.withLock { until in
            until[key.hash].map { (1...Self.lifetime).contains($0 &- now) } ?? false
        }
    }
}

extension StoreRefusal {
    /// Whether the next answer will probably be refused, too: what one request forbids, or one bad moment of the
    /// origin, says nothing about it.
    func isLasting(status: Int) -> Bool {
        switch self {
        case .requestNoStore, .authorization, .requestCookie, .status206, .statusConditional, .statusNeverStored,
            .varyUnderscore:
            false
        default: status < 500
        }
    }
}
