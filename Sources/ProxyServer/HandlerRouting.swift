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
        if LoopDetection.hasPassed(exchange.request.fields, pseudonym: plan.name) {
            throw LoopDetection.problem(pseudonym: plan.name)
        }
        if await answersItself(exchange, on: loop) { return }
        switch exchange.target.form {
        case .authority(let authority):
            try await connect(exchange, authority, on: loop)
        case .absolute(let scheme, let authority, let path):
            try await forward(exchange, scheme, authority, path, on: loop)
        case .asterisk:
            answerOptions(exchange)
        case .origin(let target):
            try await reverse(exchange, target, on: loop)
        }
    }

    // MARK: - Max-Forwards

    /// OPTIONS and TRACE that may not go any further are answered here (RFC 9110 section 7.6.2).
    private func answersItself(_ exchange: Exchange, on loop: isolated EventLoop) async -> Bool {
        let method = exchange.request.method
        guard method == .options || method == .trace else { return false }
        guard let text = exchange.request.fields.first(.maxForwards), let hops = UInt(text), hops == 0 else {
            return false
        }
        if method == .options {
            answerOptions(exchange)
        } else {
            await answerTrace(exchange, on: loop)
        }
        return true
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
        let host = exchange.request.fields.first(.host)
        let authority = host.flatMap { Authority.parse($0) }
        if let authority, !hostRules.allows(authority) { throw HostRules.problem(authority) }
        let named = authority.flatMap { plan.service(host: $0.host) }
        if let host { hot.note(host: host, route: named) }
        var target = target
        let found = named ?? target.withUTF8 { plan.service(target: UnsafeRawBufferPointer($0)) }
        guard let route = found else { throw notRouted(target) }
        exchange.outcome.route = route.plan.name
        let cors = try CrossOrigin.decide(exchange.request, route)
        if case .preflight(let fields) = cors {
            exchange.sendHead(ResponseHead(status: 204, reason: "No Content", fields: fields), body: .none)
            return exchange.finish()
        }
        let rest = String(decoding: target.utf8.dropFirst(route.prefix.count), as: UTF8.self)
        let wantsUpgrade = exchange.request.fields.contains(.upgrade)
        if wantsUpgrade, let origin = route.plan.origin, route.demo == nil {
            return try await upgrade(
                exchange,
                route.plan,
                origin,
                route.plan.request,
                path: route.plan.request.query.apply(to: origin.path(appending: rest)),
                rewriting: route.rewriting,
                on: loop
            )
        }
        var request = RoutedRequest(
            route: route,
            head: exchange.request,
            rest: rest,
            originFields: originFields(exchange.request),
            framing: exchange.framing
        )
        bind(&request, exchange)
        let result = try await answer(request, on: loop)
        await send(result, route.rewriting, cors.fields, exchange, on: loop)
    }

    private func notRouted(_ target: String) -> Problem {
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
        if isOwn(authority, port: 80) { throw LoopDetection.problem(pseudonym: plan.name) }
        guard let forward = plan.forward else { throw ForwardRules.disabled }
        guard scheme == "http" else { throw ForwardRules.scheme(scheme) }
        let verdict = forward.verdict(host: authority.host)
        if verdict == .refused { throw ForwardRules.refused(authority.description) }
        exchange.outcome.route = "forward"
        let origin = OriginAddress(scheme: scheme, host: authority.host, port: authority.port, basePath: "")
        let service = ServicePlan(
            name: "",
            origin: origin,
            request: forward.request,
            tls: forward.tls,
            target: verdict == .named ? .any : .noPrivate
        )
        if exchange.request.fields.contains(.upgrade) {
            return try await upgrade(
                exchange,
                service,
                origin,
                forward.request,
                path: path,
                rewriting: nil,
                on: loop
            )
        }
        if case .anyPublic = verdict {} else { hot.note(authority: authority.description) }
        let source = OriginSource(
            service: service,
            origin: origin,
            plan: forward.request,
            runtime: forward.runtime,
            client: client,
            onFetch: { [counters = context.counters] in counters.add(.upstreamRequests) }
        )
        let fields = originFields(exchange.request)
        var fetch = FetchRequest(
            method: exchange.request.method,
            path: path,
            fields: fields,
            framing: exchange.framing,
            body: exchange.framing == .none ? nil : BodySource(exchange.requestBody)
        )
        fetch.bindBody = { [body = exchange.requestBody] in body.onAvailable = $0 }
        var result = ServiceAnswer(answer: Answer(head: ResponseHead(status: 502), cacheStatus: nil))
        switch exchange.request.method {
        case .get where exchange.framing == .none, .head where exchange.framing == .none:
            let ask = CacheAsk(
                key: CacheKey(service: "", url: origin.root + path),
                request: exchange.request,
                originFields: fields,
                path: path,
                policy: forward.request.policy,
                shape: forward.shape,
                collapse: forward.request.collapse,
                prepare: { [via = plan.via] in StoredResponse.prepare($0, length: $0.bodyLength, via: via) }
            )
            result.answer = await core.answer(ask, from: source, onInterim: interim(exchange), on: loop)
        default:
            result.answer = await core.relay(
                fetch,
                from: source,
                forward: .method,
                onInterim: interim(exchange),
                on: loop
            )
            if Caching.invalidates(method: exchange.request.method, status: result.answer.head.status) {
                core.invalidate(CacheKey(service: "", url: origin.root + path))
            }
        }
        await send(result, nil, Fields(), exchange, on: loop)
    }

    // MARK: - Requests to the origin

    /// End-to-end fields with Via added and Max-Forwards counted down.
    func originFields(_ request: RequestHead) -> Fields {
        var fields = HopByHop.forwardable(request.fields, isRequest: true)
        fields.remove(.contentLength)
        fields.appendMember(.via, "\(request.version == .http10 ? "1.0" : "1.1") \(plan.name)")
        if request.method == .options || request.method == .trace, let text = fields.first(.maxForwards),
            let hops = UInt(text), hops > 0
        {
            fields.set(.maxForwards, String(hops - 1))
        }
        return fields
    }

    private func bind(_ request: inout RoutedRequest, _ exchange: Exchange) {
        request.onInterim = interim(exchange)
        guard exchange.framing != .none else { return }
        request.body = BodySource(exchange.requestBody)
        request.bindBody = { [body = exchange.requestBody] in body.onAvailable = $0 }
    }

    private func interim(_ exchange: Exchange) -> (ResponseHead) -> Void {
        { [weak exchange, via = plan.via] head in
            var head = head
            // The client's 100 is this proxy's own to give (RFC 9110 section 10.1.1).
            if head.status == 100 { return }
            head.fields = HopByHop.forwardable(head.fields, isRequest: false)
            head.fields.appendMember(.via, via)
            exchange?.sendInterim(head)
        }
    }
}

/// A request body as a source for libcurl.
final class BodySource: RequestBodySource {
    private let body: RequestBody

    init(_ body: RequestBody) { self.body = body }

    func read(into buffer: UnsafeMutableRawBufferPointer) -> BodyRead {
        switch body.pull(into: buffer) {
        case .bytes(let count): .bytes(count)
        case .wait: .wait
        case .end: .end
        case .failed: .failed
        }
    }
}
