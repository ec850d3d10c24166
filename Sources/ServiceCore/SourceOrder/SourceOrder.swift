// The order of sources of a route with `from`.

import DownloadCore
import HTTPCaching
import HTTPWire
package import Policies

/// The sources of a route's answers in the order in which they are asked: a stage is asked if the one before it had no
/// answer, and a source that is not named is never asked.
///
/// Sendable: it is immutable.
package final class SourceOrder<Route: Sendable>: Sendable {
    /// The sources that are asked together: a run of those that the cache asks, or one of the others.
    package struct Stage: Sendable {
        package let sources: [OrderedSource]
        /// The endpoint with the part of its plan that the sources need.
        package let route: Route

        /// The Cache-Control directives that are added to the client's, so that only the sources of the stage answer; nil
        /// for none.
        package var directives: String? {
            guard sources.contains(where: OrderedSource.ofCache.contains) else { return nil }
            var directives: [String] = []
            let (fresh, live, stale) = (sources.contains(.fresh), sources.contains(.live), sources.contains(.stale))
            // A lifetime as long as this does not occur, so no stored response is fresh (RFC 9111 section 5.2.1.3);
            // with `min-fresh=0` a stale one is not served while it is revalidated.
            if !fresh { directives.append("min-fresh=2147483647") } else if !stale { directives.append("min-fresh=0") }
            if !stale { directives.append("stale-if-error=0") }
            if !live, !stale { directives.append("only-if-cached") }
            return directives.isEmpty ? nil : directives.joined(separator: ", ")
        }

        /// The source that gave an answer; nil if it is a failure, or comes from no source of this stage, so that the next
        /// stage is asked.
        /// - Parameter policy: the cache policy of the route.
        func source(of answer: Answer, _ policy: CachePolicy) -> OrderedSource? {
            guard answer.failure == nil else { return nil }
            if sources == [.recording] || sources == [.demo] { return sources[0] }
            if answer.isStandIn { return sources == [.fallback] ? .fallback : .live }
            let status = answer.head.status
            // A 412 or 416 is about the representation of this source, and not about that of the next one.
            let isOfRequest = status == 412 || status == 416
            let isFailure = policy.success == nil ? status >= 500 : !isOfRequest && !policy.isSuccess(status)
            return isFailure ? nil : source(of: answer)
        }

        /// True if an answer that no source gave shows why the origin has no better one.
        func isOfOrigin(_ answer: Answer) -> Bool {
            sources.contains(.live) && (answer.failure != nil || source(of: answer) != nil)
        }

        /// The source of the cache that an answer comes from, whatever its status is; nil if it is not a source of this
        /// stage.
        private func source(of answer: Answer) -> OrderedSource? {
            var source = answer.cacheSource
            // Offline, a stored response answers in place of the origin, however fresh it is.
            if source == .fresh, !sources.contains(.fresh) { source = .stale }
            return sources.contains(source) ? source : nil
        }
    }

    package let sources: [OrderedSource]
    package let stages: [Stage]

    /// - Parameters:
    ///   - sources: the sources in their order, each once.
    ///   - route: makes the endpoint for the sources of a stage.
    init(_ sources: [OrderedSource], _ route: ([OrderedSource]) -> Route) {
        self.sources = sources
        stages = sources.stages.map { Stage(sources: $0, route: route($0)) }
    }
}

extension [OrderedSource] {
    /// The sources in stages: those of the cache that follow one another are asked together.
    var stages: [[OrderedSource]] {
        var groups: [[OrderedSource]] = []
        for source in self {
            let isOfCache = OrderedSource.ofCache.contains(source)
            if isOfCache, let last = groups.last?.last, OrderedSource.ofCache.contains(last) {
                groups[groups.count - 1].append(source)
            } else {
                groups.append([source])
            }
        }
        return groups
    }
}

extension Answer {
    /// The source of the cache that an answer comes from, by its Cache-Status.
    fileprivate var cacheSource: OrderedSource {
        guard let status = cacheStatus else { return .live }
        if status.detail == OrderedSource.seed.rawValue { return .seed }
        if status.hit || status.detail == CacheStatus.Detail.otherVariant.rawValue {
            return (status.ttl ?? 0) < 0 ? .stale : .fresh
        }
        return status.detail == CacheStatus.Detail.staleIfError.rawValue ? .stale : .live
    }
}

extension RequestPlan {
    /// The plan of a stage, without what its sources do not need.
    func limited(to sources: [OrderedSource]) -> RequestPlan {
        var plan = self
        let isRead = self.sources.contains(.fresh) || self.sources.contains(.stale)
        plan.sources = []
        if !sources.contains(.seed) { plan.seed = nil }
        let asksStore = sources.contains { $0 == .fresh || $0 == .live || $0 == .stale }
        if !isRead || !asksStore { plan.policy.mode = .none }
        if !sources.contains(.live) {
            plan.asksNobody = true
            plan.policies.retry = RetryPolicy()
            plan.phases?.placeholder = nil
        }
        if !sources.contains(.stale) { plan.policy.gone = .fail }
        if sources != [.fallback] { plan.phases?.fallback = nil }
        if sources == [.recording] { plan.replay() }
        return plan
    }
}
