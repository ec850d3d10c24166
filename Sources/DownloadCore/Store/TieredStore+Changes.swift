// The changes of a store's tiers: by new responses, the answers to validations, removals, purges and seeds.

import CacheStore
import EventLoop
import HTTPCaching
import HTTPWire

extension TieredStore {
    /// Makes a file for an arriving body; nil if no tier takes one.
    /// - Parameter expected: the declared length of the body in bytes; zero if none is declared.
    func makeSpill(expected: Int64) -> SpillFile? { files?.makeSpill(expected: expected) }

    /// Stores a complete response, unless its key was invalidated since its fetch began, or a newer one is stored.
    /// - Parameters:
    ///   - body: the complete body, as its readers have it.
    ///   - whole: the body as one piece in memory; nil if it is not there.
    ///   - spill: the body's file, if it was written during the transfer.
    ///   - placement: the tiers that may store it.
    ///   - otherwise: the reason to report if the memory tier does not take it and no file was written.
    ///   - done: called on any thread when storing has ended, with the reason if no tier has the response.
    func commit(
        _ head: StoredHead,
        _ ask: CacheRequest,
        _ token: InvalidationToken,
        body: Body,
        whole: Body?,
        spill: SpillFile?,
        placement: TierPlacement,
        otherwise: UnstoredReason,
        done: @escaping @Sendable (UnstoredReason?) -> Void
    ) {
        let rules = InvalidationRule.concerning(head, ask.key)
        let token = token.concerned(by: rules)
        let head = numbered(head, token)
        let number = token.number
        var (isCurrent, isInMemory) = (false, false)
        let fresh = (placement.inMemory ? whole : nil).map { make(head, $0, ask, tier: .memory, number) }
        let held = fresh.flatMap { ResidentResponse($0) }
        var gone: [ResidentResponse] = []
        _ = invalidations.ifUnchanged(token) {
            guard !isOutdated(head, ask, number) else { return }
            isCurrent = true
            if head.varyNames.isEmpty {
                gone = memory.remove(ask.key) { $0.number < number && isReplaced($0.head, by: head, ask) }
            }
            if let fresh {
                isInMemory = insert(fresh, held, ask, &gone)
            } else {
                // The variants that this response replaces leave memory, and so do those that would answer before a
                // tier behind memory is asked.
                gone += memory.remove(ask.key) {
                    $0.head.isSameVariant(as: head) || $0.hot != nil && $0.head.varyNames != head.varyNames
                }
            }
        }
        guard isCurrent else { return done(.overtaken) }
        let unkept = isInMemory ? nil : otherwise
        guard !tiers.isEmpty else { return done(unkept) }
        guard placement.onDisk else {
            removeBehind(ask.key, head, number)
            guard head.varyNames.isEmpty, tiers.contains(where: { $0.mayHold(ask.key) }) else { return done(unkept) }
            Task {
                await removeReplaced(by: head, ask, number)
                done(unkept)
            }
            return
        }
        let isGiven = spill != nil || whole != nil
        Task {
            let (failure, isOvertaken) = await commitBehind(head, ask, token, body, whole, spill)
            if isOvertaken {
                // Another store has a later response, or has invalidated this one: the next request finds what there
                // is.
                memory.remove(ask.key) { $0.number == number && $0.head.isSameVariant(as: head) }
                removeBehind(ask.key, head, number)
                return done(.overtaken)
            }
            if let failure { return done(unkept == nil ? nil : isGiven ? UnstoredReason(failure) : otherwise) }
            await keepAsFile(head, ask)
            await removeReplaced(by: head, ask, number)
            if isReplacedMeanwhile(head, ask, number) { removeBehind(ask.key, head, number) }
            done(nil)
        }
    }

