// What the outcome of a shared fetch makes of a question: for its leader, and for those who waited.

import CacheStore
import EventLoop
import HTTPCaching
import HTTPWire

extension SharedFetches {
    /// The answer to a waiting request by the response that arrived; nil where the request must search the
    /// store or fetch for itself.
    func joined(
        _ fetch: SharedFetch,
        _ miss: MissContext,
        _ outcome: FillOutcome,
        on loop: isolated EventLoop
    ) -> Answer? {
        let (ask, stale) = (miss.ask, miss.stale)
        switch outcome {
        case .streaming(let fetched):
            // A response that was invalidated since its fetch began must not answer a request that
            // came after the invalidation.
            guard let head = fetched.stored, context.invalidations.isUnchanged(fetched.token), mayShare(head, miss),
                !ask.mayReadSlowly || fetched.placementRefusal == nil,
                let reader = fetched.body.makeReader(on: loop)
            else { return nil }
            inFlight.send(.readerOpened, to: fetch)
            return settled(miss, outcome, reader, isCollapsed: true, on: loop)
        case .refreshed(let response, _, isShared: true)
        where ask.policy.mode == .library && mayShare(response.head, miss)
            // It was stored before this request came, and may have been purged in between.
            && context.invalidations.verdict(response) == .valid:
            return settled(miss, outcome, nil, isCollapsed: true, on: loop)
        case .refreshed, .failed(.cancelled), .part, .stalePart, .again, .alone: return nil
        case .stale(_, let cause):
            // The leader's stale response may be another variant: each uses its own, if it has one that it may use.
            guard let stale, context.mayServeStale(stale, ask, errorStatus: cause.errorStatus) else { return nil }
            return settled(miss, .stale(stale, cause: cause), nil, isCollapsed: true, on: loop)
        case .failed(let error):
            guard let stale, error.isOriginFailure, context.mayServeStale(stale, ask, errorStatus: nil) else {
                return settled(miss, outcome, nil, isCollapsed: true, on: loop)
            }
            return settled(miss, .stale(stale, cause: .error(error)), nil, isCollapsed: true, on: loop)
        }
    }

    private func mayShare(_ head: StoredHead, _ miss: MissContext) -> Bool {
        Caching.answersWaiting(
            request: miss.ask.request,
            stored: head,
            policy: miss.ask.policy,
            asked: miss.began,
            now: context.clock.now()
        )
    }

    /// Whether a fetch of the whole, which somebody else has begun, brings what this request asks for too late.
    func isFarAhead(_ ask: CacheRequest, of outcome: FillOutcome) -> Bool {
        guard case .streaming(let fetched) = outcome, let head = fetched.stored, let length = fetched.body.knownLength,
            case .parts(let ranges) = Caching.rangeAnswer(request: ask.request, stored: head, length: length)
        else { return false }
        // Several parts of a body that is still arriving would wait for one another.
        return ranges.count > 1 || ranges[0].lowerBound - fetched.body.arrived > 8 << 20
    }

    func settled(
        _ miss: MissContext,
        _ outcome: FillOutcome,
        _ reader: BodyReader?,
        _ part: RangeInFlight? = nil,
        isCollapsed: Bool,
        on loop: isolated EventLoop
    ) -> Answer {
        let (ask, forwardReason) = (miss.ask, miss.forwardReason)
        var status = CacheStatus(cacheName: answers.cacheName, forward: forwardReason.forward, collapsed: isCollapsed)
        let now = context.clock.now()
        switch outcome {
        case .streaming(let fetched):
            status.forwardStatus = fetched.status
            var storeReason: StoreReason?
            switch fetched.decision {
            case .store(let reason):
                storeReason = fetched.placementRefusal == nil ? reason : nil
                status.stored = fetched.placementRefusal == nil
                let replaced = fetched.replacesStale ? CacheStatus.Detail.replaced.rawValue : nil
                status.detail = fetched.placementRefusal?.rawValue ?? replaced ?? forwardReason.reason
            case .refuse(let refusal): status.detail = fetched.partRefusal ?? refusal.rawValue
            }
            var answer = answers.arriving(ask, fetched, reader, status)
            answer.storeReason = storeReason
            // Some fields, such as Set-Cookie, are only for the client whose request went to the origin.
            if isCollapsed { answer.head.fields = Caching.shared(answer.head.fields, policy: ask.policy) }
            return answer
        case .refreshed(let response, let code, _):
            status.forwardStatus = code
            status.detail = CacheStatus.Detail.revalidated.rawValue
            status.ttl = -Caching.staleness(response.head, policy: ask.policy, now: now)
            return answers.stored(ask, response, age: Caching.age(response.head, now: now), status, on: loop)
        case .stale(let response, let cause):
            if case .status(let code) = cause { status.forwardStatus = code }
            status.detail = CacheStatus.Detail.staleIfError.rawValue
            status.ttl = -Caching.staleness(response.head, policy: ask.policy, now: now)
            return answers.stored(ask, response, age: Caching.age(response.head, now: now), status, on: loop)
        case .part(let partial, let head, let code):
            let staleness = Caching.staleness(head, policy: ask.policy, now: now)
            status.forwardStatus = code
            status.stored = code == 206 && context.invalidations.isUnchanged(partial.token)
            status.detail = code == 304 ? CacheStatus.Detail.revalidated.rawValue : forwardReason.reason
            if code == 304 { status.ttl = -staleness }
            let age = Caching.age(head, now: now)
            let isFirst = code == 206 && age == 0 && miss.plan?.partial == nil
            var made = IncompleteResponseReader(context, ask, miss.source, partial, head)
            made.arriving = part
            return made.make(status, age: isFirst ? nil : age, on: loop)
        case .stalePart(let partial, let cause):
            if case .status(let code) = cause { status.forwardStatus = code }
            status.detail = CacheStatus.Detail.staleIfError.rawValue
            status.ttl = -Caching.staleness(partial.head, policy: ask.policy, now: now)
            let age = Caching.age(partial.head, now: now)
            return IncompleteResponseReader(context, ask, miss.source, partial).make(status, age: age, on: loop)
        case .again, .alone: return answers.failure(.cancelled, forwardReason)
        case .failed(let error):
            var refusal: StaleRefusal?
            if let stale = miss.stale, error.isOriginFailure,
                case .refused(let reason) = context.staleVerdict(stale.head, ask, errorStatus: nil)
            {
                refusal = reason
            }
            return answers.failure(error, forwardReason, isCollapsed: isCollapsed, staleRefusal: refusal)
        }
    }
}
