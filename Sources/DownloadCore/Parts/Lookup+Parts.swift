// How a request is answered where only parts are stored: from them, after a check, or with what is missing.

internal import CacheStore
internal import Content
internal import EventLoop
internal import HTTPCaching
internal import HTTPWire

extension Lookup {
    /// What is to be done where no whole response is stored for a request; nil where parts have nothing to do with it.
    /// - Parameter hasOthers: responses are stored that other requests select.
    func partialStep(_ ask: CacheAsk, _ source: any FetchSource, hasOthers: Bool, on loop: isolated EventLoop) -> Step?
    {
        // Ranges are of GET alone (RFC 9110 section 14.2).
        if ask.content != nil { return nil }
        let found = context.partials.variants(ask.key).filter { partial in
            if context.generations.isUnchanged(partial.token) { return true }
            context.partials.remove(partial)
            return false
        }
        switch partStep(ask, among: found, hasOthers: hasOthers) {
        case .none: return nil
        case .refuse(let reason): return .answer(answers.gatewayTimeout(reason))
        case .use(let partial, let status, let age):
            return .answer(PartialAnswer(context, ask, source, partial).make(status, age: age, on: loop))
        case .ask(let way, let plan): return .ask(stale: nil, way, plan)
        }
    }

    /// What parts have to do with a request.
    enum PartStep {
        case none
        /// 504 to `only-if-cached`, with the reason.
        case refuse(String)
        /// All that is wanted is stored, or arriving.
        case use(Partial, CacheStatus, age: Int64)
        case ask(Way, PartPlan)
    }

    /// Decides, and changes nothing.
    /// - Parameter found: the parts of the key that have not been invalidated.
    func partStep(_ ask: CacheAsk, among found: [Partial], hasOthers: Bool) -> PartStep {
        // HEAD knows no Range, and parts answer nothing else (RFC 9111 section 3.3).
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
            // What is refreshed behind an answer is a whole response: parts are checked first.
            case .staleAllowed: return check(ask, partial, Way(.stale))
            case .stale: return check(ask, partial, Way(decision))
            }
        }
        guard let ranges = ByteRanges.parse(ask.request.fields), !Caching.onlyIfCached(ask.request) else {
            return .none
        }
        let plan = PartPlan(partial: nil, asked: ranges.specs[0], isOwn: ranges.specs.count == 1)
        return .ask(Way(hasOthers ? .varyMiss : .uriMiss), plan)
    }

    private func usable(
        _ ask: CacheAsk,
        _ partial: Partial,
        age: Int64,
        ttl: Int64,
        allowance: StaleAllowance? = nil
    ) -> PartStep {
        let tier: CacheStatus.Detail = partial.extents.usesFile ? .disk : .memory
        let detail = allowance?.rawValue ?? tier.rawValue
        let status = CacheStatus(cacheName: answers.cacheName, hit: true, ttl: ttl, detail: detail)
        guard let hole = PartialAnswer.missing(ask, partial) else { return .use(partial, status, age: age) }
        if Caching.onlyIfCached(ask.request) { return .refuse("only parts of it are stored") }
        return .ask(Way(.partial), PartPlan(partial: partial, asked: hole.spec))
    }

    private func check(_ ask: CacheAsk, _ partial: Partial, _ way: Way) -> PartStep {
        let wanted = PartialAnswer.wanted(ask, partial)
        if let hole = partial.extents.firstMissing(in: wanted) {
            return .ask(Way(.partial, way.reason), PartPlan(partial: partial, asked: hole.spec))
        }
        let specs = ByteRanges.parse(ask.request.fields)?.specs ?? []
        // Nothing of it exists, as far as is known: the client's own range tells what has changed.
        let asked = wanted.first?.spec ?? specs.first ?? .from(0, through: nil)
        let isOwn = specs.count == 1 && wanted.count <= 1
        return .ask(way, PartPlan(partial: partial, asked: asked, isCheck: true, isOwn: isOwn))
    }
}

extension Range<Int64> {
    /// The member of a Range field that asks for just these bytes; the range is not empty.
    var spec: ByteRanges.Spec { .from(lowerBound, through: upperBound - 1) }
}
