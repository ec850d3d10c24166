// Memory before all other tiers: finds the stored responses of a key, and moves to memory what is asked for.

import CacheStore
import EventLoop
import HTTPCaching
import HTTPWire

/// Memory in front, with a lookup that does not wait, and any number of tiers behind it. Whoever stands outside asks
/// the store, and knows none of its tiers but memory, which the fast path asks by itself.
///
/// Sendable: its members are.
final class TieredStore: Sendable {
    /// The result of a search for a key.
    struct Found {
        /// The newest response that the request selects.
        var response: StoredResponse?
        var tier = StoreTier.memory
        /// Memory alone was asked, so that nothing can have been invalidated since.
        var isAtOnce = true
        /// The newest response of the key: the next one probably has the same Vary.
        var newest: StoredHead?

        mutating func note(_ variants: [StoredHead]) {
            for head in variants where head.responseTime > newest?.responseTime ?? .min { newest = head }
        }
    }

    let memory: MemoryTier
    /// Behind memory, in the order in which they are asked.
    let tiers: [any ResponseTier]
    /// The first of them whose files take arriving bodies, and whose open files the fast path answers from.
    let files: (any FileTier)?
    let invalidations: Invalidations
    let troubles = StoredFileTroubles()
    /// One a tier.
    let moments: [TierMoments]
    private let clock: WallClock

    init(memory: MemoryTier, behind tiers: [any ResponseTier], invalidations: Invalidations, clock: WallClock) {
        self.memory = memory
        self.tiers = tiers
        self.invalidations = invalidations
        self.clock = clock
        files = tiers.lazy.compactMap { $0 as? any FileTier }.first
        moments = tiers.map { _ in TierMoments() }
        for tier in tiers { tier.listen { [weak self] news in self?.take(news) } }
    }

    // MARK: - Finding

    func find(_ ask: CacheRequest, on loop: isolated EventLoop) async -> Found {
        var found = Found()
        // A tier may be slow: where the key is invalidated before it has answered, it is asked once more.
        for _ in 0..<2 {
            let token = invalidations.token(for: ask.key)
            found = await find(ask, token)
            if found.response != nil && found.isAtOnce || invalidations.isUnchanged(token) { return found }
        }
        found.response = nil
        return found
    }

    private func find(_ ask: CacheRequest, _ token: InvalidationToken) async -> Found {
        var found = Found()
        let inMemory = ask.policy.memory ? valid(memory.variants(ask.key)) : []
        let known = inMemory.map(\.head)
        found.note(known)
        if let chosen = Caching.select(from: known, request: ask.request, policy: ask.policy),
            !isKnownBehind(since: inMemory[chosen].head.responseTime, besides: known, ask)
        {
            found.response = prepared(inMemory[chosen], ask, token)
            return found
        }
        guard ask.policy.disk else { return found }
        let miss = TierQuestion(ask.key, besides: known, policy: ask.policy)
        for number in tiers.indices {
            found.isAtOnce = false
            var behind = await findings(number, miss)
            found.note(behind.map(\.head))
            while let chosen = Caching.select(
                from: known + behind.map(\.head),
                request: ask.request,
                policy: ask.policy
            ) {
                // What memory has is as new as what this tier has; another tier may have something newer.
                if chosen < known.count { break }
                let place = chosen - known.count
                guard let response = await open(behind[place], number, miss) else {
                    // Its file is damaged or gone: try the other candidates.
                    behind.remove(at: place)
                    continue
                }
                found.tier = tiers[number].name
                if let files, files === tiers[number] {
                    files.makeReady(response, headFormatID: ask.headFormatID) {
                        ResidentResponse(make(response.head, .complete([]), ask, tier: files.name, response.number))
                    }
                }
                found.response = promote(response, ask, token, among: known + behind.map(\.head))
                return found
            }
        }
        // The tiers have taken their time: what memory had may have been invalidated meanwhile.
        let left = valid(inMemory)
        if let chosen = Caching.select(from: left.map(\.head), request: ask.request, policy: ask.policy) {
            found.response = prepared(left[chosen], ask, token)
        }
        return found
    }

