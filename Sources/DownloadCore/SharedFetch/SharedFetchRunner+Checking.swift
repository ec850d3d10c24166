// How a shared fetch checks what is stored: by HEAD where that tells enough, else by a conditional GET.

import CacheStore
import EventLoop
import HTTPCaching
import HTTPWire

extension SharedFetchRunner {
    /// Until the outcome is published, or the error is known.
    func checkAndFetch(on loop: isolated EventLoop) async throws(FetchError) {
        if let plan { return try await fetchPart(plan, on: loop) }
        guard ask.policy.revalidate != .never, stale != nil || hasOtherVariants else {
            return try await fetchWhole(nil, replaces: false, on: loop)
        }
        let known = RevalidationCandidates(ask, stale, await context.store.variants(ask, on: loop))
        let capabilities = context.notes.capabilities[ask.key, context.clock.now()]
        guard !hasHeadFailed, let check = known.check(capabilities: capabilities), check.kind == .head, let stale else {
            return try await fetchWhole(known, replaces: false, on: loop)
        }
        switch try await checkByHead(stale, known, check, on: loop) {
        case .settled: return
        // Known to be different: a conditional GET could only confirm that.
        case .changed: try await fetchWhole(nil, replaces: true, on: loop)
        case .askByGet: try await fetchWhole(known, replaces: false, on: loop)
        case .failed:
            hasHeadFailed = true
            try await fetchWhole(known, replaces: false, on: loop)
        }
    }

    private enum HeadResult { case settled, changed, askByGet, failed }

    private func checkByHead(
        _ stale: StoredResponse,
        _ known: RevalidationCandidates,
        _ check: Revalidation,
        on loop: isolated EventLoop
    ) async throws(FetchError) -> HeadResult {
        let requestTime = context.clock.now()
        let started: (FetchStream, FetchStream.Head)
        do throws(FetchError) {
            started = try await start(.head, check, timeout: context.headTimeout, on: loop)
        } catch {
            guard error.mayBeOfMethodAlone else { throw error }
            return .failed
        }
        let (stream, head) = started
        stream.flow(into: BodyDrain(stream))
        let answer = head.response
        let times = context.clock.times(since: requestTime)
        let verdict = Caching.judgeHead(
            stored: stale.head,
            headAnswer: answer,
            times: times,
            request: ask.request,
            policy: ask.policy
        )
        context.notes.capabilities.note(ask.key) {
            $0.noteHead(status: answer.status, verdict: verdict, hadConditions: !check.conditions.isEmpty)
        }
        let update = VariantUpdate(context, known, generation, answer, times)
        if let response = await update.byHead(check, on: loop) {
            confirm(response, by: answer)
            return .settled
        }
        switch verdict {
        case .changed(.noValidator): return .askByGet
        case .failed, .gone: return .failed
        case .unchanged, .changed: return .changed
        }
    }

    /// The stored response is good, as the answer to its check says.
    func confirm(_ response: StoredResponse, by answer: ResponseHead) {
        keepCookies(of: answer)
        settle(.refreshed(response, status: answer.status, isShared: ask.shares(response.head)))
    }
}
