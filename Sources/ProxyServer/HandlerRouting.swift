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
        if Self.endsHere(exchange.request) { return await answerItself(exchange, on: loop) }
        switch exchange.target.form {
        case .authority(let authority):
            try await connect(exchange, authority, on: loop)
        case .absolute(let scheme, let authority, let path):
            // Without a path OPTIONS asks about the server as a whole (RFC 9112 section 3.2.4).
            let path = exchange.target.isServerWide ? "" : path
            try await forward(exchange, scheme, authority, path, on: loop)
        case .asterisk:
            answerOptions(exchange)
        case .origin(let target):
            try await reverse(exchange, target, on: loop)
        }
    }

    // MARK: - Max-Forwards

    /// Whether a request is an OPTIONS or a TRACE that may not go any further (RFC 9110 section 7.6.2).
    private static func endsHere(_ request: RequestHead) -> Bool {
        guard request.method == .options || request.method == .trace else { return false }
        return maxForwards(request.fields) == 0
    }

    private func answerItself(_ exchange: Exchange, on loop: isolated EventLoop) async {
        if exchange.request.method == .options {
            answerOptions(exchange)
        } else {
            await answerTrace(exchange, on: loop)
        }
    }

    private func answerOptions(_ exchange: Exchange) {
        let fields = Fields([("Allow", "GET, HEAD, POST, PUT, DELETE, PATCH, OPTIONS, TRACE, CONNECT")])
        exchange.sendHead(ResponseHead(status: 200, reason: "OK", fields: fields), body: .known(0))
        exchange.finish()
    }

    /// Reflects the head without what may be secret (RFC 9110 section 9.3.8).
    private func answerTrace(_ exchange: Exchange, on loop: isolated EventLoop) async {
        var head = exchange.request
        for field in [KnownField.authorization, .cookie, .proxyAuthorization] { head.fields.remove(field) }
        var message: [UInt8] = []
        Serializer.write(head, into: &message)
        let fields = Fields([("Content-Type", "message/http")])
        exchange.sendHead(
            ResponseHead(status: 200, reason: "OK", fields: fields),
            body: .known(Int64(message.count))
        )
        try? await exchange.send(message)
        exchange.finish()
    }

    // MARK: - Reverse mode

    private func reverse(_ exchange: Exchange, _ target: String, on loop: isolated EventLoop) async throws(Problem) {
        let place = try service(for: exchange.request, target)
        if let (host, authority) = place.host { hot.note(host: host, authority, route: place.named) }
        guard let route = place.route else { throw notRouted(target) }
        exchange.outcome.route = route.plan.name
        let cors = try CrossOrigin.decide(exchange.request, route)
        if case .preflight(let fields) = cors {
            exchange.sendHead(ResponseHead(status: 204, reason: "No Content", fields: fields), body: .none)
            return exchange.finish()
        }
        let rest = route.rest(target)
        if let wanted = Self.wantedProtocols(exchange.request, exchange.framing),
            let hop = try upgradeHop(route, rest, exchange.request.method)
        {
            return try await upgrade(exchange, to: wanted, hop, rewriting: route.rewriting, cors.fields, on: loop)
        }
        let head = Self.endToEnd(exchange.request)
        var request = RoutedRequest(
            route: route,
            head: head,
            rest: rest,
            originFields: originFields(head, hasBody: exchange.framing != .none),
            framing: exchange.framing
        )
        bind(&request, exchange)
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
        let mounted = plan.services.map { route in
            let place = route.host ?? (route.prefix.isEmpty ? "/" : String(decoding: route.prefix, as: UTF8.self))
            return "\(place) (\(route.plan.name))"
        }
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
        let (forward, origin, service) = try forwardTarget(scheme, authority)
        exchange.outcome.route = "forward"
        hot.note(origin: origin)
        if let wanted = Self.wantedProtocols(exchange.request, exchange.framing) {
            let hop = UpgradeHop(service: service, origin: origin, plan: forward.request, path: path)
            return try await upgrade(exchange, to: wanted, hop, rewriting: nil, Fields(), on: loop)
        }
        let source = forwardSource(forward, origin, service)
        let head = Self.endToEnd(exchange.request)
        let isPlain = exchange.hasNoContent
        let fields = originFields(head, hasBody: !isPlain)
        var result = ServiceAnswer(answer: Answer(head: ResponseHead(status: 502), cacheStatus: nil))
        let posted = ask(forward, origin, path, head, originFields: fields)
        let ask = Self.get(posted, forward.request)
        switch exchange.request.method {
        case .get where isPlain, .head where isPlain:
            result.answer = await core.answer(ask, from: source, onInterim: interim(exchange), on: loop)
        case .post where Self.mayStorePost(head, exchange.framing, forward.request):
            result.answer = await post(exchange, posted, source, origin, on: loop)
        default:
            result.answer = await pass(exchange, ask, source, origin, on: loop)
        }
        await send(result, nil, Fields(), exchange, on: loop)
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
            return await pass(exchange, ask, source, origin, begun: content.bytes, on: loop)
        }
        let question = Self.question(ask, content.bytes)
        return await core.answer(question, from: source, onInterim: interim(exchange), on: loop)
    }

    /// - Parameter begun: what has been read of the body.
    private func pass(
        _ exchange: Exchange,
        _ ask: CacheAsk,
        _ source: any FetchSource,
        _ origin: OriginAddress,
        begun: [UInt8] = [],
        on loop: isolated EventLoop
    ) async -> Answer {
        let body = exchange.requestBody
        let content: any RequestBodySource = begun.isEmpty ? body : ContentSource(begun, then: body)
        var fetch = FetchRequest(
            method: exchange.request.method,
            path: ask.path,
            fields: originFields(Self.endToEnd(exchange.request), hasBody: !exchange.hasNoContent),
            framing: exchange.framing,
            body: exchange.framing == .none ? nil : content
        )
        fetch.bindBody = { body.onAvailable = $0 }
        let url = origin.root + ask.path
        let pass = PassAsk(fetch, ask, url: url) { answer in
            Caching.invalidatedURLs(url: url, response: answer).map { CacheKey(service: "", url: $0) }
        }
        return await core.pass(pass, from: source, onInterim: interim(exchange), on: loop)
    }

    // MARK: - Bodies and interim answers

    private func bind(_ request: inout RoutedRequest, _ exchange: Exchange) {
        request.onInterim = interim(exchange)
        guard exchange.framing != .none else { return }
        request.body = exchange.requestBody
        request.bindBody = { [body = exchange.requestBody] in body.onAvailable = $0 }
    }

    private func interim(_ exchange: Exchange) -> (ResponseHead) -> Void {
        { [weak exchange, via = plan.via] head in
            if let exchange { Self.passOn(interim: head, via: via, exchange) }
        }
    }

    static func passOn(interim head: ResponseHead, via: String, _ exchange: Exchange) {
        var head = head
        // The client's 100 is this proxy's own to give (RFC 9110 section 10.1.1).
        if head.status == 100 { return }
        head.fields = HopByHop.forwardable(head.fields, isRequest: false)
        head.fields.appendMember(.via, via)
        exchange.sendInterim(head)
    }
}

extension Exchange {
    fileprivate var hasNoContent: Bool { framing == .none || framing == .length(0) }
}
