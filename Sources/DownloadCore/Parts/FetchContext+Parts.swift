// The life of an incomplete response: begun, joined with more parts, freshened, and stored as a
// complete response at last.

import CacheStore
import Content
import EventLoop
import HTTPCaching
import HTTPWire

extension FetchContext {
    /// Whether the response to the range request of `plan` could not be stored.
    func isUnstored(_ plan: RangeFetchPlan, _ ask: CacheRequest) -> Bool {
        // Inspection needs the body from its first byte, and a part does not have it.
        plan.partial == nil
            && (ask.phases?.expect ?? .any != .any || notes.recentlyUnstoredParts.contains(ask.key, now: clock.now()))
    }

    /// The head of stored parts takes over the fields of a part or of a check (RFC 9111 sections 3.4 and 4.3.4), where
    /// they are not for one user alone.
    /// - Returns: the head with these fields.
    @discardableResult
    func freshen(
        _ partial: IncompleteResponse,
        by answer: ResponseHead,
        _ times: ResponseTimes,
        _ ask: CacheRequest
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
        if !invalidations.isUnchanged(before) || !invalidations.isUnchanged(partial.token) { partials.remove(partial) }
        return head
    }

    /// - Parameter head: that of the whole, with its length.
    func newPartial(_ ask: CacheRequest, _ token: InvalidationToken, _ head: StoredHead, _ placement: TierPlacement)
        -> IncompleteResponse
    {
        let length = head.bodyLength ?? 0
        let file = placement.onDisk && length > IncomingRange.filed ? store.files?.makeSparse() : nil
        return IncompleteResponse(key: ask.key, token: token, head: head, extents: Extents(length: length, file: file))
    }

    /// Makes an incomplete response findable, unless its key was invalidated since its first part was requested.
    func keep(_ partial: IncompleteResponse) {
        var before: [IncompleteResponse] = []
        _ = invalidations.ifUnchanged(partial.token) { before = partials.insert(partial) }
        withExtendedLifetime(before) {}
    }

    /// A part has ended, complete or cut short. If all bytes are there, the response is stored as a
    /// complete one. Any thread.
    func partEnded(_ partial: IncompleteResponse, _ ask: CacheRequest) {
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

    private func complete(_ partial: IncompleteResponse, _ ask: CacheRequest) async {
        let extents = partial.extents
        var head = partial.head
        head.bodyLength = extents.length
        head.fields.set(.contentLength, String(extents.length))
        let placement = TierPlacement(ask.policy, self, length: Int(clamping: extents.length))
        let whole = placement.inMemory || extents.file == nil ? try? await extents.gather(budget) : nil
        let sealed = placement.onDisk && extents.file != nil ? try? await extents.seal() : nil
        if let body = sealed?.body ?? whole {
            await withUnsafeContinuation { (done: UnsafeContinuation<Void, Never>) in
                store.commit(
                    head,
                    ask,
                    partial.token,
                    body: body,
                    whole: whole,
                    spill: sealed?.spill,
                    placement: placement,
                    otherwise: .noMemory
                ) { [self] reason in
                    if placement.refusal == nil { notes.noteStoring(ask, reason) }
                    done.resume()
                }
            }
        }
        partials.remove(partial)
    }
}