    /// Stores a response in every tier behind memory.
    /// - Returns: no failure where one of them has it, else why the first has not; and whether
    ///   another store has overtaken it.
    private func commitBehind(
        _ head: StoredHead,
        _ ask: CacheRequest,
        _ token: InvalidationToken,
        _ body: Body,
        _ whole: Body?,
        _ spill: SpillFile?
    ) async -> (failure: TierError?, isOvertaken: Bool) {
        var (isStored, first, isOvertaken) = (false, TierError?.none, false)
        for index in tiers.indices {
            let tier = tiers[index]
            let commit = TierCommit(
                ask.key,
                head,
                files === tier ? body : whole ?? body,
                spill: files === tier ? spill : nil,
                invalidations: invalidations,
                token: token,
                maxVariants: ask.policy.maxVariants,
                moment: moment(before: token.number, in: index)
            )
            do throws(TierError) {
                try await tier.commit(commit)
                isStored = true
            } catch {
                // The response has been answered all the same; the stored one that it replaces is outdated.
                tier.remove(reference(ask.key, head, token.number, in: index))
                first = first ?? error
                if tier.isShared, [.outdated, .invalidated].contains(error) { isOvertaken = true }
            }
        }
        return (isStored ? nil : first, isOvertaken)
    }

    /// Whether a new response replaces an old variant: one that answers every request replaces the variants that its
    /// own request selects, because these would answer again after its removal.
    private func isReplaced(_ old: StoredHead, by head: StoredHead, _ ask: CacheRequest) -> Bool {
        head.varyNames.isEmpty && !old.varyNames.isEmpty && Caching.selects(stored: old, request: ask.request)
    }

    /// Removes other variants of earlier fetches from the tiers behind memory, because a response that answers every
    /// request has come.
    private func removeReplaced(by head: StoredHead, _ ask: CacheRequest, _ number: UInt64) async {
        guard head.varyNames.isEmpty else { return }
        let miss = TierQuestion(ask.key, besides: [head], policy: ask.policy, isUse: false, wantsBody: false)
        for index in tiers.indices where tiers[index].mayHold(ask.key) {
            guard let answer = try? await tiers[index].find(miss) else { continue }
            for other in answer.findings where isReplaced(other.head, by: head, ask) {
                // A shared tier knows the order of responses itself, by their moments.
                guard tiers[index].isShared || other.number < number else { continue }
                tiers[index].remove(reference(ask.key, other.head, number, in: index))
            }
        }
    }

    /// Whether a response of a later request that answers every request has come while this one was being stored behind
    /// memory. Storing it removes the variants that it finds there, and cannot find one that comes later, so that this
    /// one is removed, whichever request it is of. At worst that costs a miss.
    private func isReplacedMeanwhile(_ head: StoredHead, _ ask: CacheRequest, _ number: UInt64) -> Bool {
        guard !head.varyNames.isEmpty else { return false }
        var plain = head
        (plain.varyNames, plain.varyFields) = ([], Fields())
        return isOutdated(plain, ask, number)
    }

    /// Writes the plain file of `store_as`, which other programs read. If that fails, the old file stays as it is.
    private func keepAsFile(_ head: StoredHead, _ ask: CacheRequest) async {
        guard let name = ask.storeAs, ask.content == nil, let files, head.status == 200 else { return }
        if case .lacks = files.known(ask.key, head) { return }
        do {
            if head.fields.contains(.contentEncoding) { throw CodedContent() }
            try await files.keepAsFile(ask.key, head, as: name, onlyIfMissing: false)
            troubles.clear(name)
        } catch {
            troubles.tell(name, error)
        }
    }

    /// Whether a response of a later request is stored already: a slow fetch must not undo a reload.
    private func isOutdated(_ head: StoredHead, _ ask: CacheRequest, _ number: UInt64) -> Bool {
        for tier in tiers {
            if case .holds(let stored, _) = tier.known(ask.key, head), stored > number { return true }
        }
        return memory.peek(ask.key).contains { $0.head.isSameVariant(as: head) && $0.number > number }
    }
}

// MARK: - The answers to validations

extension TieredStore {
    /// Makes a stored response stale in every tier. It stays until it is replaced, so that it can be served if the
    /// origin fails.
    /// - Parameter time: the time when a HEAD showed that the representation has changed, Unix seconds.
    func outdate(_ response: StoredResponse, _ ask: CacheRequest, since time: Int64, on loop: isolated EventLoop) async
    {
        guard response.head.changedSince == nil, isStored(response) else { return }
        let changed = response.changed(since: time)
        if ask.policy.memory, response.body.wholeChunk != nil {
            let held = ResidentResponse(changed)
            var gone: [ResidentResponse] = []
            _ = invalidations.ifUnchanged(invalidations.token(for: ask.key)) {
                let known = memory.peek(ask.key).first { $0.isSameVariant(as: response) }
                if known?.number == response.number { insert(changed, held, ask, &gone) }
            }
        }
        if ask.policy.disk { await freshenBehind(response, changed.head, ask, invalidations.token(for: ask.key)) }
    }

