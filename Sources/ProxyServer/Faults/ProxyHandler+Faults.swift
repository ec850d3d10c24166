// The faults of an answer that change it before it is sent: the wait, and another answer in its place.

import CacheStore
import DemoMode
import DownloadCore
import EventLoop
import HTTPCaching
import HTTPWire
import Policies
import ServiceCore

extension ProxyHandler {
    /// Draws the faults of one answer to one client, after its latency. The changes are neither stored nor seen by
    /// other requests for the same response. Answers that the daemon itself makes for failures have no faults.
    ///
    /// - Parameters:
    ///   - result: the answer; replaced if a fault has a status, and marked with the faults that act.
    ///   - early: the draws that were made before the origin was asked; nil for none.
    /// - Returns: nil if no fault acts.
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

    /// Counts the faults of an answer; the log names the one that changes most.
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
    /// The source of an answer that is not a failure, by which faults are chosen.
    init(_ result: ServiceAnswer) {
        guard result.demo == nil, let status = result.answer.cacheStatus else {
            self = .demo
            return
        }
        self =
            switch CacheOutcome(status) {
            // A hit is stale if it is used while it is validated, or if the request accepts stale responses.
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
