// The steps of a shared fetch that requests a part: it stores the part, adds it to what is stored, or forwards another
// answer.

import CacheStore
import EventLoop
import HTTPCaching
import HTTPWire
import Policies
import Upstream

extension SharedFetchRunner {
    /// Fetches a part until its head has arrived; then other requests find the part in the table, and the shared fetch
    /// is over.
    func fetchPart(_ plan: RangeFetchPlan, on loop: isolated EventLoop) async throws(FetchError) {
        guard let hole = plan.hole, let partial = plan.partial else { return try await askForPart(plan, on: loop) }
        let claim = partial.claim(hole)
        guard claim.isMine else {
            // A reader is fetching the same bytes.
            _ = await claim.end.wait(timeout: ask.collapse.wait, on: loop)
            return settle(.again)
        }
        defer { partial.release(claim.end) }
        try await askForPart(plan, on: loop)
    }

    private func askForPart(_ plan: RangeFetchPlan, on loop: isolated EventLoop) async throws(FetchError) {
        let requestTime = context.clock.now()
        let stream = try makeStream(.get)
        let head = try await stream.start(ask.partRequest(plan), from: source, on: loop)
        let answer = head.response
        let times = context.clock.times(since: requestTime)
        switch answer.status {
        case 206: return try await part(plan, head, stream, times, on: loop)
        case 304:
            stream.flow(into: BodyDrain(stream))
            return try confirmed(plan, answer, times)
        case 416 where ask.mayBePrivateToRequest && !plan.isOwn:
            stream.flow(into: BodyDrain(stream))
            return settle(.alone(nil))
        case 416 where plan.partial != nil || !plan.isOwn:
            // The 416 means that the representation is shorter now, or that the first of several ranges is beyond its
            // end.
            stream.flow(into: BodyDrain(stream))
            if let partial = plan.partial {
                context.partials.remove(partial)
            } else {
                context.notes.noteUnstoredPart(ask.key)
            }
            return settle(.again)
        case _ where plan.isCheck && mayServeStale(plan.partial, errorStatus: answer.status):
            guard let partial = plan.partial else { break }
            stream.flow(into: BodyDrain(stream))
            return settle(.stalePart(partial, cause: .status(answer.status)))
        case ..<400: if ask.policy.isSuccess(answer.status) { forget(plan) }
        case 404, 410:
            if ask.policy.gone == .remove { forget(plan) }
        default: break
        }
        try await pass(plan, head, stream, times, on: loop)
    }

    /// Drops the stored parts, which are outdated. An answer to one user proves nothing for others, so that it drops
    /// nothing.
    private func forget(_ plan: RangeFetchPlan) {
        if let partial = plan.partial, !ask.mayBePrivateToRequest { context.partials.remove(partial) }
    }

    /// Answers the client's request with a complete response or an error, as it is.
    private func pass(
        _ plan: RangeFetchPlan,
        _ head: FetchStream.Head,
        _ stream: FetchStream,
        _ times: ResponseTimes,
        refusal: String? = nil,
        on loop: isolated EventLoop
    ) async throws(FetchError) {
        let incoming = IncomingResponse(
            runner: self,
            head: head,
            stream: stream,
            times: times,
            replaces: plan.partial != nil && head.response.status == 200,
            partRefusal: refusal
        )
        try await incoming.begin(on: loop)
    }

    // MARK: - 206

    private func part(
        _ plan: RangeFetchPlan,
        _ head: FetchStream.Head,
        _ stream: FetchStream,
        _ times: ResponseTimes,
        on loop: isolated EventLoop
    ) async throws(FetchError) {
        let answer = head.response
        let content: ContentRange
        do throws(PartMismatch) {
            content = try Caching.checkPart(answer, asked: plan.asked)
        } catch {
            // In library mode the download fails: a program that keeps its downloads must not get other bytes than it
            // requested.
            guard ask.policy.mode != .library else {
                stream.cancel()
                throw .wrongPart(ask.key.description, plan.asked.text, error)
            }
            return try await unstored(plan, head, stream, times, error.detail, on: loop)
        }
        let decision = Caching.decidePart(
            request: ask.request,
            response: answer,
            content: content,
            policy: ask.policy,
            times: times
        )
        let refusal: String
        switch decision {
        case .store(let stored):
            let placement = TierPlacement(ask.policy, context, length: stored.bodyLength.map { Int(clamping: $0) })
            if placement.refusal == nil, let range = content.range {
                let (partial, head) =
                    joined(plan, answer, content, times) ?? (begun(plan, stored, placement), stored)
                context.notes.noteCacheable(ask)
                context.notes.recentlyUnstoredParts.forget(ask.key)
                let arriving = try IncomingRange(context, ask, partial, range, stream).begin(on: loop)
                if isLed { leaderPart = arriving }
                keepCookies(of: answer)
                return settle(.part(partial, head, status: 206))
            }
            refusal = placement.refusal?.rawValue ?? StoreRefusal.status206.rawValue
        case .refuse(let reason) where ask.isPrivateToRequest || reason == .requestCookie:
            return try await forOne(plan, head, stream, times, reason.rawValue, on: loop)
        case .refuse(let reason): refusal = reason.rawValue
        case .refusePart(let reason): refusal = reason.rawValue
        }
        try await unstored(plan, head, stream, times, refusal, on: loop)
    }