    /// Gives a stored response a new head, in every tier that holds it.
    /// - Parameter isOther: the new head is that of another variant with the same body, and the stored one stays.
    /// - Returns: the response to answer with; it is not stored any more where the new head forbids that, or where the
    ///   key was invalidated since `token`.
    func freshen(
        _ response: StoredResponse,
        head: StoredHead,
        ask: CacheRequest,
        token: InvalidationToken,
        isOther: Bool = false,
        on loop: isolated EventLoop
    ) async -> StoredResponse {
        let rules = InvalidationRule.concerning(head, ask.key)
        let token = token.concerned(by: rules + response.rules)
        let head = numbered(head, token)
        let number = isOther ? token.number : response.number
        let fresh = make(head, response.body, ask, tier: response.tier, number)
        // Fields of an answer to one user must not get into a response that is stored for all.
        guard ask.shares(head) else { return fresh }
        // A response that replaced this one during the validation is newer than the one that the answer confirms.
        guard isStored(response) else { return fresh }
        guard case .store = Caching.decideKeep(head, policy: ask.policy) else {
            if !isOther { remove(response) }
            return fresh
        }
        // A file is named after its selecting fields: under another Vary it would not be found again.
        let isSame = fresh.isSameVariant(as: response)
        if !isOther, !isSame { remove(response) }
        if ask.policy.memory, response.body.wholeChunk != nil {
            let held = ResidentResponse(fresh)
            var gone: [ResidentResponse] = []
            _ = invalidations.ifUnchanged(token) {
                if isOther || !isSame || isStored(response) { insert(fresh, held, ask, &gone) }
            }
        }
        if isSame, !isOther, ask.policy.disk { await freshenBehind(response, head, ask, token) }
        return fresh
    }

    /// Updates the head of a response in the tiers behind memory. If a tier cannot write the new head, the old one
    /// stays and is checked again when it is found. A response that another store has overtaken leaves this store.
    /// - Parameter token: the invalidation token of the check.
    private func freshenBehind(
        _ response: StoredResponse,
        _ head: StoredHead,
        _ ask: CacheRequest,
        _ token: InvalidationToken
    ) async {
        for index in tiers.indices where isStored(response, in: tiers[index]) {
            let commit = TierCommit(
                ask.key,
                head,
                response.body,
                invalidations: invalidations,
                token: token,
                maxVariants: ask.policy.maxVariants,
                moment: moment(before: token.number, in: index)
            )
            do throws(TierError) {
                try await tiers[index].freshen(
                    reference(response.key, response.head, response.number, in: index),
                    commit
                )
            } catch  where tiers[index].isShared && [.outdated, .invalidated].contains(error) {
                memory.remove(ask.key) { $0.number == response.number && $0.head.isSameVariant(as: head) }
                removeBehind(ask.key, head, response.number)
            } catch {}
        }
    }

    /// `head` with the number of the token, so that later rules concern it.
    func numbered(_ head: StoredHead, _ token: InvalidationToken) -> StoredHead {
        var head = head
        head.number = max(head.number, token.number)
        (head.staleSince, head.changedSince) = (nil, nil)
        return head
    }

    /// Whether a tier still has this very response, rather than one of a later fetch or validation.
    private func isStored(_ response: StoredResponse) -> Bool {
        let held = memory.peek(response.key).first { $0.isSameVariant(as: response) }
        if let held { return held.number == response.number && held.head.responseTime <= response.head.responseTime }
        return tiers.contains { isStored(response, in: $0) }
    }

    /// The same for one tier behind memory. A shared tier that cannot tell decides by its own order when it is asked.
    private func isStored(_ response: StoredResponse, in tier: any ResponseTier) -> Bool {
        switch tier.known(response.key, response.head) {
        case .holds(let number, _): number == response.number
        case .lacks: false
        case .unknown: tier.isShared
        }
    }
}

// MARK: - Removals, room and seeds

extension TieredStore {
    // MARK: - Removing

