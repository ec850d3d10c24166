// Memory before disk: finds the stored responses of a key, and moves to memory what is asked for.

internal import CacheStore
internal import EventLoop
internal import HTTPCaching
internal import HTTPWire

/// Sendable: its members are.
final class TieredStore: Sendable {
    /// What was found under a key.
    struct Found {
        /// The newest response that the request selects.
        var response: StoredResponse?
        var tier = StoreTier.memory
        /// The newest response of all: what it varies by, the next one probably varies by, too.
        var newest: StoredHead?

        mutating func note(_ variants: [StoredHead]) {
            for head in variants where head.responseTime > newest?.responseTime ?? .min { newest = head }
        }
    }

    let memory: MemoryTier
    let disk: DiskTier?
    let generations: Generations
    let troubles = StoredFileTroubles()
    private let clock: WallClock

    init(memory: MemoryTier, disk: DiskTier?, generations: Generations, clock: WallClock) {
        self.memory = memory
        self.disk = disk
        self.generations = generations
        self.clock = clock
    }

    // MARK: - Finding

    func find(_ ask: CacheAsk, on loop: isolated EventLoop) async -> Found {
        var found = Found()
        let token = generations.note(ask.key)
        let inMemory = ask.policy.memory ? valid(memory.variants(ask.key)) : []
        let known = inMemory.map(\.head)
        found.note(known)
        if let chosen = Caching.select(from: known, request: ask.request, policy: ask.policy),
            !hasNewer(than: inMemory[chosen], besides: inMemory, ask)
        {
            found.response = prepared(inMemory[chosen], ask, token)
            return found
        }
        guard ask.policy.disk, let disk else { return found }
        let entries = inMemory.isEmpty ? disk.lookup(ask.key) : disk.lookup(ask.key, besides: known)
        // Of several, heads tell which one it is, and only the body of that one is opened.
        var onDisk = entries.count > 1 ? valid(await disk.heads(entries)) : []
        var only = entries.count == 1 ? await load(entries, ask, disk).first : nil
        if let only { onDisk = [(only.diskEntry ?? entries[0], only.head)] }
        found.note(onDisk.map(\.head))
        while let chosen = Caching.select(
            from: known + onDisk.map(\.head),
            request: ask.request,
            policy: ask.policy
        ) {
            if chosen < known.count {
                found.response = prepared(inMemory[chosen], ask, token)
                return found
            }
            let place = chosen - known.count
            if only == nil { only = await load([onDisk[place].entry], ask, disk).first }
            guard let response = only else {
                // Its body is damaged, or it has gone since: what is left may do.
                onDisk.remove(at: place)
                continue
            }
            found.tier = .disk
            disk.makeReady(response, shape: ask.shape) {
                HeldResponse(make(response.head, .complete([]), ask, tier: .disk, response.number))
            }
            found.response = promote(response, ask, token, among: known + onDisk.map(\.head))
            return found
        }
        return found
    }

    /// Whether the disk has a variant that memory has not and that came later: a long body, for one.
    private func hasNewer(
        than response: StoredResponse,
        besides variants: [StoredResponse],
        _ ask: CacheAsk
    ) -> Bool {
        guard ask.policy.disk, let disk else { return false }
        let time = response.head.responseTime
        // Not more than memory has that are as new: no need to tell them by name.
        let known = variants.count { $0.head.responseTime >= time }
        guard disk.count(of: ask.key, since: time) > known else { return false }
        return disk.lookup(ask.key, besides: variants.map(\.head)).contains { $0.storedAt >= time }
    }

    /// All stored responses of a key, those in memory first, and those on the disk that are not in memory.
    func variants(_ ask: CacheAsk, on loop: isolated EventLoop) async -> [StoredResponse] {
        let inMemory = ask.policy.memory ? valid(memory.peek(ask.key)) : []
        guard ask.policy.disk, let disk else { return inMemory }
        let entries = disk.lookup(ask.key, besides: inMemory.map(\.head))
        return inMemory + (await load(entries, ask, disk, isUse: false))
    }

    /// The heads of all stored responses of a key.
    func heads(_ ask: CacheAsk, on loop: isolated EventLoop) async -> [StoredHead] {
        let inMemory = ask.policy.memory ? valid(memory.peek(ask.key)) : []
        guard ask.policy.disk, let disk else { return inMemory.map(\.head) }
        let entries = disk.lookup(ask.key, besides: inMemory.map(\.head))
        return inMemory.map(\.head) + (entries.isEmpty ? [] : valid(await disk.heads(entries)).map(\.head))
    }

    /// All stored responses of a key with the tiers that hold them, invalidated ones too; nothing changes by it but that
    /// damaged files go.
    func all(_ ask: CacheAsk, on loop: isolated EventLoop) async -> [(response: StoredResponse, tiers: [StoreTier])] {
        let inMemory = ask.policy.memory ? memory.peek(ask.key) : []
        guard ask.policy.disk, let disk else { return inMemory.map { ($0, [.memory]) } }
        var all = inMemory.map { response in
            (response, disk.holds(ask.key, response.head) ? [StoreTier.memory, .disk] : [.memory])
        }
        for entry in disk.lookup(ask.key, besides: inMemory.map(\.head)) {
            if let response = try? await disk.load(entry, via: nil, policy: ask.policy, isUse: false) {
                all.append((response, [.disk]))
            }
        }
        return all
    }

