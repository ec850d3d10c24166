// For which requests a placeholder answers while there is nothing yet, and when.

internal import CacheStore
internal import EventLoop
internal import HTTPCaching
internal import HTTPWire

extension FetchContext {
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
}
