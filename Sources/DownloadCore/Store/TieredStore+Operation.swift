// What an operator and the ends of a process ask of the tiers of a store: numbers, listings, exports, files and its end.

package import CacheStore
package import EventLoop
import HTTPCaching

/// What a store's tiers have done and hold.
package struct StoreStatistics: Sendable {
    package let memory: MemoryStatistics
    /// Behind memory, in the order in which they are asked.
    package let behind: [(tier: StoreTier, statistics: TierStatistics)]

    /// The statistics of the tier with this name; nil if there is none.
    package subscript(_ tier: StoreTier) -> TierStatistics? { behind.first { $0.tier == tier }?.statistics }

    /// Not every tier knows what it holds yet.
    package var isRebuilding: Bool { behind.contains { $0.statistics.isRebuilding } }
}

extension TieredStore {
    // MARK: - Numbers and listings

    /// What the tiers have done and hold now. Any thread.
    package var statistics: StoreStatistics {
        StoreStatistics(memory: memory.statistics, behind: tiers.map { ($0.name, $0.statistics) })
    }

    /// The threads of the tiers, for whoever watches that none stands still.
    package var threads: [IOPool] { tiers.flatMap(\.threads) }

    /// The stored responses, page by page.
    /// - Parameter pool: for what blocks.
    package func listing(on pool: IOPool) -> StoreListing {
        StoreListing(memory: memory, behind: tiers, invalidations: invalidations, pool: pool)
    }

    /// The stored response that a request selects, fresh or stale; nil where there is none.
    package func response(to ask: CacheRequest, on loop: isolated EventLoop) async -> StoredResponse? {
        await find(ask, on: loop).response
    }

    // MARK: - Limits, folders and the end

    /// Lets the tiers keep to their limits; called every few seconds. Any thread.
    package func tend() { for tier in tiers { tier.tend() } }

    /// Makes what somebody has removed of the tiers' folders again; whoever makes something in one of them calls this before.
    /// Blocks: not on a loop.
    /// - Throws: why a folder cannot be made.
    package func makeFoldersWhole() throws(TierError) { for tier in tiers { try tier.makeWhole() } }

    /// Writes what is to be found again; everything later is a miss. Blocks: not on a loop.
    package func close() { for tier in tiers { tier.close() } }

    // MARK: - Exports and files

    /// Hands over every stored response, those behind memory first, each key once.
    /// - Parameters:
    ///   - services: whose responses the tiers behind memory are asked for.
    ///   - only: the service whose responses memory is asked for; nil for all.
    ///   - body: nil is a stored response that could not be read. It says whether it wants more.
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
