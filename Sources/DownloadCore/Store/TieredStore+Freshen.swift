// What the answer to a check does to a stored response: a new head, or no freshness any more, in every tier.

import CacheStore
import EventLoop
import HTTPCaching
import HTTPWire

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