    /// What a tier has that no rule has invalidated; nothing where the tier fails.
    private func findings(_ number: Int, _ miss: TierQuestion) async -> [TierFinding] {
        let tier = tiers[number]
        guard let answer = try? await tier.find(miss) else { return [] }
        guard tier.isShared else { return answer.findings.compactMap(valid) }
        // Another store's number says nothing here: what the answer holds is as late as the answer.
        let own = moments[number].note(answer.moment, invalidations)
        return answer.findings.compactMap { valid(numbered($0, own)) }
    }

    /// The response of a finding, with its body; nil where it cannot be had, or rules have invalidated it meanwhile.
    private func open(_ finding: TierFinding, _ number: Int, _ miss: TierQuestion) async -> StoredResponse? {
        if let response = finding.response { return response.usable(under: miss.policy) }
        guard let opened = try? await tiers[number].open(finding, miss) else { return nil }
        let response = tiers[number].isShared ? opened.renumbered(finding.number, finding.head.number) : opened
        return valid([response.usable(under: miss.policy)]).first
    }

    private func numbered(_ finding: TierFinding, _ number: UInt64) -> TierFinding {
        var head = finding.head
        head.number = number
        let response = finding.response?.renumbered(number, number)
        return TierFinding(finding.key, head, number: number, response: response)
    }

    /// Whether a tier behind is known to have a variant that memory has not and that came then or
    /// later: a long body, for one.
    private func isKnownBehind(since time: Int64, besides heads: [StoredHead], _ ask: CacheRequest) -> Bool {
        ask.policy.disk && tiers.contains { $0.isKnownToHold(ask.key, since: time, besides: heads) }
    }

    /// Whether a tier may have anything of a key. Does not wait.
    func mayHold(_ key: CacheKey, _ policy: CachePolicy) -> Bool {
        policy.memory && !memory.variants(key).isEmpty || policy.disk && tiers.contains { $0.mayHold(key) }
    }

    /// All stored responses of a key, those in memory first, and those behind it that are not in memory.
    func variants(_ ask: CacheRequest, on loop: isolated EventLoop) async -> [StoredResponse] {
        var variants = ask.policy.memory ? valid(memory.peek(ask.key)) : []
        guard ask.policy.disk else { return variants }
        for number in tiers.indices {
            let known = variants.map(\.head)
            let miss = TierQuestion(ask.key, besides: known, policy: ask.policy, isUse: false)
            for finding in await findings(number, miss) {
                if let response = await open(finding, number, miss) { variants.append(response) }
            }
        }
        return variants
    }

    /// The heads of all stored responses of a key.
    func heads(_ ask: CacheRequest, on loop: isolated EventLoop) async -> [StoredHead] {
        var heads = ask.policy.memory ? valid(memory.peek(ask.key)).map(\.head) : []
        guard ask.policy.disk else { return heads }
        for number in tiers.indices {
            let miss = TierQuestion(ask.key, besides: heads, policy: ask.policy, isUse: false, wantsBody: false)
            heads += await findings(number, miss).map(\.head)
        }
        return heads
    }

    /// All stored responses of a key with the tiers that hold them, invalidated ones too; nothing changes by it
    /// but that damaged ones go.
    func all(_ ask: CacheRequest, on loop: isolated EventLoop) async -> [(response: StoredResponse, tiers: [StoreTier])]
    {
        let inMemory = ask.policy.memory ? memory.peek(ask.key) : []
        guard ask.policy.disk else { return inMemory.map { ($0, [.memory]) } }
        var all = inMemory.map { response in
            let holders = tiers.filter { tier in
                if case .holds = tier.known(ask.key, response.head) { true } else { false }
            }
            return (response, [.memory] + holders.map(\.name))
        }
        for tier in tiers {
            let known = all.map(\.0.head)
            let miss = TierQuestion(ask.key, besides: known, policy: ask.policy, isUse: false)
            guard let answer = try? await tier.find(miss) else { continue }
            for finding in answer.findings {
                var response = finding.response
                if response == nil { response = try? await tier.open(finding, miss) }
                if let response { all.append((response, [tier.name])) }
            }
        }
        return all
    }

    // MARK: - What rules leave of it

    /// Those that no rule has invalidated; the others leave their tiers now that they have been met.
    private func valid(_ variants: [StoredResponse]) -> [StoredResponse] {
        variants.compactMap { response in
            if let judged = judged(response) { return judged }
            memory.remove(response.key) { $0.isSame(as: response) }
            if response.tier != .memory { removeBehind(response) }
            return nil
        }
    }