    /// Whether a newer response is known to have replaced one that was found some time ago.
    func isSuperseded(_ response: StoredResponse) -> Bool {
        let head = response.head
        for tier in tiers {
            guard case .holds(let number, let storedAt) = tier.known(response.key, head) else { continue }
            if storedAt > head.responseTime || number > response.number { return true }
        }
        return memory.peek(response.key).contains {
            $0.isSameVariant(as: response) && ($0.number > response.number || $0.head.number != head.number)
        }
    }

    /// Removes one response from every tier; other variants stay.
    func remove(_ response: StoredResponse) {
        memory.remove(response.key) { $0.isSameVariant(as: response) }
        removeBehind(response)
    }

    func removeBehind(_ response: StoredResponse) {
        removeBehind(response.key, response.head, response.number)
    }

    /// Removes a variant from the tiers behind memory, if its number is at most this one.
    func removeBehind(_ key: CacheKey, _ head: StoredHead, _ number: UInt64) {
        for index in tiers.indices { tiers[index].remove(reference(key, head, number, in: index)) }
    }

    /// Removes every variant of a key. The caller has invalidated the key before.
    func remove(_ key: CacheKey) {
        memory.remove(key)
        for tier in tiers { tier.remove(key) }
    }

    // MARK: - The order of shared tiers

    func reference(_ key: CacheKey, _ head: StoredHead, _ number: UInt64, in index: Int) -> TierReference {
        TierReference(key, head, number: number, moment: moment(before: number, in: index))
    }

    /// The last known moment of a tier before the fetch with this number began.
    func moment(before number: UInt64, in index: Int) -> UInt64 {
        tiers[index].isShared ? moments[index].last(before: number) : 0
    }

    /// Applies an invalidation by another store: the responses leave memory, and those that are arriving are not
    /// stored.
    func take(_ news: TierNews) {
        switch news {
        case .keys(let keys):
            for key in keys {
                invalidations.invalidate(key)
                memory.remove(key)
            }
        case .rules(let rules):
            let number = invalidations.invalidate(rules)
            memory.remove(concerned: Set(rules), before: number)
        case .everything:
            invalidations.invalidateAll()
            memory.removeAll()
        }
    }

    // MARK: - Room

    package var hasTiersBehind: Bool { !tiers.isEmpty }

    /// Whether the memory tier takes a body of this length when it has room.
    func takesInMemory(_ bytes: Int) -> Bool { memory.takes(bytes) }

    /// Whether the memory tier has room for this many bytes now, beside removed responses that are still being sent.
    func hasMemory(for bytes: Int) -> Bool { memory.hasRoom(for: bytes) }

    /// The reason why no tier behind memory would take a body of this length now; nil if one would.
    func refusal(of bytes: Int) -> TierRefusal? {
        var first: TierRefusal?
        for tier in tiers {
            guard let refusal = tier.refusal(of: bytes) else { return nil }
            first = first ?? refusal
        }
        return first
    }

    // MARK: - Invalidation

    /// Puts rules in force for all stores that share a tier, and across restarts; returns when that is done.
    func invalidateBehind(_ rules: [InvalidationRule], number: UInt64) async {
        for tier in tiers { await tier.invalidate(rules, number: number) }
    }

    /// Removes the responses that the hard rules in force concern from all tiers. Must not run on a loop.
    func removeInvalid() async {
        for tier in tiers { tier.sweep() }
        await settleSweep()
        memory.removeInvalid(invalidations)
    }

    func settleSweep() async {
        for tier in tiers { await tier.settleSweep() }
    }

    /// Purges memory. Must not run on a loop.
    /// - Returns: the number of responses that were removed or made stale and that no tier behind memory is known to
    ///   have; the
    ///   others are counted there.
    func purgeMemory(_ rules: [PurgeRule], number: UInt64, now: Int64) -> Int {
        let gone = memory.purge(rules, number: number, now: now, pins: invalidations.pins)
        if tiers.isEmpty { return gone.count }
        return gone.count { response in
            let head = response.response.head
            return !tiers.contains { if case .holds = $0.known(response.key, head) { true } else { false } }
        }
    }

    /// Purges the tiers behind memory.
    /// - Returns: the number of stored responses there that the purges concern.
    func purgeBehind(_ rules: [PurgeRule], number: UInt64) async -> Int {
        var count = 0
        for tier in tiers { count += await tier.purge(rules, number: number) }
        invalidations.endCount(number)
        // Without other tiers, only memory could have responses that the rules concern.
        if tiers.isEmpty { invalidations.markSwept(rules.filter { !$0.isSoft }.map { ($0, number) }) }
        return count
    }

