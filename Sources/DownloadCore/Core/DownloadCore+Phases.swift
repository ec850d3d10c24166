// Two-phase answers: a placeholder while there is nothing yet, a fallback where there will be nothing.

internal import CacheStore
package import EventLoop
internal import HTTPCaching
package import HTTPWire

extension DownloadCore {
    /// Answers a GET or HEAD from the store, after a check, from the origin, or with what stands in for its answer.
    /// - Parameter onInterim: hears 1xx answers of a fetch that this question starts, on its loop.
    package func answer(
        _ ask: CacheAsk,
        from source: any FetchSource,
        onInterim: ((ResponseHead) -> Void)? = nil,
        on loop: isolated EventLoop
    ) async -> Answer {
        let answer = await search(ask, from: source, onInterim: onInterim, on: loop)
        guard let fallback = ask.phases?.fallback else { return answer }
        let hasFailed = answer.failure?.isOriginFailure ?? (answer.head.status >= 500)
        guard hasFailed else { return answer }
        answer.reader?.close()
        notes.count { $0.fallbacks += 1 }
        var status = answer.cacheStatus ?? CacheStatus(cacheName: cacheName)
        (status.hit, status.stored, status.ttl) = (false, false, nil)
        status.detail = CacheStatus.Detail.fallback.rawValue
        var result = standIn(fallback, ask, status, on: loop)
        result.originTime = answer.originTime
        result.cause = answer.failure?.description ?? "the origin answered \(answer.head.status)"
        return result
    }

    private func standIn(
        _ file: StandIn,
        _ ask: CacheAsk,
        _ status: CacheStatus,
        on loop: isolated EventLoop
    ) -> Answer {
        var answer = Answer(
            head: file.head,
            reader: ask.request.method == .head ? nil : file.body.makeReader(on: loop),
            length: file.body.knownLength,
            cacheStatus: status
        )
        answer.isStandIn = true
        return answer
    }

    // MARK: - Placeholder

    /// How long, in nanoseconds, a request waits for the head of what is fetched before the placeholder answers; nil
    /// where none does: something is stored, or what comes would be for this request alone or could not be stored, so
    /// that nobody would ever get more than the placeholder.
    func placeholderPatience(_ question: Question) -> UInt64? {
        question.stale == nil && question.plan == nil ? placeholderPatience(question.ask) : nil
    }

    /// The same of a request for which nothing is stored.
    func placeholderPatience(_ ask: CacheAsk) -> UInt64? {
        guard let phases = ask.phases, phases.placeholder != nil,
            !ask.isForOne, !Caching.isReload(ask.request), !notes.isUncacheable(ask),
            !notes.unkept.contains(ask.key, now: clock.now())
        else { return nil }
        return phases.patience
    }

    /// The answer of a request that has waited long enough; the fetch goes on for those who come later.
    func placeholder(_ question: Question, isCollapsed: Bool, on loop: isolated EventLoop) -> Answer? {
        guard let file = question.ask.phases?.placeholder else { return nil }
        notes.count { $0.placeholders += 1 }
        let status = CacheStatus(
            cacheName: cacheName,
            forward: question.way.forward,
            collapsed: isCollapsed,
            detail: CacheStatus.Detail.placeholder.rawValue
        )
        return standIn(file, question.ask, status, on: loop)
    }
}