    /// The same of what a tier has found.
    private func valid(_ finding: TierFinding) -> TierFinding? {
        if let response = finding.response { return valid([response]).first.map { TierFinding($0) } }
        var head = finding.head
        switch invalidations.verdict(head, finding.key, InvalidationRule.concerning(head, finding.key)) {
        case .valid: return finding
        case .gone:
            removeBehind(finding.key, head, finding.number)
            return nil
        case .stale(let since):
            head.staleSince = min(head.staleSince ?? .max, since, clock.now())
            return TierFinding(finding.key, head, number: finding.number)
        }
    }

    /// Applies the invalidation rules to a response: unchanged, made stale, or nil where it is invalid.
    func judged(_ response: StoredResponse) -> StoredResponse? {
        switch invalidations.verdict(response) {
        case .valid: return response
        case .gone: return nil
        case .stale(let since):
            // A clock that was set back must not make it fresh again.
            let since = min(since, clock.now())
            return response.head.staleSince == since ? response : response.stale(since: since)
        }
    }

    // MARK: - Memory

    /// Prepares the head again where it was prepared for another route, or before a reload.
    private func prepared(_ response: StoredResponse, _ ask: CacheRequest, _ token: InvalidationToken) -> StoredResponse
    {
        guard response.headFormatID != ask.headFormatID, response.body.wholeChunk != nil else { return response }
        let fresh = make(response.head, response.body, ask, tier: .memory, response.number)
        let held = ResidentResponse(fresh)
        var gone: [ResidentResponse] = []
        _ = invalidations.ifUnchanged(token.concerned(by: fresh.rules, arrivedAt: fresh.head.responseTime)) {
            if memory.peek(ask.key).contains(where: { $0.isSame(as: response) }) { insert(fresh, held, ask, &gone) }
        }
        return fresh
    }

    /// A small body has come into memory with its head: the memory tier keeps it.
    /// - Parameter variants: all of the key; where they vary by different fields, more than one may be selected, and
    ///   the hot path, which sees those in memory only, does not choose.
    private func promote(
        _ response: StoredResponse,
        _ ask: CacheRequest,
        _ token: InvalidationToken,
        among variants: [StoredHead]
    ) -> StoredResponse {
        guard ask.policy.memory, response.body.wholeChunk != nil else { return response }
        let isHot = variants.allSatisfy { $0.varyNames == response.head.varyNames }
        let copy = make(response.head, response.body, ask, tier: .memory, response.number, isHot: isHot)
        let held = ResidentResponse(copy)
        var gone: [ResidentResponse] = []
        _ = invalidations.ifUnchanged(token.concerned(by: copy.rules, arrivedAt: copy.head.responseTime)) {
            // What has come into memory while the tier was asked is newer.
            if !memory.peek(ask.key).contains(where: { $0.isSameVariant(as: copy) }) { insert(copy, held, ask, &gone) }
        }
        return copy
    }

    /// - Parameters:
    ///   - held: prepared before the call, to keep the time under the lock short.
    ///   - gone: gets the evicted responses; the caller releases them after the lock, since their deinit runs code.
    /// - Returns: false where the memory tier does not take it.
    @discardableResult
    func insert(
        _ response: StoredResponse,
        _ held: ResidentResponse?,
        _ ask: CacheRequest,
        _ gone: inout [ResidentResponse]
    ) -> Bool {
        memory.insert(response, as: held, maxVariants: ask.policy.maxVariants, gone: &gone)
    }

    func make(
        _ head: StoredHead,
        _ body: Body,
        _ ask: CacheRequest,
        tier: StoreTier,
        _ number: UInt64,
        isHot: Bool = true
    ) -> StoredResponse {
        let head = Caching.usable(head, policy: ask.policy)
        // The hot path does not search seeds, so a response behind a pinned seed must not be found there.
        let isHot = isHot && ask.seed?.shadows(ask.key) != true
        return StoredResponse(
            key: ask.key,
            head: head,
            body: body,
            preparedHead: ask.prepare(head),
            hot: isHot ? Caching.hotPath(stored: head, policy: ask.policy) : nil,
            tier: tier,
            headFormatID: ask.headFormatID,
            number: number
        )
    }
}
