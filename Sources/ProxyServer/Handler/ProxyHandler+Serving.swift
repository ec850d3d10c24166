// Routes a request to the part that answers it: the daemon itself, a tunnel, or a service.

import CacheStore
import DemoMode
import DownloadCore
import EventLoop
import HTTPCaching
import HTTPWire
import Policies
import ServiceCore

extension ProxyHandler {
    func route(_ exchange: Exchange, on loop: isolated EventLoop) async throws(Problem) {
        switch try place(of: exchange) {
        case .daemon: answerOptions(exchange)
        case .tunnel(let authority): try await connect(exchange, authority, on: loop)
        case .service(let match): try await serve(exchange, match, on: loop)
        }
    }

    // What of a request never waits is in functions of its own: one that waits has nothing of it in its frames.

    @inline(never) private func place(of exchange: Exchange) throws(Problem) -> RequestPlace {
        let (hot, router) = (routes.hot, routes.router)
        return try routes.services.refusing { () throws(RouteRefusal) in
            try router.place(
                exchange.request,
                exchange.target,
                from: exchange.listener.address,
                found: exchange.match,
                known: { hot.known(host: $0) },
                learnt: { hot.note($0) }
            )
        }
    }

    @inline(never) private func connect(
        _ exchange: Exchange,
        _ authority: Authority,
        on loop: isolated EventLoop
    ) async throws(Problem) {
        do throws(Problem) {
            try await tunnels.connect(exchange, authority, on: loop)
        } catch {
            exchange.tell(ClientTrouble(connect: error), error.detail)
            throw error
        }
    }

    private func answerOptions(_ exchange: Exchange) {
        let fields = Fields([("Allow", Router.methods)])
        exchange.sendHead(ResponseHead(status: 200, reason: "OK", fields: fields), body: .known(0))
        exchange.finish()
    }

    /// A service, or forward mode, answers.
    private func serve(_ exchange: Exchange, _ match: RouteMatch, on loop: isolated EventLoop) async throws(Problem) {
        switch try begin(exchange, match) {
        case .answered: break
        case .upgrade(let ask): try await upgrade(exchange, ask, on: loop)
        case .call(let serving): try await serve(serving, on: loop)
        }
    }

    @inline(never) private func upgrade(
        _ exchange: Exchange,
        _ ask: UpgradeAsk,
        on loop: isolated EventLoop
    ) async throws(Problem) {
        try await tunnels.upgrade(exchange, ask, on: loop)
    }

    private func serve(_ serving: ServedExchange, on loop: isolated EventLoop) async throws(Problem) {
        if serving.isWatched { await serving.watch(on: loop) }
        let result: ServiceAnswer
        do throws(RouteRefusal) {
            if serving.isExamined, let failure = try await serving.examine(on: loop) {
                result = ServiceAnswer(answer: core.failure(failure, ForwardReason(.method)))
            } else {
                result = try await serving.services.answer(serving.call, on: loop)
            }
        } catch {
            throw serving.problem(error)
        }
        guard let made = try make(result, serving, on: loop) else { return }
        await made.send(to: serving.exchange, on: loop)
    }

    /// What a service makes of a request before it waits for anything.
    private enum Beginning {
        case answered
        case upgrade(UpgradeAsk)
        case call(ServedExchange)
    }

    @inline(never) private func begin(_ exchange: Exchange, _ match: RouteMatch) throws(Problem) -> Beginning {
        let (route, services) = (match.route, routes.services)
        // The hot path may answer for this origin from now on. The rules for http are other ones than those for https.
        if route.asksTarget, let origin = match.origin, origin.scheme == "http" { routes.hot.note(origin: origin) }
        exchange.outcome.route = route.label
        exchange.outcome.endpoint = match.endpoint.name
        let cors = try services.refusing { () throws(RouteRefusal) in try CrossOrigin.decide(match.request, route) }
        if case .preflight(let fields) = cors {
            exchange.sendHead(ResponseHead(status: 204, reason: "No Content", fields: fields), body: .none)
            exchange.finish()
            return .answered
        }
        if let ask = try upgradeAsk(exchange, match, cors.fields) { return .upgrade(ask) }
        var added = cors.fields
        let quota = RequestQuota(match, exchange, core.clock)
        try quota.take(.all, &added)
        var call = ServiceCall(match, exchange.framing, via: services.plan.via(match.request.version))
        let bodies = match.endpoint.request.policies.logBodies.map { BodyLog(limit: $0) }
        Self.bind(&call, exchange, via: services.plan.via, bodies)
        call.gate = FaultGate(match)
        return .call(ServedExchange(exchange, match, call, quota, added, bodies, services, routes.responder))
    }

