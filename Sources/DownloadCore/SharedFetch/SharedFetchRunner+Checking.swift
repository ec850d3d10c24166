// How a shared fetch checks what is stored: by HEAD where that tells enough, else by a conditional GET.

import CacheStore
import EventLoop
import HTTPCaching
import HTTPWire

extension SharedFetchRunner {
    /// Until the outcome is published, or the error is known.
    func checkAndFetch(on loop: isolated EventLoop) async throws(FetchError) {
        if let plan { return try await fetchPart(plan, on: loop) }
        if mayCheck { return try await check(on: loop) }
        try await fetchWhole(nil, replaces: false, on: loop)
    }

    /// Something is stored that a check may confirm.
    @inline(never) private var mayCheck: Bool {
        ask.policy.revalidate != .never && (stale != nil || hasOtherVariants)
    }

    private func check(on loop: isolated EventLoop) async throws(FetchError) {
        let known = RevalidationCandidates(ask, stale, await context.store.variants(ask, on: loop))
        guard let check = headCheck(known), let stale else {
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

    /// The check by HEAD; nil where a GET has to do it.
    @inline(never) private func headCheck(_ known: RevalidationCandidates) -> Revalidation? {
        let capabilities = context.notes.capabilities[ask.key, context.clock.now()]
        guard !hasHeadFailed, let check = known.check(capabilities: capabilities), check.kind == .head else {
            return nil
        }
        return check
    }

    private enum HeadResult { case settled, changed, askByGet, failed }

    private func checkByHead(
        _ stale: StoredResponse,
        _ known: RevalidationCandidates,
        _ check: Revalidation,
        on loop: isolated EventLoop
    ) async throws(FetchError) -> HeadResult {
        let requestTime = context.clock.now()
        let stream: FetchStream
        let head: FetchStream.Head
        do throws(FetchError) {
            stream = try makeStream(.head)
            let request = request(.head, check)
            head = try await stream.start(request, from: source, timeout: context.headTimeout, on: loop)
        } catch {
            guard error.mayBeOfMethodAlone else { throw error }
            return .failed
        }
        let (verdict, update) = judge(head, stream, stale, known, check, since: requestTime)
        if let response = await update.byHead(check, on: loop) {
            confirm(response, by: head.response)
            return .settled
        }
        switch verdict {
        case .changed(.noValidator): return .askByGet
        case .failed, .gone: return .failed
        case .unchanged, .changed: return .changed
        }
    }

    @inline(never) private func judge(
        _ head: FetchStream.Head,
        _ stream: FetchStream,
        _ stale: StoredResponse,
        _ known: RevalidationCandidates,
        _ check: Revalidation,
        since requestTime: Int64
    ) -> (HeadVerdict, VariantUpdate) {
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
        return (verdict, VariantUpdate(context, known, generation, answer, times))
    }

    /// The stored response is good, as the answer to its check says.
    @inline(never) func confirm(_ response: StoredResponse, by answer: ResponseHead) {
        keepCookies(of: answer)
        settle(.refreshed(response, status: answer.status, isShared: ask.shares(response.head)))
    }
}
