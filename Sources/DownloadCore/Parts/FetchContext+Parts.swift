// How parts are kept: begun, joined to what is stored, freshened, and made a whole stored response at last.

internal import CacheStore
internal import Content
internal import EventLoop
internal import HTTPCaching
internal import HTTPWire

extension FetchContext {
    /// Whether asking for a part as `plan` says would come to nothing that can be kept.
    func isUnstored(_ plan: PartPlan, _ ask: CacheAsk) -> Bool {
        // What a part belongs to cannot be looked into.
        plan.partial == nil
            && (ask.phases?.expect ?? .any != .any || notes.unstoredParts.contains(ask.key, now: clock.now()))
    }

    /// The head of stored parts takes over the fields of a part or of a check (RFC 9111 sections 3.4 and 4.3.4), where
    /// they are not for one user alone.
    /// - Returns: the head with these fields.
    @discardableResult
    func freshen(
        _ partial: Partial,
        by answer: ResponseHead,
        _ times: ResponseTimes,
        _ ask: CacheAsk
    ) -> StoredHead {
        let head = Caching.joined(
            partial.head,
            part: answer,
            times: times,
            request: ask.request,
            policy: ask.policy
        )
        guard ask.shares(head) else { return head }
        let before = partial.token
        partial.update(head)
        if case .refuse = Caching.decideKeep(head, policy: ask.policy) { partials.remove(partial) }
        // Invalidated meanwhile, under the rules of the old head or under those of the new one.
        if !generations.isUnchanged(before) || !generations.isUnchanged(partial.token) { partials.remove(partial) }
        return head
    }

    /// - Parameter head: that of the whole, with its length.
    func newPartial(_ ask: CacheAsk, _ token: GenerationToken, _ head: StoredHead, _ keeping: Keeping) -> Partial {
        let length = head.bodyLength ?? 0
        let file = keeping.onDisk && length > IncomingRange.filed ? store.files?.makeSparse() : nil
        return Partial(key: ask.key, token: token, head: head, extents: Extents(length: length, file: file))
    }

    /// Parts exist from now on, unless their key was invalidated since they were asked for.
    func keep(_ partial: Partial) {
        var before: [Partial] = []
        _ = generations.ifUnchanged(partial.token) { before = partials.insert(partial) }
        withExtendedLifetime(before) {}
    }

    /// A part has come, or as much of it as will: what is whole becomes an ordinary stored response. Any thread.
    func partEnded(_ partial: Partial, _ ask: CacheAsk) {
        if partial.extents.isComplete, partial.beginCompletion() {
            Task { [self] in
                await complete(partial, ask)
                underWay.end()
            }
        } else {
            if partial.extents.isEmpty { partials.remove(partial) }
            partials.shrink()
            underWay.end()
        }
    }

    private func complete(_ partial: Partial, _ ask: CacheAsk) async {
        let extents = partial.extents
        var head = partial.head
        head.bodyLength = extents.length
        head.fields.set(.contentLength, String(extents.length))
        let keeping = Keeping(ask.policy, self, length: Int(clamping: extents.length))
        let whole = keeping.inMemory || extents.file == nil ? try? await extents.gather(budget) : nil
        let sealed = keeping.onDisk && extents.file != nil ? try? await extents.seal() : nil
        if let body = sealed?.body ?? whole {
            await withUnsafeContinuation { (done: UnsafeContinuation<Void, Never>) in
                store.commit(
                    head,
                    ask,
                    partial.token,
                    body: body,
                    whole: whole,
                    spill: sealed?.spill,
                    keeping: keeping,
                    otherwise: .noMemory
                ) { [self] reason in
                    if keeping.refusal == nil { notes.noteStoring(ask, reason) }
                    done.resume()
                }
            }
        }
        partials.remove(partial)
    }
}
