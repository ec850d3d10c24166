// How a response that has come gets into both tiers, and what has to go for it.

internal import CacheStore
internal import EventLoop
internal import HTTPCaching
internal import HTTPWire

extension TieredStore {
    /// - Parameter expected: the declared length of the body in bytes; zero where there is none.
    func makeSpill(expected: Int64) -> SpillFile? { disk?.makeSpill(expected: expected) }

    /// Stores a response that is whole, unless its key was invalidated since its fetch began, or a newer one is stored.
    /// - Parameters:
    ///   - body: as its readers have it, complete.
    ///   - whole: the same in memory, where it is.
    ///   - spill: the body's file, where it was written while it arrived.
    ///   - keeping: the tiers that may have it.
    ///   - otherwise: why none has it, where memory does not and nothing of it was written for the disk.
    ///   - done: called when both tiers have it, or will not have it, with the reason where none has it; any thread.
    func commit(
        _ head: StoredHead,
        _ ask: CacheAsk,
        _ token: GenerationToken,
        body: Body,
        whole: Body?,
        spill: SpillFile?,
        keeping: Keeping,
        otherwise: UnstoredReason,
        done: @escaping @Sendable (UnstoredReason?) -> Void
    ) {
        let rules = InvalidationRule.concerning(head, ask.key)
        let token = token.concerned(by: rules)
        let head = numbered(head, token)
        let number = token.number
        var (isCurrent, isInMemory) = (false, false)
        let fresh = (keeping.inMemory ? whole : nil).map { make(head, $0, ask, tier: .memory, number) }
        let held = fresh.flatMap { HeldResponse($0) }
        var gone: [HeldResponse] = []
        _ = generations.ifUnchanged(token) {
            guard !isOutdated(head, ask, number) else { return }
            isCurrent = true
            if head.varyNames.isEmpty {
                gone = memory.remove(ask.key) { $0.number < number && isReplaced($0.head, by: head, ask) }
            }
            if let fresh {
                isInMemory = insert(fresh, held, ask, &gone)
            } else {
                // What it replaces, and what would answer in its stead without a look at the disk.
                gone += memory.remove(ask.key) {
                    $0.head.isSameVariant(as: head) || $0.hot != nil && $0.head.varyNames != head.varyNames
                }
            }
        }
        guard isCurrent else { return done(.overtaken) }
        let unkept = isInMemory ? nil : otherwise
        guard let disk else { return done(unkept) }
        let (key, generations, maxVariants) = (ask.key, generations, ask.policy.maxVariants)
        guard keeping.onDisk else {
            disk.remove(key, head, before: number)
            guard !before(number, head, ask, disk).isEmpty else { return done(unkept) }
            Task {
                await removeReplaced(by: head, ask, number, disk)
                done(unkept)
            }
            return
        }
        Task {
            do {
                try await disk.commit(
                    body,
                    spill: spill,
                    key: key,
                    head: head,
                    generation: (generations, token),
                    maxVariants: maxVariants,
                    number: number
                )
                await keepAsFile(head, ask)
            } catch {
                // It has been answered all the same, and the statistics count it; what it replaces is outdated.
                disk.remove(key, head, before: number)
                let isGiven = spill != nil || whole != nil
                return done(unkept == nil ? nil : isGiven ? UnstoredReason(error) : otherwise)
            }
            await removeReplaced(by: head, ask, number, disk)
            done(nil)
        }
    }

    /// What answers every request takes the place of the variants that the request which brought it selects: they would come back
    /// when it goes.
    private func isReplaced(_ old: StoredHead, by head: StoredHead, _ ask: CacheAsk) -> Bool {
        head.varyNames.isEmpty && !old.varyNames.isEmpty && Caching.selects(stored: old, request: ask.request)
    }

    /// The files of other variants from earlier fetches, where one that answers every request has come.
    private func before(_ number: UInt64, _ head: StoredHead, _ ask: CacheAsk, _ disk: DiskTier) -> [DiskEntry] {
        guard head.varyNames.isEmpty else { return [] }
        return disk.lookup(ask.key, besides: [head]).filter { $0.fileID < number }
    }

    private func removeReplaced(by head: StoredHead, _ ask: CacheAsk, _ number: UInt64, _ disk: DiskTier) async {
        let others = before(number, head, ask, disk)
        guard !others.isEmpty else { return }
        for other in await disk.heads(others) where isReplaced(other.head, by: head, ask) { disk.remove(other.entry) }
    }

    /// The file that others read instead of asking. One that cannot be written stays as it is.
    private func keepAsFile(_ head: StoredHead, _ ask: CacheAsk) async {
        guard let name = ask.storeAs, ask.content == nil, let disk, head.status == 200,
            let entry = disk.entry(ask.key, head)
        else {
            return
        }
        do {
            if head.fields.contains(.contentEncoding) { throw CodedContent() }
            try await disk.keepAsFile(entry, as: name)
            troubles.clear(name)
        } catch {
            troubles.tell(name, error)
        }
    }

    /// A response that was asked for later is stored already: a slow fetch does not undo a reload.
    private func isOutdated(_ head: StoredHead, _ ask: CacheAsk, _ number: UInt64) -> Bool {
        if disk?.hasNewer(ask.key, head, than: number) == true { return true }
        return memory.peek(ask.key).contains { $0.head.isSameVariant(as: head) && $0.number > number }
    }
}
