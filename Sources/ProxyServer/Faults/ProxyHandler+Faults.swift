// Draws the faults of an answer, and does what needs no wire: the wait, and another answer in place of this one.

import CacheStore
import DemoMode
import DownloadCore
import EventLoop
import HTTPCaching
import HTTPWire
import Policies
import ServiceCore

extension ProxyHandler {
    /// The faults of one answer to one client, after their latency. What they change is neither stored nor seen by others
    /// that wait for the same response: the core has given this answer away.
    ///
    /// The daemon's own documents, of requests that have no answer, stay as they are.
    /// - Parameters:
    ///   - result: another answer afterwards where a fault has a status; it says which faults act.
    ///   - early: what was drawn before the origin was asked; nil: nothing.
    /// - Returns: nil where none acts.
    func drawFaults(
        _ result: inout ServiceAnswer,
        _ match: RouteMatch,
        _ exchange: Exchange,
        after early: FaultDraws?,
        on loop: isolated EventLoop
    ) -> FaultEffect? {
        guard let plan = match.endpoint.request.faults, result.answer.failure == nil else { return nil }
        let drawn: FaultEffect?
        if let draws = result.faultDraws {
            drawn = draws.effect
        } else if result.answer.isUnasked {
            drawn = early?.effect
        } else {
            let request = Array("\(exchange.request.method.name) \(match.rest)".utf8)
            drawn = plan.draw(at: FaultPoint(result), request: request, match.route.ordinals, after: early)
        }
        guard let effect = drawn else { return nil }
        result.faults = effect.fieldValue
        exchange.trace?.say("fault", [("faults", effect.fieldValue)])
        count(effect, exchange)
        if let substitute = effect.substitute {
            result.answer.reader?.close()
            result.answer = substitute.answer(
                to: exchange.request.method,
                cacheStatus: result.answer.cacheStatus,
                originTime: result.answer.originTime,
                budget: core.budget,
                on: loop
            )
        }
        return effect
    }

    /// The log has the fault that changes most.
    private func count(_ effect: FaultEffect, _ exchange: Exchange) {
        let counters = exchange.context.counters
        if effect.isDelayed {
            counters.add(.faultLatency)
            exchange.outcome.fault = "latency"
        }
        if effect.pace != nil {
            counters.add(.faultPace)
            exchange.outcome.fault = "pace"
        }
        if effect.substitute != nil {
            counters.add(.faultStatus)
            exchange.outcome.fault = "status"
        }
        if let wire = effect.wire {
            counters.add(.fault(wire.kind))
            exchange.outcome.fault = wire.kind.rawValue
        }
    }
}

extension FaultPoint {
    /// Where an answer that is no failure comes from.
    init(_ result: ServiceAnswer) {
        guard result.demo == nil, let status = result.answer.cacheStatus else {
            self = .demo
            return
        }
        self =
            switch CacheOutcome(status) {
            // Stale, and used while it is checked, or since the request takes such ones.
            case .hit: status.ttl.map { $0 < 0 } ?? false ? .stale : .hit
            case .revalidated: .revalidate
            case .stale, .placeholder, .fallback: .stale
            case .miss, .bypass, .collapsed, .demo, .none: .miss
            }
    }
}

extension FaultEffect.Substitute {
    fileprivate func answer(
        to method: Method,
        cacheStatus: CacheStatus?,
        originTime: UInt64?,
        budget: BodyBudget,
        on loop: EventLoop
    ) -> Answer {
        var head = ResponseHead(status: status, reason: ReasonPhrase.reason(status))
        if let file { head.fields.append(.contentType, file.contentType) }
        if let retryAfter { head.fields.append(.retryAfter, String(retryAfter)) }
        let body = status == 204 || status == 304 ? nil : file?.body(budget) ?? .complete([])
        var answer = Answer(
            head: head,
            reader: method == .head ? nil : body?.makeReader(on: loop),
            length: body?.knownLength,
            cacheStatus: cacheStatus
        )
        answer.originTime = originTime
        return answer
    }
}
