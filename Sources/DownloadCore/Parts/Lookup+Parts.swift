// Answers requests from an incomplete response: from its parts, after a validation, or with a
// fetch of the missing bytes.

import CacheStore
import Content
import EventLoop
import HTTPCaching
import HTTPWire

extension Lookup {
    /// The next step for a request that no complete response answers; nil where no incomplete one matters.
    /// - Parameter stored: what is stored of the key as a whole.
    @inline(never) func partialStep(
        _ ask: CacheRequest,
        _ source: any FetchSource,
        _ stored: TieredStore.Found,
        since began: Int64,
        on loop: isolated EventLoop
    ) -> Step? {
        if stored.response != nil { return nil }
        // Ranges are of GET alone (RFC 9110 section 14.2).
        if ask.content != nil { return nil }
        // A part of a document cannot be mapped.
        if ask.policy.mapping != nil { return nil }
        let found = context.partials.variants(ask.key).filter { partial in
            if context.invalidations.isUnchanged(partial.token) { return true }
            context.partials.remove(partial)
            return false
        }
        switch partStep(ask, among: found, hasOtherVariants: stored.newest != nil) {
        case .none: return nil
        case .refuse(let reason): return .answer(answers.gatewayTimeout(reason))
        case .use(let partial, let status, let age):
            return .answer(IncompleteResponseReader(context, ask, source, partial).make(status, age: age, on: loop))
        case .ask(let forwardReason, let plan):
            return .ask(
                MissContext(
                    ask: ask,
                    source: source,
                    stale: nil,
                    newest: stored.newest,
                    forwardReason: forwardReason,
                    began: began,
                    plan: plan
                )
            )
        }
    }

    /// What parts have to do with a request.
    enum PartStep {
        case none
        /// 504 to `only-if-cached`, with the reason.
        case refuse(String)
        /// All that is wanted is stored, or arriving.
        case use(IncompleteResponse, CacheStatus, age: Int64)
        case ask(ForwardReason, RangeFetchPlan)
    }

    /// Decides, and changes nothing.
    /// - Parameter found: the parts of the key that have not been invalidated.
    func partStep(_ ask: CacheRequest, among found: [IncompleteResponse], hasOtherVariants: Bool) -> PartStep {
        // Range applies to GET alone, and an incomplete response answers nothing but ranges (RFC 9111 section 3.3).
        guard ask.request.method == .get else { return .none }
        if let chosen = Caching.select(from: found.map(\.head), request: ask.request, policy: ask.policy) {
            let partial = found[chosen]
            let decision = Caching.lookup(
                request: ask.request,
                stored: partial.head,
                policy: ask.policy,
                now: context.clock.now(),
                isOffline: context.isOffline,
                failedCheck: context.notes.failedChecks.check(ask.key, now: context.clock.now())
            )
            switch decision {
            case .mismatch: break
            case .onlyIfCachedMiss(let reason):
                return .refuse("the stored parts need a check (\(reason.rawValue))")
            case .fresh(let age, let ttl): return usable(ask, partial, age: age, ttl: ttl)
            case .staleAllowed(let age, let by, let allowance) where allowance != .whileRevalidate:
                return usable(ask, partial, age: age, ttl: -by, allowance: allowance)
            // A refresh in the background fetches a complete response, so an incomplete one is
            // validated before it answers.
            case .staleAllowed: return check(ask, partial, ForwardReason(.stale))
            case .stale: return check(ask, partial, ForwardReason(decision))
            }
        }
        guard let ranges = ByteRanges.parse(ask.request.fields), !Caching.onlyIfCached(ask.request) else {
            return .none
        }
        let plan = RangeFetchPlan(partial: nil, asked: ranges.specs[0], isOwn: ranges.specs.count == 1)
        return .ask(ForwardReason(hasOtherVariants ? .varyMiss : .uriMiss), plan)
    }

    private func usable(
        _ ask: CacheRequest,
        _ partial: IncompleteResponse,
        age: Int64,
        ttl: Int64,
        allowance: StaleAllowance? = nil
    ) -> PartStep {
        let tier: CacheStatus.Detail = partial.extents.usesFile ? .disk : .memory
        let detail = allowance?.rawValue ?? tier.rawValue
        let status = CacheStatus(cacheName: answers.cacheName, hit: true, ttl: ttl, detail: detail)
        guard let hole = IncompleteResponseReader.missing(ask, partial) else { return .use(partial, status, age: age) }
        if Caching.onlyIfCached(ask.request) { return .refuse("only parts of it are stored") }
        return .ask(ForwardReason(.partial), RangeFetchPlan(partial: partial, asked: hole.spec))
    }

    private func check(_ ask: CacheRequest, _ partial: IncompleteResponse, _ forwardReason: ForwardReason) -> PartStep {
        let wanted = IncompleteResponseReader.wanted(ask, partial)
        if let hole = partial.extents.firstMissing(in: wanted) {
            return .ask(
                ForwardReason(.partial, forwardReason.reason),
                RangeFetchPlan(partial: partial, asked: hole.spec)
            )
        }
        let specs = ByteRanges.parse(ask.request.fields)?.specs ?? []
        // The range lies beyond the stored length: the client's own range is sent, so that the origin's
        // answer shows a changed length.
        let asked = wanted.first?.spec ?? specs.first ?? .from(0, through: nil)
        let isOwn = specs.count == 1 && wanted.count <= 1
        return .ask(forwardReason, RangeFetchPlan(partial: partial, asked: asked, isCheck: true, isOwn: isOwn))
    }
}

extension Range<Int64> {
    /// The member of a Range field that asks for just these bytes; the range is not empty.
    var spec: ByteRanges.Spec { .from(lowerBound, through: upperBound - 1) }
}
