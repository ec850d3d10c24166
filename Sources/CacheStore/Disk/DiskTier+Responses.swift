// The disk as a tier among others: what a store asks of every tier, in the words of files.

package import EventLoop
package import HTTPCaching

extension DiskTier: FileTier {
    package var name: StoreTier { .disk }
    package var keptGenerations: Invalidations? { invalidations }
    package var threads: [IOPool] { [indexThread] }

    // MARK: - Without waiting

    package func mayHold(_ key: CacheKey) -> Bool { !lookup(key, isCounted: false).isEmpty }

    package func isKnownToHold(_ key: CacheKey, since time: Int64, besides heads: [StoredHead]) -> Bool {
        // The names of variants cost more than their number.
        let newer = lookup(key, isCounted: false).filter { $0.storedAt >= time }
        guard newer.count > heads.count(where: { $0.responseTime >= time }) else { return false }
        let names = heads.map { name(key, $0) }
        return newer.contains { !names.contains($0.name) }
    }

    package func known(_ key: CacheKey, _ head: StoredHead) -> TierKnowledge {
        guard let entry = entry(key, head) else { return .lacks }
        return entry.isGuess ? .unknown : .holds(number: entry.fileID, storedAt: entry.storedAt)
    }

    package func refusal(of bytes: Int) -> TierRefusal? {
        isFailing ? .fails : mayHaveRoom(for: bytes) ? nil : .noRoom
    }

    // MARK: - Finding

    package func find(_ question: TierQuestion) async throws(TierError) -> TierAnswer {
        let key = question.key
        let entries =
            question.heads.isEmpty ? lookup(key, isCounted: question.isUse) : lookup(key, besides: question.heads)
        // One is read with its body in one turn of an I/O thread; of several, heads tell which one is wanted.
        if entries.count == 1, question.wantsBody {
            return TierAnswer((try? await load(entries[0], question)).map { [TierFinding($0)] } ?? [])
        }
        if entries.isEmpty { return TierAnswer([]) }
        return TierAnswer(await heads(entries).map { TierFinding(key, $0.head, number: $0.entry.fileID) })
    }

    package func open(_ finding: TierFinding, _ question: TierQuestion) async throws(TierError) -> StoredResponse {
        guard let entry = entry(finding.key, finding.head, number: finding.number) else { throw .absent }
        return try await load(entry, question)
    }

    private func load(_ entry: DiskEntry, _ question: TierQuestion) async throws(TierError) -> StoredResponse {
        if let response = loaded(entry, isUse: question.isUse) { return response }
        do {
            return try await load(entry, via: nil, policy: question.policy, isUse: question.isUse)
        } catch {
            throw TierError(error)
        }
    }

    // MARK: - Changing

    package func commit(_ commit: TierCommit) async throws(TierError) {
        do {
            try await self.commit(
                commit.body,
                spill: commit.spill,
                key: commit.key,
                head: commit.head,
                generation: (commit.invalidations, commit.token),
                maxVariants: commit.maxVariants,
                number: commit.token.number
            )
        } catch {
            throw TierError(error)
        }
    }

    package func freshen(_ response: TierReference, _ commit: TierCommit) async throws(TierError) {
        guard commit.invalidations.isUnchanged(commit.token) else { throw .invalidated }
        guard let entry = entry(response.key, response.head, number: response.number) else { throw .absent }
        guard await freshen(entry, head: commit.head) else { throw .unavailable("its head was not written") }
    }

    package func remove(_ response: TierReference) {
        guard let entry = entry(response.key, response.head) else { return }
        remove([DiskFileID(keyHash: keyHash(response.key), name: entry.name, fileID: response.number)])
    }

    // MARK: - Invalidation

    package func invalidate(_ rules: [InvalidationRule], number: UInt64) async { await keep(rules, number: number) }

    package func purge(_ rules: [PurgeRule], number: UInt64) async -> Int {
        let count = (try? await count(rules, before: number)) ?? 0
        // The folder's files go in one piece; where that fails they go one by one.
        if rules.contains(PurgeRule(.all)) { try? await removeAll() }
        sweep()
        return count
    }

    // MARK: - Listing

    package func list(
        _ query: ListQuery,
        pinned: [String],
        limit: Int
    ) async throws -> (rows: [TierRow], end: String?) {
        let (rows, end) = try await listed(query, pinned: pinned, limit: limit)
        return (rows.map { TierRow(name: "\($0.name)", url: $0.url) }, end)
    }

    package func heads(of rows: [TierRow]) async -> [TierListing] {
        let found = try? await pool.run { [self] in
            rows.compactMap { row in
                StoredFileName(hex: row.name).flatMap { head(of: DiskIndex.Listed(name: $0, url: row.url)) }
            }
        }
        return found ?? []
    }

    // MARK: - Files

    package func adopt(_ copy: SeedCopy, _ commit: TierCommit) async throws(TierError) {
        do {
            try await adopt(
                copy,
                head: commit.head,
                key: commit.key,
                generation: (commit.invalidations, commit.token),
                maxVariants: commit.maxVariants
            )
        } catch {
            throw TierError(error)
        }
    }

    package func keepAsFile(
        _ key: CacheKey,
        _ head: StoredHead?,
        as name: String,
        onlyIfMissing: Bool
    ) async throws {
        let entry = head.map { self.entry(key, $0) } ?? lookup(key, besides: []).first
        if let entry { try await keepAsFile(entry, as: name, onlyIfMissing: onlyIfMissing) }
    }
}

extension TierError {
    /// What a failure of the disk means to a store.
    init(_ error: any Error) {
        switch error as? DiskTierError {
        case .absent: self = .absent
        case .damaged: self = .damaged
        case .invalidated: self = .invalidated
        case .outdated: self = .outdated
        case .refused(let error): self = .refused(error)
        case .folder(let error): self = .refused(.file(error))
        default: self = .unavailable("\(error)")
        }
    }
}
