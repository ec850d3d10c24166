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
    /// Services asked for this request so far, the outermost first.
    var depth = 0
}

/// What a service answered.
struct ServiceAnswer {
    var answer: Answer
    /// The value of Drydock-Demo; nil for what is no demo answer.
    var demo: String?
}

extension ProxyHandler {
    /// The configuration refuses cycles; this bounds a chain of services all the same.
    private static let maximumDepth = 16

    func answer(_ request: RoutedRequest, on loop: isolated EventLoop) async throws(Problem) -> ServiceAnswer {
        let route = request.route
        var rest = request.rest
        let endpoint = rest.withUTF8 { bytes in
            route.plan.endpoint(for: request.head.method, path: UnsafeRawBufferPointer(bytes))
        }
        if let rule = route.demo(endpoint) { return try await demo(rule, request, on: loop) }
        if endpoint == nil, route.listedOnly {
            throw Problem(
                status: 404,
                title: "No such endpoint",
                detail: "service \(route.plan.name) answers only what its endpoints name"
                    + "; its configuration says unlisted: 404"
            )
        }
        let (plan, shape) = route.request(endpoint)
        let source = try source(route, plan, depth: request.depth)
        let address =
            route.plan.origin ?? OriginAddress(scheme: "service", host: route.inner ?? "", port: nil, basePath: "")
        let path = plan.query.apply(to: address.path(appending: rest))
        switch request.head.method {
        case .get where request.framing == .none, .head where request.framing == .none:
            let ask = CacheAsk(
                key: CacheKey(service: route.plan.name, url: address.root + path),
                request: request.head,
                originFields: request.originFields,
                path: path,
                policy: plan.policy,
                shape: shape,
                collapse: plan.collapse,
                prepare: { [rewriting = route.rewriting, via = self.plan.via] head in
                    Self.prepare(head, rewriting, via: via)
                }
            )
            return ServiceAnswer(
                answer: await core.answer(ask, from: source, onInterim: request.onInterim, on: loop)
            )
        default:
            return ServiceAnswer(answer: await pass(request, path, source, address, on: loop))
        }
    }

    /// A method that is not answered from the store; its success invalidates what is stored (RFC 9111 section 4.4).
    private func pass(
        _ request: RoutedRequest,
        _ path: String,
        _ source: any FetchSource,
        _ address: OriginAddress,
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
        let answer = await core.relay(
            fetch,
            from: source,
            forward: .method,
            onInterim: request.onInterim,
            on: loop
        )
        if answer.failure == nil, Caching.invalidates(method: request.head.method, status: answer.head.status) {
            let name = request.route.plan.name
            core.invalidate(CacheKey(service: name, url: address.root + path))
            for field in [KnownField.location, .contentLocation] {
                guard let value = answer.head.fields.first(field),
                    let other = Self.sameOrigin(value, address)
                else { continue }
                core.invalidate(CacheKey(service: name, url: other))
            }
        }
        return answer
    }

    /// The absolute form of a reference, if it stays on the origin (RFC 9111 section 4.4).
    private static func sameOrigin(_ reference: String, _ address: OriginAddress) -> String? {
        if reference.hasPrefix("/"), !reference.hasPrefix("//") { return address.root + reference }
        guard reference.lowercased().hasPrefix(address.root) else { return nil }
        let rest = reference.dropFirst(address.root.count)
        return rest.isEmpty || rest.hasPrefix("/") || rest.hasPrefix("?") ? reference : nil
    }

    private func source(_ route: ServiceRoute, _ plan: RequestPlan, depth: Int) throws(Problem) -> any FetchSource {
        if let origin = route.plan.origin {
            return OriginSource(
                service: route.plan,
                origin: origin,
                plan: plan,
                runtime: route.runtime,
                client: client,
                onFetch: { [counters = context.counters] in counters.add(.upstreamRequests) }
            )
        }
        guard let name = route.inner, let inner = self.plan.service(named: name), depth < Self.maximumDepth else {
            throw Problem(
                status: 404,
                title: "No demo answer",
                detail: "service \(route.plan.name) has no base_url, and no demo answer for this request; "
                    + "switch its demo mode on, or give it a base_url"
            )
        }
        return InnerSource(handler: self, route: inner, depth: depth + 1)
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

    /// The lines of a stored head for the hot path, as this route shows them.
    static func prepare(_ head: StoredHead, _ rewriting: Rewriting, via: String) -> [UInt8] {
        var shown = head
        rewriting.apply(to: &shown.fields)
        return StoredResponse.prepare(shown, length: head.bodyLength, via: via)
    }
}
