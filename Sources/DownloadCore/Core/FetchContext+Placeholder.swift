// For which requests a placeholder answers while there is nothing yet, and when.

import CacheStore
import EventLoop
import HTTPCaching
import HTTPWire

extension FetchContext {
    /// How long, in nanoseconds, a request waits for the head of what is fetched before the placeholder answers; nil
    /// where no placeholder may answer: a response is stored, or the one to come could not be stored or shared, so that
    /// every request would get the placeholder and never the response.
    @inline(never) func placeholderDelay(_ miss: MissContext) -> UInt64? {
        miss.stale == nil && miss.plan == nil ? placeholderDelay(miss.ask) : nil
    }

    /// The same of a request for which nothing is stored.
    func placeholderDelay(_ ask: CacheRequest) -> UInt64? {
        guard let phases = ask.phases, phases.placeholder != nil,
            !ask.isPrivateToRequest, !Caching.isReload(ask.request), !notes.isUncacheable(ask),
            !notes.recentlyNotKept.contains(ask.key, now: clock.now())
        else { return nil }
        return phases.placeholderDelay
    }
}
