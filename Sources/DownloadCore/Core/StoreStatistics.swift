// What the tiers of a store have done and hold, in numbers.

package import CacheStore

/// What a store's tiers have done and hold.
package struct StoreStatistics: Sendable {
    package let memory: MemoryStatistics
    /// Behind memory, in the order in which they are asked.
    package let behind: [(tier: StoreTier, statistics: TierStatistics)]

    /// Those of the tier that is called so; nil where there is none.
    package subscript(_ tier: StoreTier) -> TierStatistics? { behind.first { $0.tier == tier }?.statistics }

    /// Not every tier knows what it holds yet.
    package var isRebuilding: Bool { behind.contains { $0.statistics.isRebuilding } }
}
