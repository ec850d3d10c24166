// Counts the requests of a service in windows of time, for its quotas.

package import Policies
import Synchronization

/// The windows of one service, by endpoint and client; they outlive a reload.
///
/// Sendable: the table is under its own mutex, which is held for one look at it.
package final class RateWindows: Sendable {
    /// What became of one request.
    package struct Verdict: Sendable, Equatable {
        /// It is one too many.
        package let isOver: Bool
        /// Requests that the window has left.
        package let left: Int
        /// Seconds until the window ends, at least 1.
        package let reset: Int64
        /// The client was told to wait, and has not.
        package let isEarly: Bool
        /// It is the first such request of this client in this window.
        package let isNews: Bool
    }

    private struct Window {
        /// Seconds since 1970.
        var end: Int64
        var used = 0
        /// Somebody was told to come back later.
        var isTold = false
        var isReported = false
    }

    private struct Table {
        var windows: [String: Window] = [:]
        var lastSweep: Int64 = 0
        /// Requests that were one too many.
        var refused = 0
        /// Those of them that came before the time they had been told.
        var early = 0
    }

    private let table = Mutex(Table())
    private let most: Int

    /// - Parameter most: windows that are kept at the same time, about 150 bytes each. Clients beyond them share one.
    package init(most: Int = 65_536) { self.most = most }

    /// Counts one request. Any thread.
    /// - Parameters:
    ///   - scope: what has the quota, such as the endpoint's name.
    ///   - client: its address; it counts only where the policy has a quota for each.
    ///   - now: seconds since 1970.
    package func take(_ policy: RateLimitPolicy, scope: String, client: String, now: Int64) -> Verdict {
        let length = Int64(policy.window / 1_000_000_000)
        return table.withLock { table in
            var key = policy.by == .client ? "\(scope)\n\(client)" : scope
            if table.windows[key] == nil, table.windows.count >= most {
                if table.lastSweep != now {
                    table.lastSweep = now
                    table.windows = table.windows.filter { $0.value.end > now }
                }
                if table.windows.count >= most { key = scope }
            }
            var window = table.windows[key] ?? Window(end: now + length)
            // A shorter window of a new configuration, or a clock that was set back, must not leave an old one open.
            if window.end <= now || window.end > now + length { window = Window(end: now + length) }
            let isOver = window.used >= policy.limit
            let isEarly = isOver && window.isTold
            let isNews = isEarly && !window.isReported
            if isOver {
                table.refused += 1
                if isEarly { table.early += 1 }
                window.isReported = window.isReported || isEarly
                window.isTold = true
            } else {
                window.used += 1
            }
            table.windows[key] = window
            return Verdict(
                isOver: isOver,
                left: policy.limit - window.used,
                reset: window.end - now,
                isEarly: isEarly,
                isNews: isNews
            )
        }
    }

    /// Begins every quota anew; what was counted since the start stays. Any thread.
    package func reset() {
        // Released without the mutex.
        let before = table.withLock { table in
            var windows: [String: Window] = [:]
            swap(&windows, &table.windows)
            return windows
        }
        withExtendedLifetime(before) {}
    }

    /// Requests that were one too many, since the start.
    package var refusedCount: Int { table.withLock { $0.refused } }

    /// Requests that came before the time which their client had been told, since the start.
    package var earlyCount: Int { table.withLock { $0.early } }
}
