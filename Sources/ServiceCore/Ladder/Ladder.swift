// The order of sources of a route with `from`.

import DownloadCore
import HTTPCaching
import HTTPWire
package import Policies

/// The sources of a route's answers, called rungs, in the order in which they are asked: a stage is asked if the one
/// before it had no answer, and a source that is not a rung is never asked.
///
/// Sendable: it is immutable.
package final class Ladder<Route: Sendable>: Sendable {
    /// The rungs that are asked together: a run of those that the cache asks, or one of the others.
    package struct Stage: Sendable {
        package let rungs: [AnswerRung]
        /// The endpoint with the part of its plan that the rungs need.
        package let route: Route

        /// The Cache-Control directives that are added to the client's, so that only the rungs of the stage answer; nil
        /// for none.
        package var directives: String? {
            guard rungs.contains(where: AnswerRung.ofCache.contains) else { return nil }
            var directives: [String] = []
            let (fresh, live, stale) = (rungs.contains(.fresh), rungs.contains(.live), rungs.contains(.stale))
            // A lifetime as long as this does not occur, so no stored response is fresh (RFC 9111 section 5.2.1.3);
            // with `min-fresh=0` a stale one is not served while it is revalidated.
            if !fresh { directives.append("min-fresh=2147483647") } else if !stale { directives.append("min-fresh=0") }
            if !stale { directives.append("stale-if-error=0") }
            if !live, !stale { directives.append("only-if-cached") }
            return directives.isEmpty ? nil : directives.joined(separator: ", ")
        }

        /// The rung that gave an answer; nil if it is a failure, or comes from no rung of this stage, so that the next
        /// stage is asked.
        /// - Parameter policy: the cache policy of the route.
        func rung(of answer: Answer, _ policy: CachePolicy) -> AnswerRung? {
            guard answer.failure == nil else { return nil }
            if rungs == [.recording] || rungs == [.demo] { return rungs[0] }
            if answer.isStandIn { return rungs == [.fallback] ? .fallback : .live }
            let status = answer.head.status
            // A 412 or 416 is about the representation of this rung, and not about that of the next one.
            let isOfRequest = status == 412 || status == 416
            let isFailure = policy.success == nil ? status >= 500 : !isOfRequest && !policy.isSuccess(status)
            return isFailure ? nil : source(of: answer)
        }

        /// True if an answer that no rung gave shows why the origin has no better one.
        func isOfOrigin(_ answer: Answer) -> Bool {
            rungs.contains(.live) && (answer.failure != nil || source(of: answer) != nil)
        }

        /// The rung of the cache that an answer comes from, whatever its status is; nil if it is not a rung of this
        /// stage.
        private func source(of answer: Answer) -> AnswerRung? {
            var rung = answer.cacheRung
            // Offline, a stored response answers in place of the origin, however fresh it is.
            if rung == .fresh, !rungs.contains(.fresh) { rung = .stale }
            return rungs.contains(rung) ? rung : nil
        }
    }

    package let rungs: [AnswerRung]
    package let stages: [Stage]

    /// - Parameters:
    ///   - rungs: the rungs in their order, each once.
    ///   - route: makes the endpoint for the rungs of a stage.
    init(_ rungs: [AnswerRung], _ route: ([AnswerRung]) -> Route) {
        self.rungs = rungs
        stages = rungs.stages.map { Stage(rungs: $0, route: route($0)) }
    }
}

extension [AnswerRung] {
    /// The rungs in stages: those of the cache that follow one another are asked together.
    var stages: [[AnswerRung]] {
        var groups: [[AnswerRung]] = []
        for rung in self {
            let isOfCache = AnswerRung.ofCache.contains(rung)
            if isOfCache, let last = groups.last?.last, AnswerRung.ofCache.contains(last) {
                groups[groups.count - 1].append(rung)
            } else {
                groups.append([rung])
            }
        }
        return groups
    }
}

extension Answer {
    /// The rung of the cache that an answer comes from, by its Cache-Status.
    fileprivate var cacheRung: AnswerRung {
        guard let status = cacheStatus else { return .live }
        if status.detail == AnswerRung.seed.rawValue { return .seed }
        if status.hit || status.detail == CacheStatus.Detail.otherVariant.rawValue {
            return (status.ttl ?? 0) < 0 ? .stale : .fresh
        }
        return status.detail == CacheStatus.Detail.staleIfError.rawValue ? .stale : .live
    }
}

extension RequestPlan {
    /// The plan of a stage, without the sources that its rungs do not need.
    func limited(to rungs: [AnswerRung]) -> RequestPlan {
        var plan = self
        let isRead = self.rungs.contains(.fresh) || self.rungs.contains(.stale)
        plan.rungs = []
        if !rungs.contains(.seed) { plan.seed = nil }
        let asksStore = rungs.contains { $0 == .fresh || $0 == .live || $0 == .stale }
        if !isRead || !asksStore { plan.policy.mode = .none }
        if !rungs.contains(.live) {
            plan.asksNobody = true
            plan.policies.retry = RetryPolicy()
            plan.phases?.placeholder = nil
        }
        if !rungs.contains(.stale) { plan.policy.gone = .pass }
        if rungs != [.fallback] { plan.phases?.fallback = nil }
        if rungs == [.recording] { plan.replay() }
        return plan
    }
}
