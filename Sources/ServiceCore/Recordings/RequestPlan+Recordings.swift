// The place of recordings in a route's plan, and the cache status of replayed answers.

import CacheStore
import DownloadCore
import HTTPCaching
import HTTPWire
import Policies

extension RequestPlan {
    /// The source of a request, with the recordings of its route before it.
    /// - Parameters:
    ///   - service: the name of the service, for messages.
    ///   - origin: makes the origin's source; not called if no origin may be asked.
    func recorded(
        _ core: DownloadCore,
        service: String,
        _ origin: () throws(RouteRefusal) -> any FetchSource
    ) throws(RouteRefusal) -> any FetchSource {
        guard let recording else { return asksNobody ? NobodySource(service: service) : try origin() }
        let origin = recording.source == .replay ? nil : try origin()
        let expectation = PhasePlan.seedExpectation(phases, policy)
        return RecordingSource(
            origin,
            recording,
            expectation,
            clock: core.clock,
            budget: core.budget,
            service: service
        ) { core.isOffline }
    }
}

extension Answer {
    /// Tells in Cache-Status that a recording has answered, if one has.
    mutating func tellRecording() {
        guard head.fields.first(ReplayedFetch.fieldName) != nil, let status = cacheStatus else { return }
        cacheStatus = CacheStatus(
            cacheName: status.cacheName,
            hit: true,
            detail: CacheStatus.Detail.recording.rawValue
        )
    }
}
