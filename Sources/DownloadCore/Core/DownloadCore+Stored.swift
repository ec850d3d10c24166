// What is stored, for whoever asks for no answer: statistics, listings, exports, plain files, and memory given back.

package import CacheStore
package import EventLoop
internal import HTTPCaching

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

extension DownloadCore {
    /// For the fast path alone, whose lookup must not wait.
    package var memory: MemoryTier { context.store.memory }

    /// Any thread.
    package var statistics: StoreStatistics {
        StoreStatistics(
            memory: context.store.memory.statistics,
            behind: context.store.tiers.map { ($0.name, $0.statistics) }
        )
    }

    /// The threads of the tiers, for whoever watches that none stands still.
    package var storeThreads: [IOPool] { context.store.tiers.flatMap(\.threads) }

    /// There are tiers to be tended.
    package var hasTiersBehind: Bool { context.store.hasTiersBehind }

    /// Lets the tiers keep to their limits; called every few seconds. Any thread.
    package func tend() { for tier in context.store.tiers { tier.tend() } }

    /// Writes what is to be found again; everything later is a miss. Blocks: not on a loop.
    package func closeStore() { for tier in context.store.tiers { tier.close() } }

    /// - Parameter pool: for what blocks.
    package func listing(on pool: IOPool) -> StoreListing {
        StoreListing(memory: context.store.memory, behind: context.store.tiers, generations: generations, pool: pool)
    }

    // MARK: - Memory

    /// Gives a part of what memory holds back to the kernel. Blocks for milliseconds: not on a loop.
    /// - Parameter share: above 0 and at most 1.
    /// - Returns: how many bytes have gone.
    package func shedMemory(_ share: Double) -> Int { context.store.memory.shed(share) }

    /// Empties memory; what the tiers behind it hold stays.
    package func freeMemory() { context.store.memory.removeAll() }

    // MARK: - Exports and files

    /// Hands over every stored response, those behind memory first, each key once.
    /// - Parameters:
    ///   - services: whose responses the tiers behind memory are asked for.
    ///   - only: the service whose responses memory is asked for; nil for all.
    ///   - body: nil is a stored response that could not be read.
    package func forEachStored(
        services: [String],
        only: String?,
        _ body: (StoredResponse?) async -> Void
    ) async {
        var seen: Set<CacheKey> = []
        for tier in context.store.tiers {
            for service in services { await forEachStored(in: tier, service, &seen, body) }
        }
        let held = context.store.memory.responses { only == nil || $0.key.service == only }
        for response in held where !seen.contains(response.key) { await body(response.response) }
    }

    private func forEachStored(
        in tier: any ResponseTier,
        _ service: String,
        _ seen: inout Set<CacheKey>,
        _ body: (StoredResponse?) async -> Void
    ) async {
        var query = ListQuery()
        query.service = service
        repeat {
            guard let (rows, end) = try? await tier.list(query, pinned: [], limit: 1000) else { return }
            for row in rows {
                let key = CacheKey(service: service, url: row.url)
                guard seen.insert(key).inserted else { continue }
                let question = TierQuestion(key, policy: CachePolicy(), isUse: false, wantsBody: false)
                guard let answer = try? await tier.find(question) else { continue }
                for finding in answer.findings { await body(try? await tier.open(finding, question)) }
            }
            query.after = end
        } while query.after != nil
    }

    /// Writes the newest response of a key as a plain file, unless there is one; see `store_as`.
    /// - Parameter name: a relative path without empty or dot segments.
    package func keepAsFile(_ key: CacheKey, as name: String) async {
        do {
            try await context.store.files?.keepAsFile(key, nil, as: name, onlyIfMissing: true)
        } catch {
            storedFileTroubles.tell(name, error)
        }
    }
}
