// The places that answers of a route come from, in an order of its own.

import DownloadCore
import HTTPCaching
import HTTPWire
package import Policies

/// Made with the plan where `from` says so. Each stage is asked after the one before it has had no answer; a place that is
/// no rung is never asked.
///
/// Sendable: nothing in it changes.
package final class Ladder<Route: Sendable>: Sendable {
    /// Places that are asked as one: a run of those that the cache asks, or one of the others.
    package struct Stage: Sendable {
        package let rungs: [AnswerRung]
        /// The endpoint with what the rungs leave of its plan.
        package let route: Route

        /// What the request says to the cache, besides what its client says, so that only the rungs answer; nil: nothing.
        package var directives: String? {
            guard rungs.contains(where: AnswerRung.ofCache.contains) else { return nil }
            var directives: [String] = []
            let (fresh, live, stale) = (rungs.contains(.fresh), rungs.contains(.live), rungs.contains(.stale))
            // No response is as fresh for as long as this (RFC 9111 section 5.2.1.3), and who wants one that is fresh for
            // a while gets none that is refreshed behind it.
            if !fresh { directives.append("min-fresh=2147483647") } else if !stale { directives.append("min-fresh=0") }
            if !stale { directives.append("stale-if-error=0") }
            if !live, !stale { directives.append("only-if-cached") }
            return directives.isEmpty ? nil : directives.joined(separator: ", ")
        }

        /// The rung that an answer is of; nil where it is none of an own rung, or a failure, so that the next stage is asked.
        /// - Parameter policy: of the route.
        func rung(of answer: Answer, _ policy: CachePolicy) -> AnswerRung? {
            guard answer.failure == nil else { return nil }
            if rungs == [.recording] || rungs == [.demo] { return rungs[0] }
            if answer.isStandIn { return rungs == [.fallback] ? .fallback : .live }
            let status = answer.head.status
            // A client that gets 412 or 416 has a part or a version of something else than the next rung has.
            let isOfRequest = status == 412 || status == 416
            let isFailure = policy.success == nil ? status >= 500 : !isOfRequest && !policy.isSuccess(status)
            return isFailure ? nil : source(of: answer)
        }

        /// Whether an answer that is of no rung says of the origin why there is no better one.
        func isOfOrigin(_ answer: Answer) -> Bool {
            rungs.contains(.live) && (answer.failure != nil || source(of: answer) != nil)
        }

        /// The rung of the cache that an answer comes from, whatever it says; nil where that is left out.
        private func source(of answer: Answer) -> AnswerRung? {
            var rung = answer.cacheRung
            // Offline, what is stored answers in the place of the origin, however fresh it is.
            if rung == .fresh, !rungs.contains(.fresh) { rung = .stale }
            return rungs.contains(rung) ? rung : nil
        }
    }

    package let rungs: [AnswerRung]
    package let stages: [Stage]

    /// - Parameters:
    ///   - rungs: each once.
    ///   - route: makes the endpoint that some of them leave.
    init(_ rungs: [AnswerRung], _ route: ([AnswerRung]) -> Route) {
        self.rungs = rungs
        stages = rungs.stages.map { Stage(rungs: $0, route: route($0)) }
    }
}

extension [AnswerRung] {
    /// Those that are asked as one.
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
    /// Which of the cache's places it comes from.
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
    /// The plan of a stage: what its rungs do not need is not asked.
    func limited(to rungs: [AnswerRung]) -> RequestPlan {
        var plan = self
        let isRead = self.rungs.contains(.fresh) || self.rungs.contains(.stale)
        plan.rungs = []
        if !rungs.contains(.seed) { plan.seed = nil }
        let asksStore = rungs.contains { $0 == .fresh || $0 == .live || $0 == .stale }
        if !isRead || !asksStore { plan.policy.mode = .none }
        if !rungs.contains(.live) {
            plan.asksNobody = true
            plan.retry = RetryPolicy()
            plan.phases?.placeholder = nil
        }
        if !rungs.contains(.stale) { plan.policy.gone = .pass }
        if rungs != [.fallback] { plan.phases?.fallback = nil }
        if rungs == [.recording] { plan.replay() }
        return plan
    }
}
