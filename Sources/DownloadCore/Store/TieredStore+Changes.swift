// What changes the tiers of a store: responses that have come, the answers to validations, removals, purges and seeds.

import CacheStore
import EventLoop
import HTTPCaching
import HTTPWire

extension TieredStore {
    /// - Parameter expected: the declared length of the body in bytes; zero where none is declared.
    func makeSpill(expected: Int64) -> SpillFile? { files?.makeSpill(expected: expected) }

    /// Stores a complete response, unless its key was invalidated since its fetch began, or a newer one is stored.
    /// - Parameters:
    ///   - body: the complete body, as its readers have it.
    ///   - whole: the body in memory, if it is there as a whole.
    ///   - spill: the body's file, if it was written during the transfer.
    ///   - placement: the tiers that may store it.
    ///   - otherwise: the reason to report if the memory tier does not take it and no file was written.
    ///   - done: called when all tiers have it, or will not have it, with the reason where none has it; any thread.
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
                // What it replaces, and what would answer in its stead before a tier behind is asked.
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
                // Another store has a later one, or has invalidated it: the next question finds what there is.
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
        for place in tiers.indices {
            let tier = tiers[place]
            let commit = TierCommit(
                ask.key,
                head,
                files === tier ? body : whole ?? body,
                spill: files === tier ? spill : nil,
                invalidations: invalidations,
                token: token,
                maxVariants: ask.policy.maxVariants,
                moment: moment(before: token.number, in: place)
            )
            do throws(TierError) {
                try await tier.commit(commit)
                isStored = true
            } catch {
                // It has been answered all the same; what it replaces is outdated.
                tier.remove(reference(ask.key, head, token.number, in: place))
                first = first ?? error
                if tier.isShared, [.outdated, .invalidated].contains(error) { isOvertaken = true }
            }
        }
        return (isStored ? nil : first, isOvertaken)
    }

    /// What answers every request takes the place of the variants that the request which brought it selects: they
    /// would come back when it goes.
    private func isReplaced(_ old: StoredHead, by head: StoredHead, _ ask: CacheRequest) -> Bool {
        head.varyNames.isEmpty && !old.varyNames.isEmpty && Caching.selects(stored: old, request: ask.request)
    }

    /// Removes other variants of earlier fetches from the tiers behind memory, where one that
    /// answers every request has come.
    private func removeReplaced(by head: StoredHead, _ ask: CacheRequest, _ number: UInt64) async {
        guard head.varyNames.isEmpty else { return }
        let miss = TierQuestion(ask.key, besides: [head], policy: ask.policy, isUse: false, wantsBody: false)
        for place in tiers.indices where tiers[place].mayHold(ask.key) {
            guard let answer = try? await tiers[place].find(miss) else { continue }
            for other in answer.findings where isReplaced(other.head, by: head, ask) {
                // A shared tier knows by the moment which of them are earlier.
                guard tiers[place].isShared || other.number < number else { continue }
                tiers[place].remove(reference(ask.key, other.head, number, in: place))
            }
        }
    }

    /// Whether a response of a later request has come that answers every request, while this one was being stored in the
    /// tiers behind memory. Who stores it removes the variants that it finds there, and cannot find one that comes after:
    /// that one goes by itself, whoever asked for it. At worst that costs a miss.
    private func isReplacedMeanwhile(_ head: StoredHead, _ ask: CacheRequest, _ number: UInt64) -> Bool {
        guard !head.varyNames.isEmpty else { return false }
        var plain = head
        (plain.varyNames, plain.varyFields) = ([], Fields())
        return isOutdated(plain, ask, number)
    }

    /// The file that others read instead of asking. One that cannot be written stays as it is.
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
    /// Makes a stored response stale in every tier. It stays until it is replaced, so that it can be
    /// served if the origin fails.
    /// - Parameter time: when a HEAD showed that the representation has changed, Unix seconds.
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

    /// Gives a response its new head in the tiers behind memory. One that cannot be written stays as it is there: it is
    /// checked again where it is found. One that another store has overtaken leaves this store.
    /// - Parameter token: of the check.
    private func freshenBehind(
        _ response: StoredResponse,
        _ head: StoredHead,
        _ ask: CacheRequest,
        _ token: InvalidationToken
    ) async {
        for place in tiers.indices where isStored(response, in: tiers[place]) {
            let commit = TierCommit(
                ask.key,
                head,
                response.body,
                invalidations: invalidations,
                token: token,
                maxVariants: ask.policy.maxVariants,
                moment: moment(before: token.number, in: place)
            )
            do throws(TierError) {
                try await tiers[place].freshen(
                    reference(response.key, response.head, response.number, in: place),
                    commit
                )
            } catch  where tiers[place].isShared && [.outdated, .invalidated].contains(error) {
                memory.remove(ask.key) { $0.number == response.number && $0.head.isSameVariant(as: head) }
                removeBehind(ask.key, head, response.number)
            } catch {}
        }
    }

    /// `head` as one that was brought or confirmed by what began at the token's moment: later rules concern it.
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

    /// The same of one tier behind memory; of a shared one that cannot tell, its own order decides when it is asked.
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

    /// Whether something newer is known to have taken the place of a response that was found a while ago.
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

    /// Removes a variant from the tiers behind memory, up to this number.
    func removeBehind(_ key: CacheKey, _ head: StoredHead, _ number: UInt64) {
        for place in tiers.indices { tiers[place].remove(reference(key, head, number, in: place)) }
    }

    /// Removes every variant of a key. The caller has told the invalidations.
    func remove(_ key: CacheKey) {
        memory.remove(key)
        for tier in tiers { tier.remove(key) }
    }

    // MARK: - The order of shared tiers

    func reference(_ key: CacheKey, _ head: StoredHead, _ number: UInt64, in place: Int) -> TierReference {
        TierReference(key, head, number: number, moment: moment(before: number, in: place))
    }

    /// The last moment of a tier that was known when what has this number began.
    func moment(before number: UInt64, in place: Int) -> UInt64 {
        tiers[place].isShared ? moments[place].last(before: number) : 0
    }

    /// What another store has invalidated leaves memory, and what is on its way is not stored.
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

    /// Whether the memory tier takes a body of so many bytes when it has room.
    func takesInMemory(_ bytes: Int) -> Bool { memory.takes(bytes) }

    /// Whether the memory tier has room for as much now, beside what has gone and is still sent.
    func hasMemory(for bytes: Int) -> Bool { memory.hasRoom(for: bytes) }

    /// Why no tier behind memory would take a body of so many bytes now; nil where one does.
    func refusal(of bytes: Int) -> TierRefusal? {
        var first: TierRefusal?
        for tier in tiers {
            guard let refusal = tier.refusal(of: bytes) else { return nil }
            first = first ?? refusal
        }
        return first
    }

    // MARK: - Invalidation

    /// Returns when rules hold for all who share a tier, and outlive the process.
    func invalidateBehind(_ rules: [InvalidationRule], number: UInt64) async {
        for tier in tiers { await tier.invalidate(rules, number: number) }
    }

    /// Removes from all tiers what the hard rules in force concern. Not on a loop.
    func removeInvalid() async {
        for tier in tiers { tier.sweep() }
        await settleSweep()
        memory.removeInvalid(invalidations)
    }

    func settleSweep() async {
        for tier in tiers { await tier.settleSweep() }
    }

    /// Purges memory. Not on a loop.
    /// - Returns: how many responses are gone or stale that no tier behind is known to hold: those are counted there.
    func purgeMemory(_ rules: [PurgeRule], number: UInt64, now: Int64) -> Int {
        let gone = memory.purge(rules, number: number, now: now, pins: invalidations.pins)
        if tiers.isEmpty { return gone.count }
        return gone.count { response in
            let head = response.response.head
            return !tiers.contains { if case .holds = $0.known(response.key, head) { true } else { false } }
        }
    }

    /// - Returns: how many stored responses the purges concern behind memory.
    func purgeBehind(_ rules: [PurgeRule], number: UInt64) async -> Int {
        var count = 0
        for tier in tiers { count += await tier.purge(rules, number: number) }
        invalidations.endCount(number)
        // Nobody but memory could have anything that they concern.
        if tiers.isEmpty { invalidations.markSwept(rules.filter { !$0.isSoft }.map { ($0, number) }) }
        return count
    }

    // MARK: - Seeds and plain files

    /// Whether a response of a key is known to be stored that arrived, or was confirmed, then or later; Unix seconds.
    func isKnownToHold(_ key: CacheKey, since time: Int64) -> Bool {
        memory.peek(key).contains { $0.head.responseTime >= time }
            || tiers.contains { $0.isKnownToHold(key, since: time, besides: []) }
    }

    /// Copies a seed into a file of its own.
    /// - Returns: false where there is no tier of files.
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
    /// - Returns: false where something as new is there.
    func adoptInMemory(
        _ copy: SeedCopy,
        _ head: StoredHead,
        _ key: CacheKey,
        _ token: InvalidationToken,
        _ policy: CachePolicy
    ) async throws -> Bool {
        let chunk = try await copy.chunk()
        // What was purged before this is something else.
        var head = head
        head.number = token.number
        // No route has this format of the head: the head is prepared again at the first request.
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

/// The tiers that a response goes to when all of it has come.
struct TierPlacement: Equatable {
    var inMemory: Bool
    var onDisk: Bool
    /// Why no tier takes the response; nil if one does.
    var refusal: UnstoredReason?

    /// No tier takes it.
    init(refused refusal: UnstoredReason) { (inMemory, onDisk, self.refusal) = (false, false, refusal) }

    /// - Parameter length: the declared length of the body in bytes, if any.
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

    /// Why no tier has a complete response that was to be stored: the memory tier does not take it, and
    /// no file of it was written.
    /// - Parameters:
    ///   - length: of the body in bytes; it may have been unknown when the fetch began.
    ///   - isWindowed: the body was to be written to the disk from memory.
    func shortfall(_ context: FetchContext, length: Int, isWindowed: Bool) -> UnstoredReason {
        if inMemory && context.fitsMemory(length) || onDisk && isWindowed { return .noMemory }
        return onDisk ? .diskFails : .tooLarge
    }
}
