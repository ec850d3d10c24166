// Counts the requests of each draw key, so that every request of a key has an ordinal of its own.

import Synchronization

/// The ordinals of one service's demo requests: the first request of a key is 0, the next 1, whatever loop it is on.
///
/// Shared by every loop; each shard's state is under that shard's `Mutex`, held for one dictionary access. A gate's
/// mutex is held while one request is counted, and shards are locked under it, never the other way round.
///
/// Memory is bounded: at most `maximumKeys` keys have a counter of their own. A key that comes when its shard is full
/// is counted in one of the shard's 256 common counters, chosen by its digest, and stays there: nothing is dropped, so
/// no key ever starts again at 0. Draws still depend on nothing but key and ordinal, and each (key, ordinal) is drawn
/// at most once. What is lost past the bound is density only: keys that share a common counter see gaps in their
/// ordinals, so the same requests *in the same order* repeat exactly, while requests that race may take each other's
/// ordinals. A service of which nothing is drawn has no counters: the first request that is counted makes them.
package final class DrawOrdinals: Sendable {
    private static let shardCount = 16
    private static let commonCount = 256

    private final class Shard: Sendable {
        struct State {
            var own: [UInt64: UInt64] = [:]
            /// Empty until the shard is full.
            var common: [UInt64] = []
        }

        let state = Mutex(State())
    }

    /// Held while one request is counted with several keys.
    private final class Gate: Sendable {
        let mutex = Mutex(())
    }

    private final class Counters: Sendable {
        let gates = (0..<DrawOrdinals.shardCount).map { _ in Gate() }
        let shards = (0..<DrawOrdinals.shardCount).map { _ in Shard() }
    }

    private let made = AtomicLazyReference<Counters>()
    private let keysPerShard: Int

    /// - Parameter maximumKeys: how many keys are counted one by one, default 65,536 (about 3 MiB when full); it is
    ///   divided evenly over 16 shards, so a shard may be full a little earlier.
    package init(maximumKeys: Int = 65_536) {
        keysPerShard = max(0, maximumKeys / Self.shardCount)
    }

    private var counters: Counters { made.load() ?? made.storeIfNil(Counters()) }

    /// Nothing has been counted yet. Any thread.
    package var isUnused: Bool { made.load() == nil }

    /// The next ordinal of `key`; every call takes one. Any thread.
    package func next(_ key: DrawKey) -> UInt64 {
        counters.shards[Int(key.digest % UInt64(Self.shardCount))].state.withLock { state in
            // By its place, so that it is looked for once.
            if let place = state.own.index(forKey: key.digest) {
                defer { state.own.values[place] &+= 1 }
                return state.own.values[place]
            }
            if state.own.count < keysPerShard {
                state.own[key.digest] = 1
                return 0
            }
            if state.common.isEmpty { state.common = [UInt64](repeating: 0, count: Self.commonCount) }
            let slot = Int(key.digest >> 56)
            defer { state.common[slot] &+= 1 }
            return state.common[slot]
        }
    }

    /// Counts a request with several keys. Of two requests with the same bytes, one has every lower ordinal: which ordinals
    /// come together does not depend on how they race. Any thread.
    /// - Parameter act: waits for no other request.
    package func withRequest<Result: Sendable>(_ request: [UInt8], _ act: (RequestCount) -> Result) -> Result {
        let gate = request.withUnsafeBytes { fingerprint($0) } % UInt64(Self.shardCount)
        return counters.gates[Int(gate)].mutex.withLock { _ in act(RequestCount(self)) }
    }

    /// How many ordinals of `key` were taken; takes none. Any thread.
    package func count(_ key: DrawKey) -> UInt64 {
        guard let counters = made.load() else { return 0 }
        return counters.shards[Int(key.digest % UInt64(Self.shardCount))].state.withLock { state in
            if let count = state.own[key.digest] { return count }
            return state.common.isEmpty ? 0 : state.common[Int(key.digest >> 56)]
        }
    }

    /// Begins at 0 for every key. Any thread; a request that comes meanwhile is counted before or behind it.
    package func reset() {
        for shard in made.load()?.shards ?? [] {
            var fresh = Shard.State()
            shard.state.withLock { state in swap(&state, &fresh) }
        }
    }

    /// How many keys have a counter of their own now. Any thread.
    package var ownKeys: Int {
        (made.load()?.shards ?? []).reduce(0) { sum, shard in sum + shard.state.withLock { $0.own.count } }
    }
}

/// Counts one request, for the length of the call that it is passed to: meanwhile no other request of the same bytes is
/// counted.
package struct RequestCount {
    private let ordinals: DrawOrdinals

    fileprivate init(_ ordinals: DrawOrdinals) { self.ordinals = ordinals }

    /// As ``DrawOrdinals/next(_:)``.
    package func next(_ key: DrawKey) -> UInt64 { ordinals.next(key) }
}
