// Answers calls of services: with a demo answer, from the download core, or from the origin. Forward mode is one of the
// services.

import CacheStore
import Content
import DemoMode
package import DownloadCore
package import EventLoop
import HTTPCaching
package import HTTPWire
import Policies
package import Upstream

/// The document of a refusal.
package struct RefusalDocument {
    package let head: ResponseHead
    package let body: [UInt8]

    package init(head: ResponseHead, body: [UInt8]) {
        self.head = head
        self.body = body
    }
}

/// Answers the calls of all services of one plan. Loop-bound; made anew with each plan.
package final class ServiceClient {
    package let plan: RoutePlan
    package let core: DownloadCore
    let client: UpstreamClient
    let listeners: OwnListeners
    /// The calls of the loop, under this plan and others.
    let calls: CallsUnderWay
    /// Makes the answer for a service whose request another service refuses.
    let document: (RouteRefusal) -> RefusalDocument
    let onFetch: () -> Void
    /// The origins of services, by endpoint, each made at first use.
    // Each value retains its endpoint, because after its release another endpoint could get the same identifier.
    private var sources: [ObjectIdentifier: (endpoint: EndpointRoute, source: OriginSource)] = [:]
    /// The source of the last request, which is usually that of the next one, too.
    // The member is unchecked: no code runs while it is changed, and a check would cost instructions with every
    // request.
    @exclusivity(unchecked) private var last: (endpoint: EndpointRoute, source: OriginSource)?
    /// The source that reports the calls of the most recently asked source.
    private var lastTold: (source: OriginSource, told: CallSource)?

    /// Makes a client.
    /// - Parameters:
    ///   - calls: the calls of the loop.
    ///   - onFetch: called for each request that is sent, except for upgrades.
    ///   - document: makes the answer for a service whose request another service refuses.
    package init(
        plan: RoutePlan,
        core: DownloadCore,
        client: UpstreamClient,
        listeners: OwnListeners,
        calls: CallsUnderWay,
        onFetch: @escaping () -> Void = {},
        document: @escaping (RouteRefusal) -> RefusalDocument
    ) {
        self.plan = plan
        self.core = core
        self.client = client
        self.listeners = listeners
        self.calls = calls
        self.onFetch = onFetch
        self.document = document
    }

    /// Answers a call, which is admitted here and nowhere behind: by the request of its client, and not by what its
    /// endpoint or a stage of its sources makes of that.
    package func answer(_ call: ServiceCall, on loop: isolated EventLoop) async throws(RouteRefusal) -> ServiceAnswer {
        try Self.admit(call)
        let result = try await answer(unmapped: call, on: loop)
        return Self.errorMapping(of: call) == nil ? result : await mapped(result, call, on: loop)
    }

    // The parts of a call that never wait, and the parts that few calls have, are in functions of their own, so that
    // the functions that wait have nothing of them in their frames.

    @inline(never) private static func errorMapping(of call: ServiceCall) -> ErrorMapping? {
        call.match.endpoint.request.errorMapping
    }

    /// Maps an error, after stored responses, retries, parking and fallbacks.
    @inline(never) private func mapped(_ result: ServiceAnswer, _ call: ServiceCall, on loop: isolated EventLoop) async
        -> ServiceAnswer
    {
        let endpoint = call.match.endpoint
        guard let mapping = endpoint.request.errorMapping, !result.answer.isUnasked else { return result }
        let isSuccess = endpoint.request.policy.isSuccess
        var result = result
        let isHead = call.head.method == .head
        (result.answer, result.errorDocument) =
            await mapping.apply(to: result.answer, isSuccess: isSuccess, isHead: isHead, on: loop)
        return result
    }

    /// Answers a call.
    /// - Returns: the stored response, or the origin's.
    func answer(
        live call: ServiceCall,
        on loop: isolated EventLoop
    ) async throws(RouteRefusal) -> ServiceAnswer {
        if call.match.endpoint.isShaped { return try await answer(shaping: call, on: loop) }
        return try await answer(sent: call, on: loop)
    }

    /// A mistake in a request is found and reported before anything of it is sent.
    @inline(never) private func answer(
        shaping call: ServiceCall,
        on loop: isolated EventLoop
    ) async throws(RouteRefusal) -> ServiceAnswer {
        let shaped: ServiceCall
        do throws(ShapingFailure) { shaped = try await call.shaped(on: loop) } catch {
            switch error {
            case .refused(let refusal): throw refusal
            case .failed(let failure):
                return ServiceAnswer(answer: core.answers.failure(failure, ForwardReason(.method)))
            }
        }
        return try await answer(sent: shaped, on: loop)
    }

    /// Answers a call.
    /// - Parameter call: the call with the changes of its endpoint.
    private func answer(
        sent call: ServiceCall,
        on loop: isolated EventLoop
    ) async throws(RouteRefusal) -> ServiceAnswer {
        guard let park = parking(of: call) else { return try await answerOnce(call, on: loop) }
        return try await answerOrPark(call, park, on: loop)
    }

    /// The policy for parking a call; nil if it is not parked, because only clients wait for an origin that is away.
    @inline(never) private func parking(of call: ServiceCall) -> ParkPolicy? {
        call.urgency == nil ? call.match.route.plan.park : nil
    }

    /// The answer of one attempt, without parking.
    func answerOnce(_ call: ServiceCall, on loop: isolated EventLoop) async throws(RouteRefusal) -> ServiceAnswer {
        switch try begin(call) {
        case .demo, .order: return try await answer(unmapped: call, on: loop)
        case .store(let ask, let source):
            let answer = await core.answer(
                ask,
                from: source,
                onInterim: call.onInterim,
                instead: call.instead,
                on: loop
            )
            if call.trace != nil { (source as? TracedSource)?.endLookup("answer") }
            return shown(answer, call)
        case .post(let ask, let source): return shown(await post(call, ask, source, on: loop), call)
        case .pass(let path, let source): return shown(await pass(call, path, source, on: loop), call)
        }
    }

    /// Decides about the next step for a call, and logs it.
    @inline(never) private func begin(_ call: ServiceCall) throws(RouteRefusal) -> ServiceStep {
        let step = try liveStep(admitted: call)
        call.tell(step)
        switch step {
        case .store(let ask, _), .post(let ask, _): call.heed(ask)
        case .demo, .order, .pass: break
        }
        return step
    }

    /// The answer for the client: the origin's headers about a mapped document are for the store only.
    @inline(never) private func shown(_ answer: Answer, _ call: ServiceCall) -> ServiceAnswer {
        var answer = answer
        if call.match.endpoint.request.mapping != nil { MappedOrigin.remove(from: &answer.head.fields) }
        if call.match.endpoint.request.recording != nil { answer.tellRecording() }
        return ServiceAnswer(answer: answer)
    }

    // MARK: - What becomes of a call

    /// Decides about the next step for a call; no request is sent, and nothing changes.
    /// - Throws: a refusal if the path may leave the service, if the service's rules deny the request, if the service
    ///   answers only its endpoints and none names the path, if a parameter of the endpoint is missing, or if the
    ///   service asks no origin and plays no demo answers.
    package func step(_ call: ServiceCall) throws(RouteRefusal) -> ServiceStep {
        let (demo, order) = (call.match.endpoint.demo, call.match.endpoint.order)
        try Self.admit(call)
        let step = order.map { ServiceStep.order($0) } ?? demo.map { .demo($0) }
        if let step { return step }
        return try liveStep(admitted: call)
    }

    /// Decides about the next step for a call without demo mode.
    package func liveStep(_ call: ServiceCall) throws(RouteRefusal) -> ServiceStep {
        try Self.admit(call)
        return try liveStep(admitted: call)
    }

    private func liveStep(admitted call: ServiceCall) throws(RouteRefusal) -> ServiceStep {
        let (route, endpoint) = (call.match.route, call.match.endpoint)
        if call.match.isUnlisted { throw .noEndpoint(call.head.method, call.match.rest, route) }
        let source = try source(of: call)
        let path = route.path(try call.target(), endpoint, behind: call.hidden)
        if PostedContent.mayBeStored(call.head, call.framing, endpoint.request) {
            return .post(ask(call, path, endpoint), source)
        }
        guard call.isPlain, call.head.method == .get || call.head.method == .head else {
            return .pass(path: path, source)
        }
        return .store(Self.get(ask(call, path, endpoint), endpoint.request), source)
    }

    @inline(never) private static func admit(_ call: ServiceCall) throws(RouteRefusal) {
        try admit(call.head, call.match.rest, call.match.route)
    }

    /// Checks a request before anything is matched. If a service has endpoints, a base path or credentials, no path may
    /// leave the one that its first bytes name, because a server may interpret it in another way than it is matched,
    /// stored and logged here.
    /// - Throws: the refusal of a path with dot segments, or of a request that the service's rules deny.
    static func admit(_ request: RequestHead, _ rest: String, _ route: ServiceRoute) throws(RouteRefusal) {
        if route.guardsPaths, DotSegments.mayOccur(in: rest) { throw .dotSegments(service: route.plan.name) }
        guard let rule = route.access.refusal(of: request, rest) else { return }
        throw .denied(service: route.plan.name, rule: rule)
    }

    /// The question for a call.
    /// - Parameters:
    ///   - path: the path and query on the origin.
    ///   - endpoint: the endpoint of the call, or of a GET of its target if the call is forwarded.
    private func ask(_ call: ServiceCall, _ path: String, _ endpoint: EndpointRoute) -> CacheRequest {
        let (route, plan, fields) = (call.match.route, endpoint.request, call.originFields)
        var ask = CacheRequest(
            key: route.key(path: path, call.head.fields, endpoint, on: call.match.origin),
            request: call.head,
            originFields: plan.policy.mode == .none ? fields : UnkeyedFields.removed(from: fields, plan.key),
            path: plan.storesAnything ? plan.key.path(path) : path,
            policy: plan.policy,
            headFormatID: endpoint.headFormatIDs[call.match.reach],
            collapse: plan.collapse,
            prepare: { [via = self.plan.via, rewriting = call.match.rewriting] in
                Self.prepare($0, route, rewriting, via: via)
            }
        )
        plan.apply(to: &ask)
        ask.urgency = call.urgency
        // The client's changes to its demo answer are not for the inner service.
        if route.inner != nil, call.head.fields.contains(DemoOverride.fieldName) { ask.standAlone() }
        ask.sharesURL = plan.sharesURL || route.isAskedInSecret
        let secrets = route.rewriting.secrets
        if !secrets.isEmpty { ask.shown = { secrets.removed(from: $0) } }
        if !call.hidden.isEmpty { ask.key = ask.key.adding(lines: call.hidden.map(\.line)) }
        // A query of the client's own, or of a service in front, makes the target another resource.
        if let file = plan.storeAs, !call.match.rest.contains("?"), call.hidden.isEmpty { ask.storeAs = file }
        return ask
    }

    /// The lines of a stored head for the hot path, as this route shows them to a request without Origin.
    private static func prepare(
        _ head: StoredHead,
        _ route: ServiceRoute,
        _ rewriting: Rewriting,
        via: String
    ) -> [UInt8] {
        var shown = head
        rewriting.apply(to: &shown.fields)
        if !route.cors.origins.isEmpty { CrossOrigin.apply(Fields([("Vary", "Origin")]), to: &shown.fields) }
        return StoredResponse.prepare(shown, length: head.bodyLength, via: via)
    }

    /// The question for a GET if answers to GET are stored; otherwise a question for which nothing is stored or looked
    /// up.
    private static func get(_ ask: CacheRequest, _ plan: RequestPlan) -> CacheRequest {
        guard !plan.storesGet else { return ask }
        var ask = ask
        ask.policy.mode = .none
        return ask
    }

    // MARK: - POST

    /// Answers a POST like a GET, unless its content is long.
    @inline(never) private func post(
        _ call: ServiceCall,
        _ ask: CacheRequest,
        _ source: any FetchSource,
        on loop: isolated EventLoop
    ) async -> Answer {
        let content: PostedContent
        do throws(FetchError) {
            content = try await PostedContent.read(call.body, bind: call.bindBody, on: loop)
        } catch {
            return core.answers.failure(error, ForwardReason(.method))
        }
        guard content.isWhole else {
            var call = call
            call.body = ContentSource(content.bytes, then: call.body)
            // A POST that is not stored is sent with the items that the key leaves out.
            let rest = (try? call.target()) ?? call.match.rest
            let path = call.match.route.path(rest, call.match.endpoint, behind: call.hidden)
            return await pass(call, path, source, on: loop)
        }
        let question = PostedContent.question(ask, content.bytes)
        return await core.answer(
            question,
            from: source,
            onInterim: call.onInterim,
            instead: call.instead,
            on: loop
        )
    }

    /// Forwards a method that is not answered from the store, and applies the effect of its success on stored responses
    /// (RFC 9111 section 4.4).
    @inline(never) private func pass(
        _ call: ServiceCall,
        _ path: String,
        _ source: any FetchSource,
        on loop: isolated EventLoop
    ) async -> Answer {
        // A request that is not sent changes nothing at the origin, and invalidates nothing.
        if !core.isOffline, let status = call.instead?(false) { return core.answers.unasked(status) }
        return await core.pass(passing(call, path), from: source, onInterim: call.onInterim, on: loop)
    }

    @inline(never) private func passing(_ call: ServiceCall, _ path: String) -> UncachedRequest {
        let (match, host) = (call.match, call.head.fields.first(.host))
        let route = match.route
        var fetch = FetchRequest(
            method: call.head.method,
            path: path,
            fields: call.originFields,
            clientHost: host,
            framing: call.framing,
            body: call.body
        )
        fetch.bindBody = call.bindBody
        fetch.urgency = call.urgency
        // The stored response of a target is the one that a GET of it gets, so that the endpoint of that GET determines
        // its key.
        let stored = route.endpoint(for: .get, match.rest)
        let url = match.targetURL((try? call.target()) ?? match.rest)
        let storedPath = route.path(route.filledOrPlain(match.rest, stored), stored, behind: call.hidden)
        let ask = Self.get(ask(call, storedPath, stored), stored.request)
        call.heed(ask)
        let own = route.keys(asking: path, host: host, on: match.origin)
        let trail = FetchTrail()
        fetch.trail = trail
        var pass = UncachedRequest(fetch, ask, url: url) { answer in
            match.keys(of: trail.urls(named: answer, url) + trail.changed, host: host) + own
        }
        // The origin's own URL is invalidated, too, because another service, or forward mode, may have stored its
        // response.
        if let origin = match.origin {
            let urls =
                route.isForward
                ? [url] : [origin.root + path, origin.root + ask.path, url, ask.key.description]
            pass.elsewhere = trail.elsewhere(plan, urls, url, but: route.asksTarget ? nil : route)
        }
        return pass
    }

    // MARK: - The ends of a source chain

    /// The source of requests to the origin of a route; nil if the route has no origin of its own.
    package func originSource(_ route: ServiceRoute, _ endpoint: EndpointRoute) -> OriginSource? {
        if let last, last.endpoint === endpoint { return last.source }
        guard let origin = route.plan.origin else { return nil }
        let source =
            sources[ObjectIdentifier(endpoint)]?.source
            ?? OriginSource(
                service: route.plan,
                origin: origin,
                plan: endpoint.request,
                runtime: route.runtime,
                client: client,
                listed: (calls, CallDestination(route, endpoint, asks: origin.root)),
                onFetch: onFetch
            )
        use(source, for: endpoint)
        return source
    }

    /// Sets the source for the requests of an endpoint.
    func use(_ source: OriginSource, for endpoint: EndpointRoute) {
        sources[ObjectIdentifier(endpoint)] = (endpoint, source)
        last = (endpoint, source)
    }

    /// A source that reports the fetches of a call at another source.
    func told(_ source: any FetchSource, _ call: ServiceCall) -> CallSource {
        if call.parkable == nil, let lastTold, lastTold.source === source { return lastTold.told }
        let destination = CallDestination(call.match.route, call.match.endpoint, asks: call.asked)
        let told = CallSource(source, destination, calls, call.parkable)
        if call.parkable == nil, let source = source as? OriginSource { lastTold = (source, told) }
        return told
    }
}

@available(*, unavailable) extension ServiceClient: Sendable {}
