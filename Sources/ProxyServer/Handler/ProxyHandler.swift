// Answers the requests of one loop: its routes, the way of a request to the part that answers it, and the answer of a
// service on its way to the client.

import CacheStore
import DemoMode
package import DownloadCore
package import EventLoop
import HTTPCaching
import HTTPWire
import Policies
package import ServiceCore
package import Upstream

/// Loop-bound, one per loop.
package final class ProxyHandler: ExchangeHandler {
    let core: DownloadCore
    let client: UpstreamClient
    let context: LoopContext
    let listeners: OwnListeners
    /// Makes the sessions in tunnels that are read; nil if none is.
    private let interception: (any Interception)?
    /// The calls under way on this loop, of all configurations.
    private let calls: CallsUnderWay
    /// Gets the spans of traced requests.
    private let spans: SpanQueue
    /// Replaced by a reload. Requests under way finish by those that they began with.
    // Unchecked: no code outside runs while this variable is replaced, and each request would pay for the check.
    @exclusivity(unchecked) private(set) var routes: RoutesInForce
    /// Requests that were forwarded without a task.
    // Unchecked: no code outside runs while this variable changes, and each access would pay for the check.
    @exclusivity(unchecked) var directRequests = 0

    package init(
        on loop: isolated EventLoop,
        plan: RoutePlan,
        core: DownloadCore,
        client: UpstreamClient,
        context: LoopContext,
        listeners: OwnListeners,
        events: EventHub,
        spans: SpanQueue = SpanQueue(),
        interception: (any Interception)? = nil
    ) {
        self.interception = interception
        self.spans = spans
        self.core = core
        self.client = client
        self.context = context
        self.listeners = listeners
        calls = .make(events, on: loop)
        routes = RoutesInForce(
            plan,
            core: core,
            client: client,
            context: context,
            listeners: listeners,
            calls: calls,
            spans: spans
        )
        context.secrets = plan.secrets
        context.contents = plan.contents
    }

    /// Takes over the routes of a new configuration.
    package func update(_ plan: RoutePlan) {
        routes = RoutesInForce(
            plan,
            core: core,
            client: client,
            context: context,
            listeners: listeners,
            calls: calls,
            spans: spans
        )
        context.secrets = plan.secrets
        context.contents = plan.contents
        context.forgetRequests()
    }

    /// Ends all transfers; the last call, on the loop.
    package func shutdown() { client.shutdown() }

    // MARK: - The hot path

    /// With one of these fields a request takes the waiting path.
    private static let slow = HotPathWindow.disqualifying.subtracting(HotPathWindow.selecting)
        .union(FieldSet(.upgrade, .expect))

    package func answerSynchronously(_ request: borrowing HotRequest, through sender: any HotSender) -> HotAnswer {
        guard request.isGet, request.present.isDisjoint(with: Self.slow) else { return .notMine }
        if routes.hot.isObserved { return answerObserved(request, through: sender) }
        return routes.hot.answer(request, core, through: sender)
    }

    /// Answers a request that neither the journal nor a trace has to have.
    @inline(never) private func answerObserved(
        _ request: borrowing HotRequest,
        through sender: any HotSender
    ) -> HotAnswer {
        guard !routes.hot.isJournaled, let sampler = routes.hot.sampler, !sampler.samples(request) else {
            return .notMine
        }
        let answer = routes.hot.answer(request, core, through: sender)
        if answer != .notMine { sampler.answered() }
        return answer
    }

    // MARK: - The waiting path

    package func answer(_ exchange: Exchange, on loop: isolated EventLoop) async {
        if let made = exchange.made as? MadeAnswer {
            exchange.made = nil
            return await made.send(to: exchange, on: loop)
        }
        if routes.hot.isTraced || routes.hot.sampler != nil { exchange.beginTrace(routes.hot) }
        beginDraft(exchange)
        do throws(Problem) {
            try await route(exchange, on: loop)
        } catch {
            exchange.problem(error)
        }
    }

    /// The exchange becomes an entry of the journal, where there is one.
    func beginDraft(_ exchange: Exchange) {
        if routes.hot.isJournaled, exchange.draft == nil { exchange.draft = JournalDraft(context.journal) }
    }

    /// What answers CONNECT and Upgrade.
    var tunnels: Tunnels {
        Tunnels(routes: routes, core: core, client: client, listeners: listeners, interception: interception)
    }

    /// Explains and routes requests that no client has sent.
    var unsent: UnsentRequests {
        UnsentRequests(routes: routes, core: core, listeners: listeners, limits: context.settings.head)
    }
}

