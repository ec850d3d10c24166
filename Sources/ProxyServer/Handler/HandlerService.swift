// One request of a service, from its demo answer, from the download core, or passed on to the origin.

import CacheStore
import DemoMode
import DownloadCore
import EventLoop
import HTTPCaching
import HTTPWire
import ServiceCore
import Upstream

/// A request with the service it is for. Loop-bound, because its body is.
struct RoutedRequest {
    let route: ServiceRoute
    /// The client's request, its target included.
    var head: RequestHead
    /// What follows the service's prefix: empty, or beginning with `/` or `?`.
    let rest: String
    /// Fields for the origin: end-to-end, Via added.
    var originFields: Fields
    var framing: BodyFraming
    var body: (any RequestBodySource)?
    /// Registers whom to call when the body has bytes again.
    var bindBody: ((_ available: @escaping () -> Void) -> Void)?
    var onInterim: ((ResponseHead) -> Void)?
    /// The request ends with its client; see `Exchange.endsWithClient`.
    var endWithClient: (() -> Void)?
    /// Services asked for this request so far, the outermost first.
    var depth = 0
    /// What those services add to the query where the request goes out.
    var hidden: [HiddenItem] = []
    /// Tells what becomes of the request; nil unless that is wanted.
    var trace: RequestTrace?
}

extension RoutedRequest {
    /// What its route says of clients that leave.
    func heed(_ ask: CacheAsk) {
        if ask.onClientAbort != .finish { endWithClient?() }
    }
}

/// What a service answered.
struct ServiceAnswer {
    var answer: Answer
    /// The value of Drydock-Demo; nil for what is no demo answer.
    var demo: String?
}

extension ProxyHandler {
    /// The configuration refuses cycles; this bounds a chain of services all the same.
    static let maximumDepth = 16

    func answer(_ request: RoutedRequest, on loop: isolated EventLoop) async throws(Problem) -> ServiceAnswer {
        let step = try step(request)
        request.tell(step)
        switch step {
        case .demo(let rule): return try await demo(rule, request, on: loop)
        case .store(let ask, let source):
            request.heed(ask)
            return ServiceAnswer(
                answer: await core.answer(ask, from: request.traced(source), onInterim: request.onInterim, on: loop)
            )
        case .post(let ask, let source):
            request.heed(ask)
            return ServiceAnswer(answer: await post(request, ask, request.traced(source), on: loop))
        case .pass(let path, let source):
            return ServiceAnswer(answer: await pass(request, path, request.traced(source), on: loop))
        }
    }

    /// A POST that is a question like a GET, unless it turns out to be long.
    private func post(
        _ request: RoutedRequest,
        _ ask: CacheAsk,
        _ source: any FetchSource,
        on loop: isolated EventLoop
    ) async -> Answer {
        let content: ReadContent
        do throws(FetchError) {
            content = try await read(request.body, bind: request.bindBody, on: loop)
        } catch {
            return core.failure(error, Way(.method))
        }
        guard content.isWhole else {
            var request = request
            request.body = ContentSource(content.bytes, then: request.body)
            // Nothing is stored of it: the origin gets what the key leaves out, too.
            var rest = request.rest
            let endpoint = rest.withUTF8 { bytes in
                request.route.plan.paths.first(for: request.head.method, path: UnsafeRawBufferPointer(bytes))
            }
            let path = request.route.path(rest, request.route.request(endpoint).plan, behind: request.hidden)
            return await pass(request, path, source, on: loop)
        }
        let question = Self.question(ask, content.bytes)
        return await core.answer(question, from: source, onInterim: request.onInterim, on: loop)
    }

    static func notListed(_ route: ServiceRoute) -> Problem {
        Problem(
            status: 404,
            title: "No such endpoint",
            detail: "service \(route.plan.name) answers only what its endpoints name"
                + "; its configuration says unlisted: 404"
        )
    }

    /// A method that is not answered from the store, and what its success does to what is stored (RFC 9111 section 4.4).
    private func pass(
        _ request: RoutedRequest,
        _ path: String,
        _ source: any FetchSource,
        on loop: isolated EventLoop
    ) async -> Answer {
        var fetch = FetchRequest(
            method: request.head.method,
            path: path,
            fields: request.originFields,
            clientHost: request.head.fields.first(.host),
            framing: request.framing,
            body: request.body
        )
        fetch.bindBody = request.bindBody
        // What is stored for the target is what a GET of it gets, as the endpoint of that GET has it.
        let route = request.route
        var rest = request.rest
        let endpoint = rest.withUTF8 { route.plan.paths.first(for: .get, path: UnsafeRawBufferPointer($0)) }
        let (plan, shape) = route.request(endpoint)
        let url = Self.target(route, rest)
        let ask = Self.get(ask(request, route.path(rest, plan, behind: request.hidden), plan, shape), plan)
        request.heed(ask)
        var pass = PassAsk(fetch, ask, url: url) { answer in
            Self.named(by: answer, url, route, host: request.head.fields.first(.host))
        }
        // Whoever asks an origin for another service knows which URL that is.
        if let origin = route.plan.origin {
            pass.elsewhere = elsewhere(
                [origin.root + path, origin.root + ask.path, url, ask.key.description],
                url,
                but: route
            )
        }
        return await core.pass(pass, from: source, onInterim: request.onInterim, on: loop)
    }

