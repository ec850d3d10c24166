// From a request to whoever answers it: the proxy's own duties first (RFC 9110 section 7.6), then forward mode or a service.

import CacheStore
import DownloadCore
import EventLoop
import HTTPCaching
import HTTPWire
import ServiceCore
import Upstream

extension ProxyHandler {
    func route(_ exchange: Exchange, on loop: isolated EventLoop) async throws(Problem) {
        try accept(exchange.request)
        if Self.endsHere(exchange.request) { return answerOptions(exchange) }
        switch exchange.target.form {
        case .authority(let authority):
            do throws(Problem) {
                try await connect(exchange, authority, on: loop)
            } catch {
                exchange.tell(ClientTrouble(connect: error), error.detail)
                throw error
            }
        case .absolute(let scheme, let authority, let path):
            if scheme == "http", isServedHere(authority) {
                if exchange.target.isServerWide { return answerOptions(exchange) }
                // The authority of the target counts, whatever Host says (RFC 9112 section 3.2.2).
                var request = exchange.request
                request.target = path
                request.fields.set(.host, authority.description)
                return try await reverse(exchange, request, path, on: loop)
            }
            // Without a path OPTIONS asks about the server as a whole (RFC 9112 section 3.2.4).
            let path = exchange.target.isServerWide ? "" : path
            try await forward(exchange, scheme, authority, path, on: loop)
        case .asterisk:
            answerOptions(exchange)
        case .origin(let target):
            try await reverse(exchange, exchange.request, target, on: loop)
        }
    }

    // MARK: - Max-Forwards

    /// Whether a request is an OPTIONS that may not go any further (RFC 9110 section 7.6.2).
    private static func endsHere(_ request: RequestHead) -> Bool {
        request.method == .options && maxForwards(request.fields) == 0
    }

    private func answerOptions(_ exchange: Exchange) {
        let fields = Fields([("Allow", Self.methods)])
        exchange.sendHead(ResponseHead(status: 200, reason: "OK", fields: fields), body: .known(0))
        exchange.finish()
    }

    // MARK: - Reverse mode

    /// - Parameters:
    ///   - asked: the request of the exchange, as it would be in origin form.
    ///   - target: of `asked`.
    private func reverse(
        _ exchange: Exchange,
        _ asked: RequestHead,
        _ target: String,
        on loop: isolated EventLoop
    ) async throws(Problem) {
        let place = try service(for: asked, target)
        if let fresh = place.fresh { hot.note(fresh) }
        guard let route = place.route else { throw notRouted(target) }
        exchange.outcome.route = route.plan.name
        let cors = try CrossOrigin.decide(asked, route)
        if case .preflight(let fields) = cors {
            exchange.sendHead(ResponseHead(status: 204, reason: "No Content", fields: fields), body: .none)
            return exchange.finish()
        }
        let rest = route.rest(target)
        if let wanted = UpgradeTunnel.wantedProtocols(asked, exchange.framing),
            let hop = try upgradeHop(route, rest, asked.method)
        {
            return try await upgrade(
                exchange,
                asked,
                to: wanted,
                hop,
                rewriting: route.rewriting,
                cors.fields,
                on: loop
            )
        }
        let head = Self.endToEnd(asked)
        var request = RoutedRequest(
            route: route,
            head: head,
            rest: rest,
            originFields: originFields(head, hasBody: exchange.framing != .none),
            framing: exchange.framing
        )
        bind(&request, exchange)
        request.trace = exchange.trace
        exchange.identify(&request.originFields)
        let result: ServiceAnswer
        do throws(Problem) {
            result = try await answer(request, on: loop)
        } catch {
            // The page that may call the service may read what went wrong, too.
            var problem = error
            CrossOrigin.apply(cors.fields, to: &problem.fields)
            throw problem
        }
        await send(result, route.rewriting, cors.fields, exchange, on: loop)
    }

    func notRouted(_ target: String) -> Problem {
        let mounted = plan.services.map { "\($0.place) (\($0.plan.name))" }
        let list = mounted.isEmpty ? "no service is configured" : "services are at " + mounted.joined(separator: ", ")
        return Problem(status: 404, title: "No such service", detail: "no service matches \(target); \(list)")
    }

    // MARK: - Forward mode

