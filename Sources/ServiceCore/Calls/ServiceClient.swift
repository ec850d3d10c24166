// Answers calls of services: from a demo answer, from the download core, or forwarded to the origin. Forward
// mode is one of the services.

import CacheStore
import Content
import DemoMode
package import DownloadCore
package import EventLoop
import HTTPCaching
package import HTTPWire
import Policies
package import Upstream

/// An answer that says why there is no other.
package struct RefusalDocument {
    package let head: ResponseHead
    package let body: [UInt8]

    package init(head: ResponseHead, body: [UInt8]) {
        self.head = head
        self.body = body
    }
}

/// Asks, posts and passes on, for all services of one plan. Loop-bound; made anew with each plan.
package final class ServiceClient {
    package let plan: RoutePlan
    package let core: DownloadCore
    let client: UpstreamClient
    let listeners: OwnListeners
    /// The calls of the loop, of this plan and of others.
    let calls: CallsUnderWay
    /// Makes the answer that a service gets when the service that it asks refuses a request.
    let document: (RouteRefusal) -> RefusalDocument
    let onFetch: () -> Void
    // The value holds the endpoint: its identifier could be that of another endpoint after its release.
    /// The origins of services, by endpoint, each made at first use.
    private var sources: [ObjectIdentifier: (endpoint: EndpointRoute, source: OriginSource)] = [:]
    /// The source of the last request, which is most often that of the next one, too.
    // Unchecked: no code runs while it is changed, and a check would cost instructions with every request.
    @exclusivity(unchecked) private var last: (endpoint: EndpointRoute, source: OriginSource)?
    /// The source that tells of the calls of the one which was asked last.
    private var lastTold: (source: OriginSource, told: CallSource)?

    /// - Parameters:
    ///   - calls: of the loop.
    ///   - onFetch: called for each request that is sent, but for upgrades.
    ///   - document: makes the answer that a service gets when the service that it asks refuses a request.
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
    /// endpoint or a stage of its ladder makes of that.
    package func answer(_ call: ServiceCall, on loop: isolated EventLoop) async throws(RouteRefusal) -> ServiceAnswer {
        try Self.admit(call)
        let result = try await answer(unmapped: call, on: loop)
        return Self.errorMapping(of: call) == nil ? result : await mapped(result, call, on: loop)
    }

    // What of a call never waits is in functions of its own, and so is what most calls are not: one that waits has nothing
    // of it in its frames.

    @inline(never) private static func errorMapping(of call: ServiceCall) -> ErrorMapping? {
        call.match.endpoint.request.errorMapping
    }

    /// Stored responses, retries, parking and fallbacks have had their turn.
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

    /// - Returns: what is stored, or the origin's.
    func answer(
        live call: ServiceCall,
        on loop: isolated EventLoop
    ) async throws(RouteRefusal) -> ServiceAnswer {
        if call.match.endpoint.isShaped { return try await answer(shaping: call, on: loop) }
        return try await answer(sent: call, on: loop)
    }

    /// What is wrong with a request is found, and said, before anything of it is sent.
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

    /// - Parameter call: as its endpoint sends it.
    private func answer(
        sent call: ServiceCall,
        on loop: isolated EventLoop
    ) async throws(RouteRefusal) -> ServiceAnswer {
        guard let park = parking(of: call) else { return try await answerOnce(call, on: loop) }
        return try await answerOrPark(call, park, on: loop)
    }

    /// Nil where a call is not to be parked: only a client waits for an origin that is away.
    @inline(never) private func parking(of call: ServiceCall) -> ParkPolicy? {
        call.urgency == nil ? call.match.route.plan.park : nil
    }

    /// The answer of this moment.
    func answerOnce(_ call: ServiceCall, on loop: isolated EventLoop) async throws(RouteRefusal) -> ServiceAnswer {
        switch try begin(call) {
        case .demo, .ladder: return try await answer(unmapped: call, on: loop)
        case .store(let ask, let source):
            return shown(
                await core.answer(ask, from: source, onInterim: call.onInterim, instead: call.instead, on: loop),
                call
            )
        case .post(let ask, let source): return shown(await post(call, ask, source, on: loop), call)
        case .pass(let path, let source): return shown(await pass(call, path, source, on: loop), call)
        }
    }

    /// What becomes of a call, told to who wants to know it.
    @inline(never) private func begin(_ call: ServiceCall) throws(RouteRefusal) -> ServiceStep {
        let step = try liveStep(admitted: call)
        call.tell(step)
        switch step {
        case .store(let ask, _), .post(let ask, _): call.heed(ask)
        case .demo, .ladder, .pass: break
        }
        return step
    }

    /// The answer for whoever has asked: what an origin said of a document that is mapped is for the store alone.
    @inline(never) private func shown(_ answer: Answer, _ call: ServiceCall) -> ServiceAnswer {
        var answer = answer
        if call.match.endpoint.request.mapping != nil { MappedOrigin.remove(from: &answer.head.fields) }
        if call.match.endpoint.request.recording != nil { answer.tellRecording() }
        return ServiceAnswer(answer: answer)
    }

    // MARK: - What becomes of a call

    /// Decides what becomes of a call; no request is sent, and nothing changes.
    /// - Throws: that the path may lead out of the service, that its rules deny the request, that the service answers
    ///   only its endpoints and the path names none, that a parameter of the endpoint is missing, or that the service
    ///   asks no origin and plays no demo answers.
    package func step(_ call: ServiceCall) throws(RouteRefusal) -> ServiceStep {
        let (demo, ladder) = (call.match.endpoint.demo, call.match.endpoint.ladder)
        try Self.admit(call)
        let step = ladder.map { ServiceStep.ladder($0) } ?? demo.map { .demo($0) }
        if let step { return step }
        return try liveStep(admitted: call)
    }

    /// The same without demo mode.
    package func liveStep(_ call: ServiceCall) throws(RouteRefusal) -> ServiceStep {
        try Self.admit(call)
        return try liveStep(admitted: call)
    }

    private func liveStep(admitted call: ServiceCall) throws(RouteRefusal) -> ServiceStep {
        let (route, endpoint) = (call.match.route, call.match.endpoint)
        if endpoint.isUnlisted { throw .noEndpoint(call.head.method, call.match.rest, route) }
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

    /// Where a service has endpoints, a base path or credentials, no path may lead out of what its first
    /// bytes name: it is refused before anything is matched, since what a server makes of it is not what is
    /// matched, stored and logged here.
    /// - Throws: the refusal of a path with dot segments, or of a request that the service's rules deny.
    static func admit(_ request: RequestHead, _ rest: String, _ route: ServiceRoute) throws(RouteRefusal) {
        if route.guardsPaths, DotSegments.mayOccur(in: rest) { throw .dotSegments(service: route.plan.name) }
        guard let rule = route.access.refusal(of: request, rest) else { return }
        throw .denied(service: route.plan.name, rule: rule)
    }

    /// The question that a call is.
    /// - Parameters:
    ///   - path: path and query on the origin.
    ///   - endpoint: of the call; of a GET of its target where the call is forwarded.
    private func ask(_ call: ServiceCall, _ path: String, _ endpoint: EndpointRoute) -> CacheRequest {
        let (route, plan, fields) = (call.match.route, endpoint.request, call.originFields)
        var ask = CacheRequest(
            key: route.key(path: path, call.head.fields, endpoint, on: call.match.origin),
            request: call.head,
            originFields: plan.policy.mode == .none ? fields : UnkeyedFields.removed(from: fields, plan.key),
            path: plan.storesAnything ? plan.key.path(path) : path,
            policy: plan.policy,
            headFormatID: endpoint.headFormatID,
            collapse: plan.collapse,
            prepare: { [via = self.plan.via] in Self.prepare($0, route, via: via) }
        )
        plan.apply(to: &ask)
        ask.urgency = call.urgency
        // What it asks of its answer is for nobody else.
        if route.inner != nil, call.head.fields.contains(DemoOverride.fieldName) { ask.standAlone() }
        ask.sharesURL = plan.sharesURL || route.isAskedInSecret
        let secrets = route.rewriting.secrets
        if !secrets.isEmpty { ask.shown = { secrets.removed(from: $0) } }
        if !call.hidden.isEmpty { ask.key = ask.key.adding(lines: call.hidden.map(\.line)) }
        // With a query of the client's own, or of a service in front, it is another resource.
        if let file = plan.storeAs, !call.match.rest.contains("?"), call.hidden.isEmpty { ask.storeAs = file }
        return ask
    }

    /// The lines of a stored head for the hot path, as this route shows them to a request without Origin.
    private static func prepare(_ head: StoredHead, _ route: ServiceRoute, via: String) -> [UInt8] {
        var shown = head
        route.rewriting.apply(to: &shown.fields)
        if !route.cors.origins.isEmpty { CrossOrigin.apply(Fields([("Vary", "Origin")]), to: &shown.fields) }
        return StoredResponse.prepare(shown, length: head.bodyLength, via: via)
    }

    /// The question of a GET, where answers to GET are stored; else one about which nothing is stored or looked up.
    private static func get(_ ask: CacheRequest, _ plan: RequestPlan) -> CacheRequest {
        guard !plan.storesGet else { return ask }
        var ask = ask
        ask.policy.mode = .none
        return ask
    }

    // MARK: - POST

    /// A POST that is a question like a GET, unless it turns out to be long.
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
            // Nothing is stored of it: the origin gets what the key leaves out, too.
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

    /// A method that is not answered from the store, and what its success does to what is
    /// stored (RFC 9111 section 4.4).
    @inline(never) private func pass(
        _ call: ServiceCall,
        _ path: String,
        _ source: any FetchSource,
        on loop: isolated EventLoop
    ) async -> Answer {
        // What is not sent changes nothing at the origin, and invalidates nothing.
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
        // The stored response of a target is the one that a GET of it gets, so that the endpoint of that GET names its
        // key.
        let stored = route.endpoint(for: .get, match.rest)
        let url = match.targetURL((try? call.target()) ?? match.rest)
        let storedPath = route.path(route.filledOrPlain(match.rest, stored), stored, behind: call.hidden)
        let ask = Self.get(ask(call, storedPath, stored), stored.request)
        call.heed(ask)
        let own = route.keys(asking: path, host: host)
        let trail = FetchTrail()
        fetch.trail = trail
        var pass = UncachedRequest(fetch, ask, url: url) { answer in
            match.keys(of: trail.urls(named: answer, url) + trail.changed, host: host) + own
        }
        // The origin's own URL counts, too: another service, or forward mode, may have stored its response under it.
        if let origin = match.origin {
            let urls =
                route.asksTarget
                ? [url] : [origin.root + path, origin.root + ask.path, url, ask.key.description]
            pass.elsewhere = trail.elsewhere(plan, urls, url, but: route.asksTarget ? nil : route)
        }
        return pass
    }

    // MARK: - The ends of a source chain

    /// The source of requests that go to the origin of a route; nil where it has none of its own.
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
                listed: (calls, CallPlace(route, endpoint, asks: origin.root)),
                onFetch: onFetch
            )
        use(source, for: endpoint)
        return source
    }

    /// Requests of an endpoint go to a source from now on.
    func use(_ source: OriginSource, for endpoint: EndpointRoute) {
        sources[ObjectIdentifier(endpoint)] = (endpoint, source)
        last = (endpoint, source)
    }

    /// The source that tells of the fetches of a call at another one.
    func told(_ source: any FetchSource, _ call: ServiceCall) -> CallSource {
        if call.parkable == nil, let lastTold, lastTold.source === source { return lastTold.told }
        let place = CallPlace(call.match.route, call.match.endpoint, asks: call.asked)
        let told = CallSource(source, place, calls, call.parkable)
        if call.parkable == nil, let source = source as? OriginSource { lastTold = (source, told) }
        return told
    }
}

@available(*, unavailable) extension ServiceClient: Sendable {}
