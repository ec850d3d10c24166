// Answers of services before anything live, or in an order of their own: the sources of `from`, and demo answers with
// their draws, drawn again after a failure where the endpoint has retries.

import CacheStore
import DemoMode
import DownloadCore
import EventLoop
import HTTPCaching
import HTTPWire
import Matching
import Policies

/// The result of demo mode for a call.
enum DemoOutcome {
    case answer(ServiceAnswer)
    /// No rule answers, and the call continues as without demo mode; its body is complete.
    case pass(ServiceCall)
}

extension ServiceClient {
    /// Answers a call.
    /// - Returns: an error unchanged.
    func answer(
        unmapped call: ServiceCall,
        on loop: isolated EventLoop
    ) async throws(RouteRefusal) -> ServiceAnswer {
        let endpoint = call.match.endpoint
        if endpoint.order == nil, endpoint.demo == nil { return try await answer(live: call, on: loop) }
        return try await answer(staged: call, on: loop)
    }

    /// The answer of demo mode, or of the sources in their order.
    @inline(never) private func answer(
        staged call: ServiceCall,
        on loop: isolated EventLoop
    ) async throws(RouteRefusal) -> ServiceAnswer {
        if let order = call.match.endpoint.order { return try await answerInOrder(order, call, on: loop) }
        guard let plan = call.match.endpoint.demo else { return try await answer(live: call, on: loop) }
        call.tell(.demo(plan))
        switch try await demo(plan, call, on: loop) {
        case .answer(let answer): return answer
        case .pass(let call): return try await answer(live: call, on: loop)
        }
    }

    /// The answer of the first source that has one. If none has, that of the origin where it is a source, or else a refusal.
    private func answerInOrder(
        _ order: SourceOrder<EndpointRoute>,
        _ call: ServiceCall,
        on loop: isolated EventLoop
    ) async throws(RouteRefusal) -> ServiceAnswer {
        call.tell(.order(order))
        var walk = SourceOrderWalk(order, call)
        do throws(FetchError) {
            try await walk.readContent(on: loop)
        } catch {
            return ServiceAnswer(answer: core.answers.failure(error, ForwardReason(.method)))
        }
        while let stage = walk.next() {
            guard let result = try await ask(stage, walk.attempt(stage), on: loop) else { continue }
            if let answer = walk.judge(result, of: stage, cacheName: core.cacheName) { return answer }
        }
        return walk.last ?? ServiceAnswer(answer: core.answers.failure(walk.refusal, ForwardReason(.miss)))
    }

    /// Asks demo mode.
    /// - Returns: nil if it has no rule for the call.
    private func ask(
        _ stage: SourceOrder<EndpointRoute>.Stage,
        _ call: ServiceCall,
        on loop: isolated EventLoop
    ) async throws(RouteRefusal) -> ServiceAnswer? {
        guard let plan = stage.route.demo else { return try await answer(live: call, on: loop) }
        switch try await demo(plan, call, on: loop) {
        case .answer(let answer): return answer
        case .pass: return nil
        }
    }

    /// The demo answer to a call. A drawn failure counts as a failure of an origin: it is drawn again as often as
    /// `retry` says, and the rules are asked anew each time.
    /// - Throws: a refusal if no rule answers and such requests are not found.
    func demo(
        _ plan: DemoPlan,
        _ call: ServiceCall,
        on loop: isolated EventLoop
    ) async throws(RouteRefusal) -> DemoOutcome {
        if let early = call.match.early {
            return .answer(await answer(early.draw, early.faults, call.demoParts, to: call, on: loop))
        }
        var call = call
        let parts: RequestParts
        do throws(FetchError) {
            parts = try await self.parts(plan, &call, on: loop)
        } catch {
            return .answer(ServiceAnswer(answer: core.answers.failure(error, ForwardReason(.method))))
        }
        let (state, key) = (call.match.route.demoState, call.demoKey)
        let override = try Self.override(plan, of: call)
        let asked = try Self.rule(of: override, in: plan, for: call.match.route.plan.name)
        func count(_ asked: DemoState.Turn?, _ faults: FaultPlan?) -> DemoState.Counted? {
            let (now, said) = (core.clock.elapsed, override?.draw)
            return state.count(plan, parts, key: key, now: now, asked: asked, said: said, faults: faults)
        }
        guard let first = count(asked, call.match.endpoint.request.faults) else {
            if plan.unmatched == .pass { return .pass(call) }
            let nearest = state.nearMisses(plan, parts, key: key, now: core.clock.elapsed)
            throw .noDemoRule(plan.name, service: call.match.route.plan.name, nearest: nearest)
        }
        let policy = call.match.endpoint.request.policies.retry
        if policy.count > 0 { call.match.route.runtime.resilience.earnRetries(policy.budget) }
        var draw = try await draw(first, override, on: loop)
        var retries = 0
        while draw.isFailure, let wait = waitForRetry(retries + 1, after: draw, call) {
            retries += 1
            do { try await loop.sleep(nanoseconds: wait) } catch { throw .clientLeft }
            // The faults are drawn once for the request.
            guard let again = count(asked, nil) ?? count(first.turn, nil) else { break }
            draw = try await self.draw(again, override, on: loop)
        }
        return .answer(await answer(draw, first.faults, parts, to: call, on: loop))
    }