    private func forward(
        _ exchange: Exchange,
        _ scheme: String,
        _ authority: Authority,
        _ path: String,
        on loop: isolated EventLoop
    ) async throws(Problem) {
        let (forward, origin, service) = try forwardTarget(scheme, authority, from: exchange.listener.address)
        exchange.outcome.route = "forward"
        // The rules for http are other ones than those for https.
        if scheme == "http" { hot.note(origin: origin) }
        if let wanted = UpgradeTunnel.wantedProtocols(exchange.request, exchange.framing) {
            let gates = [UpgradeGate(service: service, runtime: forward.runtime)]
            let hop = UpgradeHop(service: service, origin: origin, plan: forward.request, path: path, gates: gates)
            return try await upgrade(exchange, exchange.request, to: wanted, hop, rewriting: nil, Fields(), on: loop)
        }
        if forward.request.onClientAbort != .finish { exchange.endWithClient() }
        let source = traced(forwardSource(forward, origin, service), origin, exchange)
        let head = Self.endToEnd(exchange.request)
        let isPlain = exchange.hasNoContent
        var fields = originFields(head, hasBody: !isPlain)
        exchange.identify(&fields)
        var result = ServiceAnswer(answer: Answer(head: ResponseHead(status: 502), cacheStatus: nil))
        let posted = ask(forward, origin, path, head, originFields: fields)
        let ask = Self.get(posted, forward.request)
        switch exchange.request.method {
        case .get where isPlain, .head where isPlain:
            result.answer = await core.answer(ask, from: source, onInterim: interim(exchange, nil), on: loop)
        case .post where Self.mayStorePost(head, exchange.framing, forward.request):
            result.answer = await post(exchange, posted, source, origin, path, on: loop)
        default:
            result.answer = await pass(exchange, ask, source, origin, path, on: loop)
        }
        await send(result, nil, Fields(), exchange, on: loop)
    }

    /// The same source; where the request is traced, one that tells what it is asked.
    private func traced(_ source: ForwardSource, _ origin: OriginAddress, _ exchange: Exchange) -> any FetchSource {
        guard let trace = exchange.trace else { return source }
        trace.say("decided", [("source", "store, then origin"), ("rule", "forward"), ("origin", origin.root)])
        return TracedSource(source, trace, origin.root)
    }

    /// The source of one request in forward mode, which follows no rule of a service.
    func forwardSource(_ forward: ForwardPlan, _ origin: OriginAddress, _ service: ServicePlan) -> ForwardSource {
        ForwardSource(
            OriginSource(
                service: service,
                origin: origin,
                plan: forward.request,
                runtime: forward.runtime,
                client: client,
                onFetch: { [counters = context.counters] in counters.add(.upstreamRequests) }
            ),
            handler: self,
            origin,
            service.target
        )
    }

    private func post(
        _ exchange: Exchange,
        _ ask: CacheAsk,
        _ source: any FetchSource,
        _ origin: OriginAddress,
        _ path: String,
        on loop: isolated EventLoop
    ) async -> Answer {
        let body = exchange.framing == .none ? nil : exchange.requestBody
        let content: ReadContent
        do throws(FetchError) {
            content = try await read(body, bind: { body?.onAvailable = $0 }, on: loop)
        } catch {
            return core.failure(error, Way(.method))
        }
        guard content.isWhole else {
            return await pass(exchange, ask, source, origin, path, begun: content.bytes, on: loop)
        }
        let question = Self.question(ask, content.bytes)
        return await core.answer(question, from: source, onInterim: interim(exchange, nil), on: loop)
    }

    /// - Parameters:
    ///   - path: of the request; that of its question may lack items of the query.
    ///   - begun: what has been read of the body.
    private func pass(
        _ exchange: Exchange,
        _ ask: CacheAsk,
        _ source: any FetchSource,
        _ origin: OriginAddress,
        _ path: String,
        begun: [UInt8] = [],
        on loop: isolated EventLoop
    ) async -> Answer {
        let body = exchange.requestBody
        let content: any RequestBodySource = begun.isEmpty ? body : ContentSource(begun, then: body)
        var fields = originFields(Self.endToEnd(exchange.request), hasBody: !exchange.hasNoContent)
        exchange.identify(&fields)
        var fetch = FetchRequest(
            method: exchange.request.method,
            path: path,
            fields: fields,
            framing: exchange.framing,
            body: exchange.framing == .none ? nil : content
        )
        fetch.bindBody = { body.onAvailable = $0 }
        let url = origin.root + path
        var pass = PassAsk(fetch, ask, url: url) { _ in [] }
        pass.elsewhere = elsewhere([url], url, but: nil)
        return await core.pass(pass, from: source, onInterim: interim(exchange, nil), on: loop)
    }

    // MARK: - Bodies and interim answers

    private func bind(_ request: inout RoutedRequest, _ exchange: Exchange) {
        request.onInterim = interim(exchange, request.route.rewriting)
        request.endWithClient = { [weak exchange] in exchange?.endWithClient() }
        guard exchange.framing != .none else { return }
        request.body = exchange.requestBody
        request.bindBody = { [body = exchange.requestBody] in body.onAvailable = $0 }
    }

    private func interim(_ exchange: Exchange, _ rewriting: Rewriting?) -> (ResponseHead) -> Void {
        { [weak exchange, via = plan.via] head in
            if let exchange { Self.passOn(interim: head, rewriting, via: via, exchange) }
        }
    }

    /// What it says of the origin's URLs is turned as in a final answer.
    static func passOn(interim head: ResponseHead, _ rewriting: Rewriting?, via: String, _ exchange: Exchange) {
        var head = head
        // The client's 100 is this proxy's own to give (RFC 9110 section 10.1.1).
        if head.status == 100 { return }
        head.fields = HopByHop.forwardable(head.fields, isRequest: false)
        rewriting?.apply(to: &head.fields)
        head.fields.appendMember(.via, via)
        exchange.sendInterim(head)
    }
}

extension Exchange {
    fileprivate var hasNoContent: Bool { framing == .none || framing == .length(0) }
}
