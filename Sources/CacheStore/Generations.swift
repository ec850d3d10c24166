// Invalidation generations: a fill that began before its key was invalidated is never committed after it.

import Synchronization

/// What a fill notes at its start.
package struct GenerationToken: Sendable, Equatable {
    let slot: Int
    let generation: UInt64
    let epoch: UInt64
}

/// Keys share a fixed number of counters: a collision only keeps one fill from being stored.
///
/// Sendable: the counters are under one mutex, held for a few nanoseconds.
package final class Generations: Sendable {
    private static let slots = 4096

    private struct State {
        var counters = [UInt64](repeating: 0, count: Generations.slots)
        var epoch: UInt64 = 0
    }

    private let state = Mutex(State())

    package init() {}

    package func note(_ key: CacheKey) -> GenerationToken {
        let slot = Int(key.hash % UInt64(Self.slots))
        return state.withLock { GenerationToken(slot: slot, generation: $0.counters[slot], epoch: $0.epoch) }
    }

    /// Invalidates the fills of `key` that are under way. Call it before the stored responses are removed.
    package func bump(_ key: CacheKey) {
        let slot = Int(key.hash % UInt64(Self.slots))
        state.withLock { $0.counters[slot] &+= 1 }
    }

    /// Invalidates every fill that is under way.
    package func bumpAll() { state.withLock { $0.epoch &+= 1 } }

    package func isUnchanged(_ token: GenerationToken) -> Bool {
        state.withLock { $0.counters[token.slot] == token.generation && $0.epoch == token.epoch }
    }

    /// Runs `body` if the token is still good, and keeps every ``bump(_:)`` waiting meanwhile: short work in memory only.
    /// - Returns: false where the key was invalidated and `body` did not run.
    package func ifUnchanged(_ token: GenerationToken, _ body: () -> Void) -> Bool {
        state.withLock { state in
            guard state.counters[token.slot] == token.generation, state.epoch == token.epoch else { return false }
            body()
            return true
        }
    }
}
