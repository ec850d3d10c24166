// Memory in front of all other tiers: finds the stored responses of a key, and moves requested ones to memory.

import CacheStore
import EventLoop
import HTTPCaching
import HTTPWire

/// The memory tier, with a lookup that does not wait, and any number of tiers behind it. Callers use the store and know
/// none of its tiers, except that the fast path uses memory directly.
///
/// Sendable: all members are.
package final class TieredStore: Sendable {
    /// The result of a search for a key; loop-bound. It is one object, so that a request which waits for a tier has one
    /// reference in its frames.
    final class Found {
        /// The newest response that the request selects.
        var response: StoredResponse?
        var tier = StoreTier.memory
        /// Whether only memory was searched, so that no invalidation can have happened since.
        var isAtOnce = true
        /// The newest response of the key, because the next one probably has the same Vary.
        var newest: StoredHead?

        func note(_ variants: [StoredHead]) {
            for head in variants where head.responseTime > newest?.responseTime ?? .min { newest = head }
        }
    }

    /// A search that goes on behind memory; loop-bound.
    private final class Search {
        let ask: CacheRequest
        let token: InvalidationToken
        let found: Found
        let inMemory: [StoredResponse]
        /// The heads of the responses in memory.
        let known: [StoredHead]
        let question: TierQuestion
        /// The findings in the tier that was asked last.
        var behind: [TierFinding] = []

        init(_ ask: CacheRequest, _ token: InvalidationToken, _ found: Found, _ inMemory: [StoredResponse]) {
            self.ask = ask
            self.token = token
            self.found = found
            self.inMemory = inMemory
            known = inMemory.map(\.head)
            question = TierQuestion(ask.key, besides: known, policy: ask.policy)
        }
    }

    let memory: MemoryTier
    /// The tiers behind memory, in the order in which they are asked.
    let tiers: [any ResponseTier]
    /// The first tier with files, which takes arriving bodies and whose open files the fast path answers from.
    let files: (any FileTier)?
    let invalidations: Invalidations
    /// Reports failures to write the files of `store_as`.
    package let troubles = StoredFileTroubles()
    /// The moments of each tier, in the order of `tiers`.
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
        // A tier may be slow: if the key is invalidated before it has answered, it is asked once more.
        for _ in 0..<2 {
            let search: Search
            switch findInMemory(ask) {
            case .ended(let found): return found
            case .goesOn(let begun): search = begun
            }
            await findBehind(search)
            found = search.found
            if isSettled(search) { return found }
        }
        found.response = nil
        return found
    }

    // The parts of a search that never wait are separate functions, so that a request that waits for a tier has none of
    // their variables in its frames.

    private enum InMemory {
        case ended(Found)
        case goesOn(Search)
    }

    @inline(never) private func findInMemory(_ ask: CacheRequest) -> InMemory {
        let (found, token) = (Found(), invalidations.token(for: ask.key))
        let inMemory = ask.policy.memory ? valid(memory.variants(ask.key)) : []
        let known = inMemory.map(\.head)
        found.note(known)
        if let chosen = Caching.select(from: known, request: ask.request, policy: ask.policy),
            !isKnownBehind(since: inMemory[chosen].head.responseTime, besides: known, ask)
        {
            found.response = prepared(inMemory[chosen], ask, token)
            return .ended(found)
        }
        return .goesOn(Search(ask, token, found, inMemory))
    }

    /// Whether nothing was invalidated while tiers were asked.
    @inline(never) private func isSettled(_ search: Search) -> Bool {
        search.found.response != nil && search.found.isAtOnce || invalidations.isUnchanged(search.token)
    }

    @inline(never) private func findBehind(_ search: Search) async {
        guard asksBehind(search) else { return }
        for number in tiers.indices {
            await look(number, search)
            while let index = choose(search) {
                guard let response = await open(index, number, search) else {
                    // The finding's file is damaged or missing, so that the other candidates are tried.
                    search.behind.remove(at: index)
                    continue
                }
                return take(response, of: number, search)
            }
        }
        chooseInMemory(search)
    }

    @inline(never) private func look(_ number: Int, _ search: Search) async {
        note(await findings(number, search.question), search)
    }

    @inline(never) private func open(_ index: Int, _ number: Int, _ search: Search) async -> StoredResponse? {
        await open(search.behind[index], number, search.question)
    }

    @inline(never) private func asksBehind(_ search: Search) -> Bool { search.ask.policy.disk }

    @inline(never) private func note(_ findings: [TierFinding], _ search: Search) {
        search.found.isAtOnce = false
        search.behind = findings
        search.found.note(findings.map(\.head))
    }

    /// The index of a finding that the request selects. Nil if there is none, or if memory has the newest response of
    /// this tier, so that another tier may have a newer one.
    @inline(never) private func choose(_ search: Search) -> Int? {
        let (ask, known) = (search.ask, search.known)
        let all = known + search.behind.map(\.head)
        let chosen = Caching.select(from: all, request: ask.request, policy: ask.policy)
        return chosen.flatMap { $0 < known.count ? nil : $0 - known.count }
    }

    @inline(never) private func take(_ response: StoredResponse, of number: Int, _ search: Search) {
        let (found, ask) = (search.found, search.ask)
        found.tier = tiers[number].name
        if let files, files === tiers[number] {
            files.makeReady(response, headFormatID: ask.headFormatID) {
                ResidentResponse(make(response.head, .complete([]), ask, tier: files.name, response.number))
            }
        }
        found.response = promote(response, ask, search.token, among: search.known + search.behind.map(\.head))
    }

    /// Chooses among the responses in memory again, because rules may have invalidated some while the tiers were asked.
    @inline(never) private func chooseInMemory(_ search: Search) {
        let (left, ask) = (valid(search.inMemory), search.ask)
        if let chosen = Caching.select(from: left.map(\.head), request: ask.request, policy: ask.policy) {
            search.found.response = prepared(left[chosen], ask, search.token)
        }
    }

    /// The findings of a tier that no rule has invalidated; none if the tier fails.
    private func findings(_ number: Int, _ miss: TierQuestion) async -> [TierFinding] {
        guard let answer = try? await tiers[number].find(miss) else { return [] }
        return valid(answer, of: number)
    }

    @inline(never) private func valid(_ answer: TierAnswer, of number: Int) -> [TierFinding] {
        guard tiers[number].isShared else { return answer.findings.compactMap(valid) }
        // Another store's number has no meaning here: the responses in the answer are as late as the answer.
        let own = moments[number].note(answer.moment, invalidations)
        return answer.findings.compactMap { valid(numbered($0, own)) }
    }

    /// The response of a finding, with its body; nil if it cannot be read, or if rules have invalidated it meanwhile.
    private func open(_ finding: TierFinding, _ number: Int, _ miss: TierQuestion) async -> StoredResponse? {
        if let response = finding.response { return usable(response, miss) }
        guard let opened = try? await tiers[number].open(finding, miss) else { return nil }
        return valid(opened, finding, number, miss)
    }

    @inline(never) private func usable(_ response: StoredResponse, _ miss: TierQuestion) -> StoredResponse? {
        response.usable(under: miss.policy)
    }

    @inline(never) private func valid(
        _ opened: StoredResponse,
        _ finding: TierFinding,
        _ number: Int,
        _ miss: TierQuestion
    ) -> StoredResponse? {
        let response = tiers[number].isShared ? opened.renumbered(finding.number, finding.head.number) : opened
        return valid([response.usable(under: miss.policy)]).first
    }

    private func numbered(_ finding: TierFinding, _ number: UInt64) -> TierFinding {
        var head = finding.head
        head.number = number
        let response = finding.response?.renumbered(number, number)
        return TierFinding(finding.key, head, number: number, response: response)
    }

    /// Whether a tier behind memory is known to have a variant that is not in memory and arrived at this time or later,
    /// such as one with a long body.
    private func isKnownBehind(since time: Int64, besides heads: [StoredHead], _ ask: CacheRequest) -> Bool {
        ask.policy.disk && tiers.contains { $0.isKnownToHold(ask.key, since: time, besides: heads) }
    }

    /// Whether a tier may have anything of a key. Does not wait.
    func mayHold(_ key: CacheKey, _ policy: CachePolicy) -> Bool {
        policy.memory && !memory.variants(key).isEmpty || policy.disk && tiers.contains { $0.mayHold(key) }
    }

    /// All stored responses of a key: those in memory, then those behind it that are not in memory.
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

    /// All stored responses of a key with the tiers that have them, including invalidated ones. Nothing changes, except
    /// that damaged ones are removed.
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

    /// The variants that no rule has invalidated; the others are removed from their tiers.
    private func valid(_ variants: [StoredResponse]) -> [StoredResponse] {
        variants.compactMap { response in
            if let judged = judged(response) { return judged }
            memory.remove(response.key) { $0.isSame(as: response) }
            if response.tier != .memory { removeBehind(response) }
            return nil
        }
    }

    /// The finding of a tier if no rule has invalidated it; otherwise it is removed from its tier.
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

    /// The response under the invalidation rules: unchanged, made stale, or nil if it is invalid.
    func judged(_ response: StoredResponse) -> StoredResponse? {
        switch invalidations.verdict(response) {
        case .valid: return response
        case .gone: return nil
        case .stale(let since):
            // The response must not become fresh again after the clock was set back.
            let since = min(since, clock.now())
            return response.head.staleSince == since ? response : response.stale(since: since)
        }
    }

    // MARK: - Memory

    /// The response with a head that is prepared for this route; prepared anew if that was for another route, or before
    /// a reload.
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

    /// Adds a response with a small body, which was read from another tier, to the memory tier.
    /// - Parameter variants: all variants of the key; if they vary by different fields, more than one may be selected,
    ///   and the
    ///   hot path, which sees those in memory only, does not choose.
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
            // A response that has come into memory while the tier was asked is newer.
            if !memory.peek(ask.key).contains(where: { $0.isSameVariant(as: copy) }) { insert(copy, held, ask, &gone) }
        }
        return copy
    }

    /// Adds a response to memory.
    /// - Parameters:
    ///   - held: made before the call, to keep the time under the lock short.
    ///   - gone: gets the evicted responses; the caller releases them after the lock, because their deinit runs code.
    /// - Returns: false if the memory tier does not take it.
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
