// Demo answers of services: drawn, and drawn again after a failure where the endpoint has retries.

import CacheStore
import DemoMode
import DownloadCore
import EventLoop
import HTTPWire
import Policies

extension ServiceClient {
    /// The demo answer to a call. A drawn failure counts as one of an origin: it is drawn again as often as `retry` says.
    func demo(
        _ rule: DemoRule,
        _ call: ServiceCall,
        on loop: isolated EventLoop
    ) async throws(RouteRefusal) -> ServiceAnswer {
        let method = call.head.method
        let policy = call.match.endpoint.request.retry
        let resilience = call.match.route.runtime.resilience
        if policy.count > 0 { resilience.earnRetries(policy.budget) }
        let key = DrawKey(rule: rule.name, request: Array("\(method.name) \(call.match.rest)".utf8))
        var draw = try await draw(rule, key, call, on: loop)
        var retries = 0
        while draw.isFailure, let wait = waitForRetry(retries + 1, after: draw, call, policy, resilience) {
            retries += 1
            do { try await loop.sleep(nanoseconds: wait) } catch { throw .clientLeft }
            draw = try await self.draw(rule, key, call, on: loop)
        }
        let hasBody = draw.status != 204 && draw.status != 304 && draw.status >= 200
        let body = hasBody ? Body.complete(draw.body) : nil
        if let body, draw.status == 200, method == .get || method == .head {
            let head = ResponseHead(status: 200, reason: ReasonPhrase.reason(200), fields: draw.representationFields)
            return ServiceAnswer(answer: core.own(call.head, head, body, on: loop), demo: draw.fieldValue)
        }
        var answer = Answer(
            head: ResponseHead(status: draw.status, fields: draw.fields),
            reader: method == .head ? nil : body?.makeReader(on: loop),
            length: body?.knownLength,
            cacheStatus: nil
        )
        answer.head.reason = ReasonPhrase.reason(draw.status)
        return ServiceAnswer(answer: answer, demo: draw.fieldValue)
    }

    /// One draw, after its latency.
    private func draw(
        _ rule: DemoRule,
        _ key: DrawKey,
        _ call: ServiceCall,
        on loop: isolated EventLoop
    ) async throws(RouteRefusal) -> DemoDraw {
        let draw = DemoDraw.draw(rule, key: key, ordinal: call.match.route.ordinals.next(key))
        if draw.latency > 0 {
            do { try await loop.sleep(nanoseconds: draw.latency) } catch { throw .clientLeft }
        }
        return draw
    }

    /// Nanoseconds until a failure is drawn again; nil where it is the answer.
    private func waitForRetry(
        _ retry: Int,
        after draw: DemoDraw,
        _ call: ServiceCall,
        _ policy: RetryPolicy,
        _ resilience: Resilience
    ) -> UInt64? {
        let end = AttemptEnd.head(status: draw.status, retryAfter: draw.fields.first(.retryAfter))
        let decision = RetryDecision.decide(
            end,
            policy,
            retry: retry,
            method: call.head.method,
            hasSentBody: false,
            now: core.clock.now(),
            draw: policy.jitter == 0 ? 0 : .random(in: 0...1)
        )
        guard case .retry(let wait) = decision, resilience.takeRetry() else { return nil }
        resilience.tell(
            .retrying(
                method: call.head.method.name,
                path: String(call.match.rest.prefix { $0 != "?" }),
                attempt: retry + 1,
                of: policy.count + 1,
                wait: wait,
                why: end.text
            )
        )
        return wait
    }
}