    // MARK: - Seeds and plain files

    /// Whether a response of a key is known to be stored that arrived, or was confirmed, at this time or later; Unix
    /// seconds.
    func isKnownToHold(_ key: CacheKey, since time: Int64) -> Bool {
        memory.peek(key).contains { $0.head.responseTime >= time }
            || tiers.contains { $0.isKnownToHold(key, since: time, besides: []) }
    }

    /// Copies a seed into a file of the store.
    /// - Returns: false if no tier has files.
    func adoptAsFile(
        _ copy: SeedCopy,
        _ head: StoredHead,
        _ key: CacheKey,
        _ token: InvalidationToken,
        _ policy: CachePolicy
    ) async throws(TierError) -> Bool {
        guard let files else { return false }
        let commit = TierCommit(
            key,
            head,
            copy.body,
            invalidations: invalidations,
            token: token,
            maxVariants: policy.maxVariants
        )
        try await files.adopt(copy, commit)
        memory.remove(key) { $0.head.isSameVariant(as: head) && $0.number < token.number }
        return true
    }

    /// Copies a seed into memory.
    /// - Returns: false if a response that is at least as new is there.
    func adoptInMemory(
        _ copy: SeedCopy,
        _ head: StoredHead,
        _ key: CacheKey,
        _ token: InvalidationToken,
        _ policy: CachePolicy
    ) async throws -> Bool {
        let chunk = try await copy.chunk()
        // Earlier purges do not concern the seed.
        var head = head
        head.number = token.number
        // No route has this format of the head, so that the head is prepared again at the first request.
        let response = StoredResponse(
            key: key,
            head: head,
            body: .complete(chunk),
            preparedHead: [],
            hot: nil,
            tier: .memory,
            number: token.number
        )
        var isInserted = false
        var gone: [ResidentResponse] = []
        _ = invalidations.ifUnchanged(token) {
            isInserted = memory.insert(response, as: nil, maxVariants: policy.maxVariants, gone: &gone)
        }
        return isInserted
    }
}

// MARK: - The choice of tiers

/// The tiers that get a response when all of it has arrived.
struct TierPlacement: Equatable {
    var inMemory: Bool
    var onDisk: Bool
    /// The reason why no tier takes the response; nil if one does.
    var refusal: UnstoredReason?

    /// Makes a placement in no tier.
    init(refused refusal: UnstoredReason) { (inMemory, onDisk, self.refusal) = (false, false, refusal) }

    /// Chooses the tiers by policy and length.
    /// - Parameter length: the declared length of the body in bytes; nil if none is declared.
    init(_ policy: CachePolicy, _ context: FetchContext, length: Int?) {
        let bytes = length ?? 0
        let hasDisk = policy.disk && context.store.hasTiersBehind
        let fitsDisk = hasDisk && bytes <= context.diskMaxObject
        let refused = fitsDisk ? context.store.refusal(of: bytes) : nil
        let fitsMemory = policy.memory && context.fitsMemory(bytes)
        inMemory = fitsMemory && context.store.hasMemory(for: bytes) && context.budget.mayKeep(bytes, more: bytes)
        if fitsMemory, !inMemory { context.budget.noteRefusal() }
        onDisk = fitsDisk && refused == nil
        if inMemory || onDisk {
            refusal = nil
        } else if fitsMemory {
            refusal = .noMemory
        } else if !policy.memory && !hasDisk {
            refusal = .tiersOff
        } else {
            refusal = fitsDisk ? (refused == .fails ? .diskFails : .noRoom) : .tooLarge
        }
    }

    /// The reason why no tier has a complete response that was to be stored: the memory tier does not take it, and no
    /// file of it was written.
    /// - Parameters:
    ///   - length: the length of the body in bytes, which may have been unknown at the start of the fetch.
    ///   - isWindowed: whether the body was to be written to the disk from memory.
    func shortfall(_ context: FetchContext, length: Int, isWindowed: Bool) -> UnstoredReason {
        if inMemory && context.fitsMemory(length) || onDisk && isWindowed { return .noMemory }
        return onDisk ? .diskFails : .tooLarge
    }
}
