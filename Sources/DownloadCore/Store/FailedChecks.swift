// Stored responses whose last validation failed: for a while they are used without another attempt, where
// the rules allow stale ones.

import CacheStore
import HTTPCaching
import Synchronization

/// Sendable: its state is under its own mutex. Forgotten at a restart; bounded.
final class FailedChecks: Sendable {
    private struct Entry {
        /// Unix seconds.
        var since: Int64
        var until: Int64
        var check: FailedCheck
    }

    private static let limit = 10_000

    private let entries = Mutex<[UInt64: Entry]>([:])
    /// The number of entries; while it is zero, a lookup takes no mutex.
    private let count = Atomic<Int>(0)

    /// Remembers a key by its hash: a collision costs a check that comes later, never an answer.
    /// - Parameters:
    ///   - now: Unix seconds.
    ///   - pause: seconds.
    func note(_ key: CacheKey, _ check: FailedCheck, now: Int64, pause: Int64) {
        guard pause > 0 else { return }
        entries.withLock { entries in
            if entries.count >= Self.limit { entries = entries.filter { $0.value.until > now } }
            if entries.count >= Self.limit { entries.removeAll(keepingCapacity: true) }
            entries[key.hash] = Entry(since: now, until: now.addingReportingOverflow(pause).partialValue, check: check)
            count.store(entries.count, ordering: .relaxed)
        }
    }

    /// A check or a fetch has succeeded.
    func forget(_ key: CacheKey) {
        guard count.load(ordering: .relaxed) > 0 else { return }
        entries.withLock { entries in
            entries[key.hash] = nil
            count.store(entries.count, ordering: .relaxed)
        }
    }

    /// Until when the next validation of a key is delayed, Unix seconds; nil where it is not delayed.
    func pause(_ key: CacheKey, now: Int64) -> Int64? {
        guard count.load(ordering: .relaxed) > 0 else { return nil }
        return entries.withLock { $0[key.hash].flatMap { $0.until > now ? $0.until : nil } }
    }

    /// The check of a key that failed less than its pause ago.
    func check(_ key: CacheKey, now: Int64) -> FailedCheck? {
        guard count.load(ordering: .relaxed) > 0 else { return nil }
        return entries.withLock { entries in
            guard let entry = entries[key.hash], entry.since <= now, entry.until > now else { return nil }
            return entry.check
        }
    }
}
