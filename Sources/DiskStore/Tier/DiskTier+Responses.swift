// The disk as a tier among others: what a store asks of every tier, in the words of files.

package import CacheStore
package import EventLoop
package import HTTPCaching

extension DiskTier: FileTier {
    package var name: StoreTier { .disk }
    package var keptGenerations: Invalidations? { invalidations }
    package var threads: [IOPool] { [parts.index.thread] }

    // MARK: - Without waiting

    package func mayHold(_ key: CacheKey) -> Bool { !finder.lookup(key, isCounted: false).isEmpty }

    package func isKnownToHold(_ key: CacheKey, since time: Int64, besides heads: [StoredHead]) -> Bool {
        finder.isKnownToHold(key, since: time, besides: heads)
    }

    package func known(_ key: CacheKey, _ head: StoredHead) -> TierKnowledge {
        guard let entry = finder.entry(key, head) else { return .lacks }
        return entry.isGuess ? .unknown : .holds(number: entry.fileID, storedAt: entry.storedAt)
    }

    package func refusal(of bytes: Int) -> TierRefusal? {
        room.isFailing ? .fails : room.mayTake(bytes) ? nil : .noRoom
    }

    // MARK: - Finding

    package func find(_ question: TierQuestion) async throws(TierError) -> TierAnswer {
        let key = question.key
        let entries =
            question.heads.isEmpty
            ? finder.lookup(key, isCounted: question.isUse) : finder.lookup(key, besides: question.heads)
        // One is read with its body in one turn of an I/O thread; of several, heads tell which one is wanted.
        if entries.count == 1, question.wantsBody {
            return TierAnswer((try? await load(entries[0], question)).map { [TierFinding($0)] } ?? [])
        }
        if entries.isEmpty { return TierAnswer([]) }
        return TierAnswer(await reader.heads(entries).map { TierFinding(key, $0.head, number: $0.entry.fileID) })
    }

    package func open(_ finding: TierFinding, _ question: TierQuestion) async throws(TierError) -> StoredResponse {
        guard let entry = finder.entry(finding.key, finding.head, number: finding.number) else { throw .absent }
        return try await load(entry, question)
    }

    private func load(_ entry: DiskEntry, _ question: TierQuestion) async throws(TierError) -> StoredResponse {
        if let response = finder.loaded(entry, isUse: question.isUse) { return response }
        do {
            return try await reader.load(entry, via: nil, policy: question.policy, isUse: question.isUse)
        } catch {
            throw TierError(error)
        }
    }

    // MARK: - Changing

    package func makeSpill(expected: Int64) -> SpillFile { writer.makeSpill(expected: expected) }

    package func makeSparse() -> SparseFile { writer.makeSparse() }

    package func commit(_ commit: TierCommit) async throws(TierError) {
        do {
            try await writer.commit(
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
        guard let entry = finder.entry(response.key, response.head, number: response.number) else { throw .absent }
        guard await writer.freshen(entry, head: commit.head) else { throw .unavailable("its head was not written") }
    }

    package func remove(_ response: TierReference) {
        guard let entry = finder.entry(response.key, response.head) else { return }
        remover.remove([DiskFileID(keyHash: parts.keyHash(response.key), name: entry.name, fileID: response.number)])
    }

    package func remove(_ key: CacheKey) { remover.remove(key) }

    // MARK: - Invalidation

    package func invalidate(_ rules: [InvalidationRule], number: UInt64) async {
        await sweeper.keep(rules, number: number)
    }

    package func purge(_ rules: [PurgeRule], number: UInt64) async -> Int {
        let count = (try? await sweeper.count(rules, before: number)) ?? 0
        // The folder's files go in one piece; where that fails they go one by one.
        if rules.contains(PurgeRule(.all)) { try? await emptier.removeAll() }
        sweeper.start()
        return count
    }

    package func sweep() { sweeper.start() }

    package func settleSweep() async { await sweeper.settle() }

    package func takeOverPin(_ url: String) async { await pins.takeOver(url) }

    // MARK: - Listing

    package func list(
        _ query: ListQuery,
        pinned: [String],
        limit: Int
    ) async throws -> (rows: [TierRow], end: String?) {
        let (rows, end) = try await lister.list(query, pinned: pinned, limit: limit)
        return (rows.map { TierRow(name: "\($0.name)", url: $0.url) }, end)
    }

    package func heads(of rows: [TierRow]) async -> [TierListing] { await lister.heads(of: rows) }

    // MARK: - Files

    package func adopt(_ copy: SeedCopy, _ commit: TierCommit) async throws(TierError) {
        do {
            try await copies.adopt(
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
        let entry = head.map { finder.entry(key, $0) } ?? finder.lookup(key, besides: []).first
        if let entry { try await copies.keepAsFile(entry, as: name, onlyIfMissing: onlyIfMissing) }
    }

    // MARK: - The fast path

    package func makeReady(_ response: StoredResponse, headFormatID: UInt64, _ make: () -> ResidentResponse?) {
        finder.makeReady(response, headFormatID: headFormatID, make)
    }

    package func readyFile(_ keyBytes: UnsafeRawBufferPointer, where selects: (ResidentResponse) -> Bool) -> ReadyFile?
    {
        finder.readyFile(keyBytes, where: selects)
    }

    package func noteUse(of ready: ReadyFile) { finder.noteUse(ready.keyHash, ready.name) }
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
