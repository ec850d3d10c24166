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
        let (hot, router) = (routes.hot, routes.router)
        let place = try routes.services.refusing { () throws(RouteRefusal) in
            try router.place(
                exchange.request,
                exchange.target,
                from: exchange.listener.address,
                found: exchange.match,
                known: { hot.known(host: $0) },
                learnt: { hot.note($0) }
            )
        }
        switch place {
        case .daemon: answerOptions(exchange)
        case .tunnel(let authority):
            do throws(Problem) {
                try await tunnels.connect(exchange, authority, on: loop)
            } catch {
                exchange.tell(ClientTrouble(connect: error), error.detail)
                throw error
            }
        case .service(let match): try await serve(exchange, match, on: loop)
        }
    }

    private func answerOptions(_ exchange: Exchange) {
        let fields = Fields([("Allow", Router.methods)])
        exchange.sendHead(ResponseHead(status: 200, reason: "OK", fields: fields), body: .known(0))
        exchange.finish()
    }

    /// A service, or forward mode, answers.
    private func serve(_ exchange: Exchange, _ match: RouteMatch, on loop: isolated EventLoop) async throws(Problem) {
        let (route, services, responder) = (match.route, routes.services, routes.responder)
        // The hot path may answer for this origin from now on. The rules for http are other ones than those for https.
        if route.asksTarget, let origin = match.origin, origin.scheme == "http" { routes.hot.note(origin: origin) }
        exchange.outcome.route = route.label
        exchange.outcome.endpoint = match.endpoint.name
        let cors = try services.refusing { () throws(RouteRefusal) in try CrossOrigin.decide(match.request, route) }
        if case .preflight(let fields) = cors {
            exchange.sendHead(ResponseHead(status: 204, reason: "No Content", fields: fields), body: .none)
            return exchange.finish()
        }
        if let ask = try upgradeAsk(exchange, match, cors.fields) {
            return try await tunnels.upgrade(exchange, ask, on: loop)
        }
        var added = cors.fields
        let quota = RequestQuota(match, exchange, core.clock)
        try quota.take(.all, &added)
        var call = ServiceCall(match, exchange.framing, via: services.plan.via(match.request.version))
        let bodies = match.endpoint.request.logBodies.map { BodyLog(limit: $0) }
        Self.bind(&call, exchange, via: services.plan.via, bodies)
        call.gate = FaultGate(match)
        if let draft = exchange.draft, let body = call.body {
            let seen = draft.watching(body, exchange.framing)
            // An inner service may have a demo answer, and a fault may keep the origin from being asked.
            let isRead = match.endpoint.demo == nil && route.inner == nil && call.gate == nil
            call.body = isRead ? seen : await draft.readAhead(seen, bind: call.bindBody, on: loop)
            if !isRead { exchange.requestBody.readerLeft() }
        }
        var result: ServiceAnswer
        do throws(RouteRefusal) {
            let bind = call.bindBody
            if let failure = try await RequestInspection.examine(
                match,
                &call.body,
                bind: bind,
                &added,
                exchange,
                on: loop
            ) {
                result = ServiceAnswer(answer: core.failure(failure, ForwardReason(.method)))
            } else {
                result = try await services.answer(call, on: loop)
            }
        } catch {
            // The page that may call the service may read what went wrong, too.
            var problem = Problem(error, services.plan)
            CrossOrigin.apply(added, to: &problem.fields)
            throw problem
        }
        if result.answer.originTime != nil {
            do throws(Problem) { try quota.take(.origin, &added) } catch {
                result.answer.reader?.close()
                throw error
            }
        }
        let effect = drawFaults(&result, match, exchange, after: call.gate?.draws, on: loop)
        let made = MadeAnswer(result, effect, added, bodies, match, responder)
        guard let latency = effect?.latency, latency > 0 else { return await made.send(to: exchange, on: loop) }
        // The task ends, and with it all that it has held: only the answer waits.
        exchange.made = made
        DelayedExchange.begin(exchange, after: latency, by: self)
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
