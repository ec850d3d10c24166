// How a response that has come gets into the tiers, and what has to go for it.

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