    private func answer(
        _ draw: DemoDraw,
        _ faults: FaultDraws?,
        _ parts: RequestParts,
        to call: ServiceCall,
        on loop: isolated EventLoop
    ) async -> ServiceAnswer {
        var answer = await answer(draw, parts, to: call, on: loop)
        answer.faultDraws = faults
        return answer
    }

    /// The changes that a request makes to its demo answer.
    /// - Returns: nil if it makes none, or may make none.
    private static func override(_ plan: DemoPlan, of call: ServiceCall) throws(RouteRefusal) -> DemoOverride? {
        guard let limit = plan.overrides else { return nil }
        do throws(DemoOverrideError) {
            return try DemoOverride(call.head.fields, limit: limit)
        } catch {
            throw .badOverride("\(error)", service: call.match.route.plan.name)
        }
    }

    /// The rule that a request asks for by its name.
    private static func rule(
        of override: DemoOverride?,
        in plan: DemoPlan,
        for service: String
    ) throws(RouteRefusal) -> DemoState.Turn? {
        guard let name = override?.rule else { return nil }
        if let rule = plan.rules.first(where: { $0.label == name }) { return DemoState.Turn(rule: rule, position: nil) }
        let known = plan.rules.compactMap(\.label)
        let help = known.isEmpty ? "'\(plan.name)' has no rules" : "there are \(known.joined(separator: ", "))"
        throw .badOverride("there is no rule '\(name)'; \(help)", service: service)
    }

    /// The request for the rules; the body of the call can be read from its beginning afterwards.
    /// - Throws: an error if the client did not send all of the body.
    private func parts(
        _ plan: DemoPlan,
        _ call: inout ServiceCall,
        on loop: isolated EventLoop
    ) async throws(FetchError) -> RequestParts {
        var parts = call.demoParts
        guard plan.needsBody else { return parts }
        if call.isPlain {
            parts.body = .whole(WholeBody([]))
            return parts
        }
        let content = try await PostedContent.read(call.body, bind: call.bindBody, atMost: plan.bodyLimit, on: loop)
        let isWhole = content.isWhole && content.bytes.count <= plan.bodyLimit
        parts.body = isWhole ? .whole(WholeBody(content.bytes)) : .tooLong
        call.body = ContentSource(content.bytes, then: content.isWhole ? nil : call.body)
        return parts
    }

    private func answer(
        _ draw: DemoDraw,
        _ parts: RequestParts,
        to call: ServiceCall,
        on loop: isolated EventLoop
    ) async -> ServiceAnswer {
        if case .events(let events) = draw.content {
            let (lastID, now) = (parts.fields.first("Last-Event-ID"), core.clock.now())
            return DemoEventStream.answer(events, draw, behind: lastID, to: call, now: now, on: loop)
        }
        var made = await DemoResponse.make(draw, parts, call, now: core.clock.now(), on: loop)
        let method = call.head.method
        var misconduct = DemoMisconduct(made.draw)
        misconduct.retag(&made.fields, method)
        let hasBody = made.status != 204 && made.status != 304 && made.status >= 200
        let body = hasBody ? made.body(core.budget) : nil
        if let body, made.status == 200, method == .get || method == .head, made.isRepresentation {
            let head = ResponseHead(status: 200, reason: ReasonPhrase.reason(200), fields: made.fields)
            var answer = core.answers.own(call.head, head, body, on: loop)
            if answer.head.status == 304, misconduct.commits(.no304) {
                answer = core.answers.own(call.head.unconditional, head, body, on: loop)
            }
            misconduct.spoil(&answer, method, now: core.clock.now())
            return ServiceAnswer(answer: answer, demo: misconduct.said)
        }
        var answer = Answer(
            head: ResponseHead(status: made.status, fields: made.fields),
            reader: method == .head ? nil : body?.makeReader(on: loop),
            // The length is unknown if another request would get another text.
            length: method == .head && !made.isRepresentation ? nil : body?.knownLength,
            cacheStatus: nil
        )
        answer.head.reason = ReasonPhrase.reason(made.status)
        misconduct.spoil(&answer, method, now: core.clock.now())
        return ServiceAnswer(answer: answer, demo: misconduct.said)
    }

    /// One draw, after its latency.
    private func draw(
        _ counted: DemoState.Counted,
        _ override: DemoOverride?,
        on loop: isolated EventLoop
    ) async throws(RouteRefusal) -> DemoDraw {
        let draw = DemoDraw.draw(counted, override: override)
        if draw.latency > 0 {
            do { try await loop.sleep(nanoseconds: draw.latency) } catch { throw .clientLeft }
        }
        return draw
    }

    /// Nanoseconds until a failure is drawn again; nil where it is the answer.
    private func waitForRetry(_ retry: Int, after draw: DemoDraw, _ call: ServiceCall) -> UInt64? {
        let verdict = call.match.route.runtime.resilience.verdict(
            on: .head(status: draw.status, retryAfter: draw.fields.first(.retryAfter)),
            call.match.endpoint.request.policies.retry,
            retry: retry,
            method: call.head.method,
            path: call.match.rest,
            hasSentBody: false,
            now: core.clock.now()
        )
        return if case .retry(let wait) = verdict { wait } else { nil }
    }
}