    /// Where other services, and forward mode, may have what an unsafe request changes.
    /// - Parameters:
    ///   - urls: of the target on the origin.
    ///   - url: the one that its answer refers to.
    func elsewhere(_ urls: [String], _ url: String, but route: ServiceRoute?) -> (ResponseHead) -> PassAsk.Elsewhere {
        { [plan] answer in
            let urls = urls + Caching.invalidatedURLs(url: url, response: answer)
            let places = plan.places(storing: urls, but: route)
            return PassAsk.Elsewhere(keys: Array(places.keys), anyHost: Array(places.anyHost))
        }
    }

    /// Where services stand in for the origin, references are those of the origin behind them.
    private static func origin(_ route: ServiceRoute) -> OriginAddress {
        route.rewriting.origin
            ?? OriginAddress(scheme: "http", host: route.address.host.lowercased(), port: nil, basePath: "")
    }

    /// The absolute URL of a target on its origin.
    private static func target(_ route: ServiceRoute, _ rest: String) -> String {
        let origin = origin(route)
        return origin.root + origin.path(appending: rest)
    }

    /// The keys under which a GET of what Location and Content-Location name on the same origin may be stored.
    private static func named(
        by answer: ResponseHead,
        _ url: String,
        _ route: ServiceRoute,
        host: String?
    ) -> [CacheKey] {
        let base = origin(route).base
        return Caching.invalidatedURLs(url: url, response: answer).compactMap { url in
            // No key holds what the service adds in secret.
            let url = route.rewriting.secrets.removed(from: url)
            guard url.hasPrefix(base) else { return nil }
            let rest = url.dropFirst(base.count)
            guard rest.isEmpty || rest.hasPrefix("/") || rest.hasPrefix("?") else { return nil }
            return route.key(rest: String(rest), host: host)
        }
    }

    /// - Parameters:
    ///   - endpoint: from `plan.paths.first(for:path:)`.
    ///   - hidden: what the services before this one add to the query.
    ///   - trace: goes on to a service that is asked in the place of an origin.
    func source(
        _ route: ServiceRoute,
        _ endpoint: Int?,
        depth: Int,
        hidden: [HiddenItem] = [],
        trace: RequestTrace? = nil
    ) throws(Problem) -> any FetchSource {
        if let source = sources.last(route, endpoint) { return HiddenQuerySource.make(source, hidden) }
        if let origin = route.plan.origin {
            let source = sources.find(route, endpoint) {
                OriginSource(
                    service: route.plan,
                    origin: origin,
                    plan: route.request(endpoint).plan,
                    runtime: route.runtime,
                    client: client,
                    onFetch: { [counters = context.counters] in counters.add(.upstreamRequests) }
                )
            }
            return HiddenQuerySource.make(source, hidden)
        }
        guard let name = route.inner, let inner = self.plan.service(named: name), depth < Self.maximumDepth else {
            throw Problem(
                status: 404,
                title: "No demo answer",
                detail: "service \(route.plan.name) has no base_url, and no demo answer for this request; "
                    + "switch its demo mode on, or give it a base_url"
            )
        }
        let plan = route.request(endpoint).plan
        return InnerSource(handler: self, route: inner, asking: route, plan, depth: depth + 1, hidden: hidden, trace)
    }

    // MARK: - Demo mode

    private func demo(
        _ rule: DemoRule,
        _ request: RoutedRequest,
        on loop: isolated EventLoop
    ) async throws(Problem) -> ServiceAnswer {
        let key = DrawKey(rule: rule.name, request: Array("\(request.head.method.name) \(request.rest)".utf8))
        let draw = DemoDraw.draw(rule, key: key, ordinal: request.route.ordinals.next(key))
        if draw.latency > 0 {
            do { try await loop.sleep(nanoseconds: draw.latency) } catch { throw Self.clientLeft }
        }
        let hasBody = draw.status != 204 && draw.status != 304 && draw.status >= 200
        let body = hasBody ? Body.complete(draw.body) : nil
        if let body, draw.status == 200, request.head.method == .get || request.head.method == .head {
            let head = ResponseHead(
                status: 200,
                reason: StatusText.reason(200),
                fields: draw.representationFields
            )
            return ServiceAnswer(answer: core.own(request.head, head, body, on: loop), demo: draw.fieldValue)
        }
        var answer = Answer(
            head: ResponseHead(status: draw.status, fields: draw.fields),
            reader: request.head.method == .head ? nil : body?.makeReader(on: loop),
            length: body?.knownLength,
            cacheStatus: nil
        )
        answer.head.reason = StatusText.reason(draw.status)
        return ServiceAnswer(answer: answer, demo: draw.fieldValue)
    }

    static let clientLeft = Problem(status: 503, title: "Cancelled", detail: "the client left")

    // MARK: - Ready heads

    /// The lines of a stored head for the hot path, as this route shows them to a request without Origin.
    static func prepare(_ head: StoredHead, _ route: ServiceRoute, via: String) -> [UInt8] {
        var shown = head
        route.rewriting.apply(to: &shown.fields)
        if !route.corsOrigins.isEmpty { CrossOrigin.apply(Fields([("Vary", "Origin")]), to: &shown.fields) }
        return StoredResponse.prepare(shown, length: head.bodyLength, via: via)
    }
}