    /// - Returns: what is to be sent now; nil where it is sent later.
    @inline(never) private func make(
        _ result: ServiceAnswer,
        _ serving: ServedExchange,
        on loop: isolated EventLoop
    ) throws(Problem) -> MadeAnswer? {
        var result = result
        if result.answer.originTime != nil {
            do throws(Problem) { try serving.quota.take(.origin, &serving.added) } catch {
                result.answer.reader?.close()
                throw error
            }
        }
        let (exchange, match) = (serving.exchange, serving.match)
        let effect = drawFaults(&result, match, exchange, after: serving.call.gate?.draws, on: loop)
        let made = MadeAnswer(result, effect, serving.added, serving.bodies, match, serving.responder)
        guard let latency = effect?.latency, latency > 0 else { return made }
        // The task ends, and with it all that it has held: only the answer waits.
        exchange.made = made
        DelayedExchange.begin(exchange, after: latency, by: self)
        return nil
    }

    /// The question of a request that wants another protocol, where an origin can be asked for it.
    private func upgradeAsk(
        _ exchange: Exchange,
        _ match: RouteMatch,
        _ added: Fields
    ) throws(Problem) -> UpgradeAsk? {
        let services = routes.services
        guard let wanted = UpgradeTunnel.wantedProtocols(match.request, exchange.framing),
            let hop = try services.refusing({ () throws(RouteRefusal) in try services.plan.upgradeHop(match) })
        else { return nil }
        return UpgradeAsk(
            request: match.request,
            protocols: wanted,
            hop: hop,
            rewriting: match.route.rewriting,
            added: added
        )
    }

    /// What of the exchange the service uses while it answers.
    private static func bind(_ call: inout ServiceCall, _ exchange: Exchange, via: String, _ bodies: BodyLog?) {
        call.trace = exchange.trace
        exchange.identify(&call.originFields)
        call.onInterim = { [weak exchange, rewriting = call.match.route.rewriting] head in
            if let exchange { Responder.forward(interim: head, rewriting, via: via, exchange) }
        }
        call.endWithClient = { [weak exchange] in exchange?.endWithClient() }
        call.whenEnding = { [weak exchange] end in exchange?.atDrain(end) }
        guard exchange.framing != .none else { return }
        call.body = bodies?.watching(exchange.requestBody) ?? exchange.requestBody
        call.bindBody = { [body = exchange.requestBody] in body.onAvailable = $0 }
    }
}

/// A request that a service answers, with what the answer needs. One object, which each function that waits for the answer
/// has in its frame. Loop-bound.
private final class ServedExchange {
    let exchange: Exchange
    let match: RouteMatch
    private(set) var call: ServiceCall
    let quota: RequestQuota
    /// Fields of cross-origin rules and quotas, and those that say what is wrong with the request.
    var added: Fields
    let bodies: BodyLog?
    let services: ServiceClient
    let responder: Responder

    init(
        _ exchange: Exchange,
        _ match: RouteMatch,
        _ call: ServiceCall,
        _ quota: RequestQuota,
        _ added: Fields,
        _ bodies: BodyLog?,
        _ services: ServiceClient,
        _ responder: Responder
    ) {
        self.exchange = exchange
        self.match = match
        self.call = call
        self.quota = quota
        self.added = added
        self.bodies = bodies
        self.services = services
        self.responder = responder
    }

    /// Its content becomes a part of the journal.
    var isWatched: Bool { exchange.draft != nil && call.body != nil }

    @inline(never) func watch(on loop: isolated EventLoop) async {
        guard let draft = exchange.draft, let body = call.body else { return }
        let seen = draft.watching(body, exchange.framing)
        // An inner service may have a demo answer, and a fault may keep the origin from being asked.
        let isRead = match.endpoint.demo == nil && match.route.inner == nil && call.gate == nil
        call.body = isRead ? seen : await draft.readAhead(seen, bind: call.bindBody, on: loop)
        if !isRead { exchange.requestBody.readerLeft() }
    }

    /// It is checked by a document before it is answered.
    var isExamined: Bool { match.route.plan.examination != nil }

    /// ``RequestInspection/examine(_:_:bind:_:_:on:)``
    @inline(never) func examine(on loop: isolated EventLoop) async throws(RouteRefusal) -> FetchError? {
        var (body, added) = (call.body, added)
        defer { (call.body, self.added) = (body, added) }
        return try await RequestInspection.examine(match, &body, bind: call.bindBody, &added, exchange, on: loop)
    }

    /// The page that may call the service may read what went wrong, too.
    @inline(never) func problem(_ refusal: RouteRefusal) -> Problem {
        var problem = Problem(refusal, services.plan)
        CrossOrigin.apply(added, to: &problem.fields)
        return problem
    }
}

@available(*, unavailable) extension ServedExchange: Sendable {}