    private func load(
        _ entries: [DiskEntry],
        _ ask: CacheAsk,
        _ disk: DiskTier,
        isUse: Bool = true
    ) async -> [StoredResponse] {
        var loaded: [StoredResponse] = []
        for entry in entries {
            // What cannot be loaded is absent or damaged: the disk tier has given it up, and it counts as a miss.
            if let response = disk.loaded(entry, isUse: isUse) {
                loaded.append(response)
            } else if let response = try? await disk.load(entry, via: nil, policy: ask.policy, isUse: isUse) {
                loaded.append(response)
            }
        }
        return valid(loaded.map { $0.usable(under: ask.policy) })
    }

    /// Those that no rule has invalidated; the others leave their tier now that they have been met.
    private func valid(_ variants: [StoredResponse]) -> [StoredResponse] {
        variants.compactMap { response in
            if let judged = judged(response) { return judged }
            memory.remove(response.key) { $0.isSame(as: response) }
            if let entry = response.diskEntry { disk?.remove(entry) }
            return nil
        }
    }

    /// The same of what is on the disk.
    private func valid(_ heads: [DiskHead]) -> [(entry: DiskEntry, head: StoredHead)] {
        heads.compactMap { found in
            let key = found.entry.key
            switch generations.verdict(found.head, key, InvalidationRule.concerning(found.head, key)) {
            case .valid: return (found.entry, found.head)
            case .gone:
                disk?.remove(found.entry)
                return nil
            case .stale(let since):
                var head = found.head
                head.staleSince = min(head.staleSince ?? .max, since, clock.now())
                return (found.entry, head)
            }
        }
    }

    /// A response as the rules leave it: as it is, stale, or nil where it is gone.
    func judged(_ response: StoredResponse) -> StoredResponse? {
        switch generations.verdict(response) {
        case .valid: return response
        case .gone: return nil
        case .stale(let since):
            // A clock that was set back must not make it fresh again.
            let since = min(since, clock.now())
            return response.head.staleSince == since ? response : response.stale(since: since)
        }
    }

    /// A response whose ready head was made for another route, or before a reload, is made ready anew.
    private func prepared(_ response: StoredResponse, _ ask: CacheAsk, _ token: GenerationToken) -> StoredResponse {
        guard response.shape != ask.shape, response.body.wholeChunk != nil else { return response }
        let fresh = make(response.head, response.body, ask, tier: .memory, response.number)
        let held = HeldResponse(fresh)
        var gone: [HeldResponse] = []
        _ = generations.ifUnchanged(token.concerned(by: fresh.rules, arrivedAt: fresh.head.responseTime)) {
            if memory.peek(ask.key).contains(where: { $0.isSame(as: response) }) { insert(fresh, held, ask, &gone) }
        }
        return fresh
    }

    /// A small body has come into memory with its head: the memory tier keeps it.
    /// - Parameter variants: all of the key; where they vary by different fields, more than one may be selected, and the hot
    ///   path, which sees those in memory only, does not choose.
    private func promote(
        _ response: StoredResponse,
        _ ask: CacheAsk,
        _ token: GenerationToken,
        among variants: [StoredHead]
    ) -> StoredResponse {
        guard ask.policy.memory, response.body.wholeChunk != nil else { return response }
        let isHot = variants.allSatisfy { $0.varyNames == response.head.varyNames }
        let copy = make(response.head, response.body, ask, tier: .memory, response.number, isHot: isHot)
        let held = HeldResponse(copy)
        var gone: [HeldResponse] = []
        _ = generations.ifUnchanged(token.concerned(by: copy.rules, arrivedAt: copy.head.responseTime)) {
            // What has come into memory while the file was read is newer.
            if !memory.peek(ask.key).contains(where: { $0.isSameVariant(as: copy) }) { insert(copy, held, ask, &gone) }
        }
        return copy
    }

    /// - Parameters:
    ///   - held: made before, since others wait while the generations are held.
    ///   - gone: what has to go for it; the caller lets go of it when the generations are free again.
    /// - Returns: false where the memory tier does not take it.
    @discardableResult
    func insert(
        _ response: StoredResponse,
        _ held: HeldResponse?,
        _ ask: CacheAsk,
        _ gone: inout [HeldResponse]
    ) -> Bool {
        memory.insert(response, as: held, maxVariants: ask.policy.maxVariants, gone: &gone)
    }

    func make(
        _ head: StoredHead,
        _ body: Body,
        _ ask: CacheAsk,
        tier: StoreTier,
        _ number: UInt64,
        isHot: Bool = true
    ) -> StoredResponse {
        let head = Caching.usable(head, policy: ask.policy)
        // The hot path looks at no seed: what stands behind one is found on the waiting path only.
        let isHot = isHot && ask.seed?.shadows(ask.key) != true
        return StoredResponse(
            key: ask.key,
            head: head,
            body: body,
            preparedHead: ask.prepare(head),
            hot: isHot ? Caching.hotPath(stored: head, policy: ask.policy) : nil,
            tier: tier,
            shape: ask.shape,
            number: number
        )
    }

    /// Whether something newer has taken the place of a response that was found a while ago.
    func isSuperseded(_ response: StoredResponse) -> Bool {
        let head = response.head
        if let entry = disk?.entry(response.key, head), entry.storedAt > head.responseTime { return true }
        if disk?.hasNewer(response.key, head, than: response.number) == true { return true }
        return memory.peek(response.key).contains {
            $0.isSameVariant(as: response) && ($0.number > response.number || $0.head.number != head.number)
        }
    }

    /// Removes one response from both tiers; other variants stay.
    func remove(_ response: StoredResponse) {
        memory.remove(response.key) { $0.isSameVariant(as: response) }
        if let disk, let entry = disk.entry(response.key, response.head) { disk.remove(entry) }
    }
}