    /// Forwards the request for one client; a refusal because of this request alone affects neither later requests nor
    /// stored parts.
    private func forOne(
        _ plan: RangeFetchPlan,
        _ head: FetchStream.Head,
        _ stream: FetchStream,
        _ times: ResponseTimes,
        _ refusal: String,
        on loop: isolated EventLoop
    ) async throws(FetchError) {
        if plan.isOwn { return try await pass(plan, head, stream, times, refusal: refusal, on: loop) }
        stream.cancel()
        settle(.alone(refusal))
    }

    /// Forwards a 206 that is not stored, if it answers the client's own range.
    private func unstored(
        _ plan: RangeFetchPlan,
        _ head: FetchStream.Head,
        _ stream: FetchStream,
        _ times: ResponseTimes,
        _ refusal: String,
        on loop: isolated EventLoop
    ) async throws(FetchError) {
        if ask.isPrivateToRequest { return try await forOne(plan, head, stream, times, refusal, on: loop) }
        if let partial = plan.partial { context.partials.remove(partial) }
        context.notes.noteUnstoredPart(ask.key)
        guard plan.isOwn else {
            stream.cancel()
            return settle(.again)
        }
        try await pass(plan, head, stream, times, refusal: refusal, on: loop)
    }

    /// The incomplete response that this part extends, and its updated head; nil if there is none.
    private func joined(
        _ plan: RangeFetchPlan,
        _ answer: ResponseHead,
        _ content: ContentRange,
        _ times: ResponseTimes
    ) -> (IncompleteResponse, StoredHead)? {
        let known = (plan.partial.map { [$0] } ?? []) + context.partials.variants(ask.key)
        let found = known.first { partial in
            context.invalidations.isUnchanged(partial.token)
                && Caching.selects(stored: partial.head, request: ask.request)
                && Caching.joins(partial.head, part: answer, content: content, now: times.responseTime)
        }
        guard let found else { return nil }
        return (found, context.freshen(found, by: answer, times, ask))
    }

    private func begun(_ plan: RangeFetchPlan, _ stored: StoredHead, _ placement: TierPlacement) -> IncompleteResponse {
        if let old = plan.partial { context.partials.remove(old) }
        let partial = context.newPartial(ask, generation, stored, placement)
        context.keep(partial)
        return partial
    }

    // MARK: - 304

    private func confirmed(
        _ plan: RangeFetchPlan,
        _ answer: ResponseHead,
        _ times: ResponseTimes
    ) throws(FetchError) {
        guard plan.isCheck, let partial = plan.partial else {
            throw .upstream(
                UpstreamError(
                    .unexpectedStatus(304),
                    detail: "\(ask.key) answered 304 to a request without conditions; the origin is at fault"
                )
            )
        }
        guard Caching.confirms(answer.fields, partial.head) else {
            if ask.mayBePrivateToRequest { return settle(.alone(nil)) }
            context.partials.remove(partial)
            return settle(.again)
        }
        let head = context.freshen(partial, by: answer, times, ask)
        keepCookies(of: answer)
        settle(.part(partial, head, status: 304))
    }

    // MARK: - Failing

    func mayServeStale(_ partial: IncompleteResponse?, errorStatus: Int?) -> Bool {
        // A response that was purged meanwhile must not be served as a stale one.
        guard let partial, context.invalidations.isUnchanged(partial.token) else { return false }
        return context.staleVerdict(partial.head, ask, errorStatus: errorStatus).isAllowed
    }
}

extension FetchError {
    /// The error for a 206 that does not match the request (RFC 9110 section 15.3.7).
    static func wrongPart(_ name: String, _ asked: String, _ mismatch: PartMismatch) -> FetchError {
        let detail =
            "\(name) answered 206 with something else than the asked bytes \(asked) (\(mismatch.rawValue)); "
            + "the origin is at fault"
        return .upstream(UpstreamError(.unexpectedStatus(206), detail: detail))
    }
}