@available(*, unavailable) extension ProxyHandler: Sendable {}

// MARK: - Serving

extension ProxyHandler {
    func route(_ exchange: Exchange, on loop: isolated EventLoop) async throws(Problem) {
        switch try destination(of: exchange) {
        case .daemon: answerOptions(exchange)
        case .tunnel(let authority): try await connect(exchange, authority, on: loop)
        case .service(let match): try await serve(exchange, match, on: loop)
        }
    }

    // What of a request never waits is in functions of its own: one that waits has nothing of it in its frames.

    @inline(never) private func destination(of exchange: Exchange) throws(Problem) -> RequestDestination {
        let (hot, router) = (routes.hot, routes.router)
        return try routes.services.refusing { () throws(RouteRefusal) in
            try router.destination(
                exchange.request,
                exchange.target,
                over: exchange.client.connection,
                found: exchange.match,
                known: { hot.known(host: $0) },
                learnt: { hot.note($0) },
                allowed: { hot.note($0, exchange.request, of: exchange.client) }
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
                result = ServiceAnswer(answer: core.answers.failure(failure, ForwardReason(.method)))
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
        exchange.outcome.note(route, match.endpoint)
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
            rewriting: match.rewriting,
            added: added
        )
    }

    /// What of the exchange the service uses while it answers.
    private static func bind(_ call: inout ServiceCall, _ exchange: Exchange, via: String, _ bodies: BodyLog?) {
        call.trace = exchange.trace
        exchange.identify(&call.originFields)
        call.onInterim = { [weak exchange, rewriting = call.match.rewriting] head in
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

// MARK: - The routes in force

/// What a loop's handler answers by; loop-bound. Made anew and replaced as a whole by a reload, so that no part of it
/// is of another configuration than the rest.
struct RoutesInForce {
    let plan: RoutePlan
    /// Answers calls of the plan's services.
    let services: ServiceClient
    /// Finds whom a request is for.
    let router: Router
    /// Answers fresh hits.
    let hot: HotState
    /// Sends the answers of services.
    let responder: Responder

    init(
        _ plan: RoutePlan,
        core: DownloadCore,
        client: UpstreamClient,
        context: LoopContext,
        listeners: OwnListeners,
        calls: CallsUnderWay,
        spans: SpanQueue
    ) {
        self.plan = plan
        services = ServiceClient(
            plan: plan,
            core: core,
            client: client,
            listeners: listeners,
            calls: calls,
            onFetch: { [counters = context.counters] in counters.add(.upstreamRequests) },
            document: { refusal in
                let problem = Problem(refusal, plan)
                return RefusalDocument(head: problem.head(name: plan.name), body: problem.body)
            }
        )
        router = Router(plan, listeners)
        hot = HotState(
            plan: plan,
            memory: core.memory,
            clock: core.clock,
            isTraced: context.daemonLog.tellsDecisions,
            isJournaled: context.journal.isOn,
            sampler: RequestSampler(spans)
        )
        responder = Responder(plan: plan, core: core, context: context)
    }
}

@available(*, unavailable) extension RoutesInForce: Sendable {}

// MARK: - Answers on their way

/// Loop-bound. A class, since it may wait for the latency of a fault.
final class MadeAnswer {
    private let result: ServiceAnswer
    /// The effect of the faults that act on the answer.
    private let effect: FaultEffect?
    /// The fields that cross-origin rules and quotas add.
    private let added: Fields
    private let bodies: BodyLog?
    private let match: RouteMatch
    private let responder: Responder

    init(
        _ result: ServiceAnswer,
        _ effect: FaultEffect?,
        _ added: Fields,
        _ bodies: BodyLog?,
        _ match: RouteMatch,
        _ responder: Responder
    ) {
        self.result = result
        self.effect = effect
        self.added = added
        self.bodies = bodies
        self.match = match
        self.responder = responder
    }

    /// Sends the answer; if the client has left, this only ends what there was to send.
    func send(to exchange: Exchange, on loop: isolated EventLoop) async {
        let rewriting = match.rewriting
        if let effect {
            await responder.send(result, rewriting, added, exchange, bodies, effect, on: loop)
        } else {
            await responder.send(result, rewriting, added, exchange, bodies, on: loop)
        }
        guard let bodies else { return }
        exchange.tell(bodies, match, result.answer.failure == nil ? result.answer.head : nil)
    }
}

@available(*, unavailable) extension MadeAnswer: Sendable {}
