// Where the answers of a route come from if it uses recordings, and what its client is told of that.

import CacheStore
import DownloadCore
import HTTPCaching
import HTTPWire
import Policies

extension RequestPlan {
    /// The source of a request, behind the recordings of its route.
    /// - Parameters:
    ///   - service: its name, for messages.
    ///   - origin: makes the source that recordings are made of; not called where nobody is to be asked.
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
    /// Says in Cache-Status that a recording has answered, if one has.
    mutating func tellRecording() {
        guard head.fields.first(ReplayedFetch.fieldName) != nil, let status = cacheStatus else { return }
        cacheStatus = CacheStatus(
            cacheName: status.cacheName,
            hit: true,
            detail: CacheStatus.Detail.recording.rawValue
        )
    }
}
