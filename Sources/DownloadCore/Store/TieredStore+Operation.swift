// The operation of a store's tiers: statistics, listings, exports, files and the end of the process.

package import CacheStore
package import EventLoop
import HTTPCaching

/// The statistics of a store's tiers.
package struct StoreStatistics: Sendable {
    package let memory: MemoryStatistics
    /// The statistics of the tiers behind memory, in the order in which they are asked.
    package let behind: [(tier: StoreTier, statistics: TierStatistics)]

    /// The statistics of the tier with this name; nil if there is none.
    package subscript(_ tier: StoreTier) -> TierStatistics? { behind.first { $0.tier == tier }?.statistics }

    /// Whether a tier does not know yet what it holds.
    package var isRebuilding: Bool { behind.contains { $0.statistics.isRebuilding } }
}

extension TieredStore {
    // MARK: - Numbers and listings

    /// The present statistics of the tiers. Any thread.
    package var statistics: StoreStatistics {
        StoreStatistics(memory: memory.statistics, behind: tiers.map { ($0.name, $0.statistics) })
    }

    /// The threads of the tiers, for the watchdog of threads.
    package var threads: [IOPool] { tiers.flatMap(\.threads) }

    /// The stored responses, page by page.
    /// - Parameter pool: the threads of blocking calls.
    package func listing(on pool: IOPool) -> StoreListing {
        StoreListing(memory: memory, behind: tiers, invalidations: invalidations, pool: pool)
    }

    /// The stored response that a request selects, fresh or stale; nil if there is none.
    package func response(to ask: CacheRequest, on loop: isolated EventLoop) async -> StoredResponse? {
        await find(ask, on: loop).response
    }

    // MARK: - Limits, folders and the end

    /// Makes the tiers keep their limits; called every few seconds. Any thread.
    package func tend() { for tier in tiers { tier.tend() } }

    /// Restores the folders of the tiers that were removed from outside; called before anything is created in one of
    /// them. Blocks, so it must not run on a loop.
    /// - Throws: the reason why a folder cannot be made.
    package func makeFoldersWhole() throws(TierError) { for tier in tiers { try tier.makeWhole() } }

    /// Writes what a later process has to find; responses stored after this are lost. Blocks, so it must not run on a
    /// loop.
    package func close() { for tier in tiers { tier.close() } }

    // MARK: - Exports and files

    /// Calls `body` with every stored response, those behind memory first, each key once.
    /// - Parameters:
    ///   - services: the services whose responses are taken from the tiers behind memory.
    ///   - only: the service whose responses are taken from memory; nil for all.
    ///   - body: gets nil for a stored response that could not be read, and returns whether it wants more.
    package func forEachStored(
        services: [String],
        only: String?,
        _ body: (StoredResponse?) async -> Bool
    ) async {
        var seen: Set<CacheKey> = []
        for tier in tiers {
            for service in services { guard await forEachStored(in: tier, service, &seen, body) else { return } }
        }
        let held = memory.responses { only == nil || $0.key.service == only }
        for response in held where !seen.contains(response.key) {
            guard await body(response.response) else { return }
        }
    }

    private func forEachStored(
        in tier: any ResponseTier,
        _ service: String,
        _ seen: inout Set<CacheKey>,
        _ body: (StoredResponse?) async -> Bool
    ) async -> Bool {
        var query = ListQuery()
        query.service = service
        repeat {
            guard let (rows, end) = try? await tier.list(query, pinned: [], limit: 1000) else { return true }
            for row in rows {
                let key = CacheKey(service: service, url: row.url)
                guard seen.insert(key).inserted else { continue }
                let miss = TierQuestion(key, policy: CachePolicy(), isUse: false, wantsBody: false)
                guard let answer = try? await tier.find(miss) else { continue }
                for finding in answer.findings {
                    guard await body(try? await tier.open(finding, miss)) else { return false }
                }
            }
            query.after = end
        } while query.after != nil
        return true
    }

    /// Writes the newest response of a key as a plain file, unless there is one; see `store_as`.
    /// - Parameter name: a relative path without empty or dot segments.
    package func keepAsFile(_ key: CacheKey, as name: String) async {
        do {
            try await files?.keepAsFile(key, nil, as: name, onlyIfMissing: true)
        } catch {
            troubles.tell(name, error)
        }
    }
}
