// The bound on what the metrics show by service and endpoint.

import Synchronization

/// Says which series by service and endpoint are shown, so that a configuration of any size gives a monitor what it can
/// take. What is shown once is always shown: a counter never falls.
///
/// Sendable: the series are under a mutex.
final class SeriesBudget: Sendable {
    /// The most series that are shown by the names of services, so that all of them, with those of `other`, are 2,000.
    static let most = 1_400

    private struct State {
        var admitted: Set<String> = []
        var folded: Set<String> = []
        var used = 0
    }

    private let limit: Int
    private let state = Mutex(State())

    init(limit: Int = SeriesBudget.most) { self.limit = limit }

    /// Whether series are shown under their own name; otherwise they are part of those of `other`.
    /// - Parameters:
    ///   - key: names them among all others.
    ///   - count: how many they are.
    func admits(_ key: String, count: Int) -> Bool {
        state.withLock { state in
            if state.admitted.contains(key) { return true }
            guard state.used + count <= limit else {
                // What is remembered is only told, and needs no more than a number that says "many".
                if state.folded.count < 10_000 { state.folded.insert(key) }
                return false
            }
            state.used += count
            state.admitted.insert(key)
            return true
        }
    }

    /// How many labels are part of `other`.
    var foldedCount: Int { state.withLock { $0.folded.count } }
}
