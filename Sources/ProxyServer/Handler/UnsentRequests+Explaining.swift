// Explains a request: it is routed like a client's, and each source of answers says what it would do; no origin is
// contacted and nothing changes.

import CacheStore
import DemoMode
import DownloadCore
import EventLoop
import HTTPCaching
import HTTPWire
import Policies
import ServiceCore

extension UnsentRequests {
    /// Routes the query as a client's request would be routed.
    /// - Throws: a 422 with the refusal that the request would get, or a 400 if the query makes no valid request.
    func explain(
        _ question: RequestQuestion,
        on loop: isolated EventLoop
    ) async throws(Problem) -> RequestExplanation {
        if question.isProxied { return try await explain(proxied: question, on: loop) }
        var question = question
        if question.service == "forward", plan.service(named: "forward") == nil { question.service = "" }
        if let service = question.service, !service.isEmpty {
            guard plan.service(named: service) != nil else {
                throw .unknown(service: service, among: plan.services.map(\.plan.name))
            }
            guard let way = way(to: question.url, through: service) else {
                throw Problem.badQuery("service '\(service)' does not lead to '\(question.url)'")
            }
            return try await explain(question, way, on: loop)
        }
        let bytes: [UInt8]
        do throws(Problem) {
            bytes = try question.bytes(host: listenerName) { isListener($0) }
        } catch {
            // A listing shows URLs of services, too.
            guard question.service == nil, let way = way(to: question.url) else { throw error }
            return try await explain(question, way, on: loop)
        }
        do throws(Problem) {
            let explanation = try await explain(bytes, on: loop)
            if question.service == nil, let stored = await storedElsewhere(question, explanation, on: loop) {
                return stored
            }
            return explanation
        } catch {
            // What forward mode does not take, a service may.
            if question.service == nil, let way = way(to: question.url) {
                return try await explain(question, way, on: loop)
            }
            let detail = "such a request is answered \(error.status) \(error.title): \(error.detail)"
            throw Problem(status: 422, title: "Refused", detail: detail)
        }
    }

    /// Explains a request to the proxy, with the rule that takes it.
    private func explain(
        proxied question: RequestQuestion,
        on loop: isolated EventLoop
    ) async throws(Problem) -> RequestExplanation {
        guard question.service == nil else {
            throw Problem.badQuery("the rules say which service takes a request to the proxy; leave service out")
        }
        let bytes = try question.bytes(host: listenerName) { _ in false }
        let rulings = routes.router.rulings(of: try parse(bytes).1)
        do throws(Problem) {
            var explanation = try await explain(bytes, on: loop)
            explanation.proxied = rulings
            return explanation
        } catch {
            let asked = rulings.map { "\($0.rule.rawValue): \($0.reason)" }.joined(separator: "; ")
            let detail = "such a request is answered \(error.status) \(error.title): \(error.detail) (\(asked))"
            throw Problem(status: 422, title: "Refused", detail: detail)
        }
    }

    /// Where forward mode has nothing for a URL of an origin, as a listing shows it, and a service has: that.
    private func storedElsewhere(
        _ question: RequestQuestion,
        _ forwarded: RequestExplanation,
        on loop: isolated EventLoop
    ) async -> RequestExplanation? {
        func hasSomething(_ explanation: RequestExplanation) -> Bool {
            !(explanation.stored?.explanation.locations.isEmpty ?? true)
        }
        guard forwarded.route.kind == .forward, !hasSomething(forwarded) else { return nil }
        var first: RequestExplanation?
        for way in plan.ways(to: question.url) {
            let found = try? await explain(question, way, on: loop)
            if let found, hasSomething(found) { return found }
            first = first ?? found
        }
        // Most clients tunnel to an https origin, and use a service for responses that are to be stored.
        return question.url.lowercased().hasPrefix("https:") ? first : nil
    }

    private func explain(
        _ question: RequestQuestion,
        _ way: ClientWay,
        on loop: isolated EventLoop
    ) async throws(Problem) -> RequestExplanation {
        var question = question
        (question.url, question.service) = (way.target, nil)
        let bytes = try question.bytes(host: way.host ?? listenerName) { isListener($0) }
        do throws(Problem) {
            return try await explain(bytes, on: loop)
        } catch {
            let detail = "such a request is answered \(error.status) \(error.title): \(error.detail)"
            throw Problem(status: 422, title: "Refused", detail: detail)
        }
    }

    /// The target by which a client reaches a URL through a service; a path of this daemon stays as it is.
    private func way(to url: String, through service: String? = nil) -> ClientWay? {
        if let way = own(url), let route = route(of: way), service == nil || route.plan.name == service {
            return service == nil ? nil : ClientWay(route, way.target, host: way.host)
        }
        return plan.ways(to: url, through: service).first
    }

    /// The target of a path, or of a URL of this daemon's own; nil for any other.
    private func own(_ url: String) -> (target: String, host: String?)? {
        if url.hasPrefix("/") { return (url, nil) }
        guard let parsed = try? RequestTarget.parse(String(url.prefix { $0 != "#" }), method: .get),
            case .absolute("http", let authority, let path) = parsed.form, isListener(authority)
        else { return nil }
        return (path, authority.description)
    }

    private func route(of way: (target: String, host: String?)) -> ServiceRoute? {
        let authority = way.host.flatMap { Authority.parse($0) } ?? Authority(host: "localhost")
        let host = KnownHost("", authority, plan, isOwn: routes.router.allows(authority))
        var target = way.target
        return target.withUTF8 { host.service(target: UnsafeRawBufferPointer($0)) }
    }

    /// The other forms in which the listing may show responses of this URL, or of URLs that begin with it, whether it
    /// is a client's or an origin's. The text itself is not among them.
    func listedForms(of text: String) -> [String] {
        var urls: [String] = []
        if let way = own(text) {
            // At the root a path may as well be a part of any URL.
            guard let route = route(of: way), way.host != nil || !route.prefix.isEmpty else { return [] }
            let rest = route.askedRest(route.rest(way.target))
            urls.append(route.keysHost ? "://*" + route.address.basePath + rest : route.address.base + rest)
            if let origin = route.rewriting.origin { urls.append(origin.base + rest) }
        } else if text.contains("://") {
            urls.append(text)
        }
        var forms = Set(urls)
        for url in urls where !url.hasPrefix(":") { forms.formUnion(plan.listedForms(of: url)) }
        forms.remove(text)
        return forms.map { CacheKey(service: "", url: $0).description }.sorted()
    }

    private func explain(_ bytes: [UInt8], on loop: isolated EventLoop) async throws(Problem) -> RequestExplanation {
        let (request, target, framing) = try parse(bytes)
        let match = try match(request, target)
        let (route, services) = (match.route, routes.services)
        _ = try services.refusing { () throws(RouteRefusal) in try CrossOrigin.decide(match.request, route) }
        var shown = RequestExplanation.Route(match)
        if UpgradeTunnel.wantedProtocols(request, framing) != nil,
            let hop = try services.refusing({ () throws(RouteRefusal) in try services.plan.upgradeHop(match) })
        {
            shown.kind = .tunnel
            shown.asks = hop.origin.root + hop.path
            var explanation = bypass(request, shown, .upgrade)
            let outlooks = hop.gates.lazy.map { OriginOutlook($0.service, $0.runtime.admission) }
            explanation.outlook = outlooks.first { $0 != .asked } ?? .asked
            return explanation
        }
        let call = ServiceCall(match, framing, via: services.plan.via(request.version))
        let root = (match.origin ?? route.address).root
        switch try services.refusing({ () throws(RouteRefusal) in try services.step(call) }) {
        case .demo(let plan):
            let rules = services.rulings(plan, on: call)
            if rules.last?.answers != true, plan.unmatched == .pass {
                let live = try services.refusing { () throws(RouteRefusal) in try services.liveStep(call) }
                var explanation = await explain(live, call, shown, root, on: loop)
                explanation.demo = rules
                return explanation
            }
            shown.kind = .demo
            var explanation = bypass(request, shown, .demo)
            explanation.demo = rules
            return explanation
        case .order(let order):
            var explanation = bypass(request, shown, .from)
            explanation.sources = await SourceExplanation(services).rulings(of: order, call, on: loop)
            return explanation
        case let step:
            guard let plan = match.endpoint.request.recording else {
                return await explain(step, call, shown, root, on: loop)
            }
            var explanation = bypass(request, shown, .recording)
            explanation.sources = await SourceExplanation(services).rulings(of: plan, call, on: loop)
            return explanation
        }
    }

    private func explain(
        _ step: ServiceStep,
        _ call: ServiceCall,
        _ shown: RequestExplanation.Route,
        _ root: String,
        on loop: isolated EventLoop
    ) async -> RequestExplanation {
        var explanation = await explain(step, call.head, shown, root, on: loop)
        let asksNobody = explanation.bypass == .seed || core.isOffline
        if !asksNobody, explanation.stored?.explanation.asksByItself ?? true {
            explanation.outlook = OriginOutlook(call.match)
            if case .refused(let error) = explanation.outlook {
                explanation.parking = ParkingOutlook(call, refused: error)
            }
        }
        return explanation
    }

    private func explain(
        _ step: ServiceStep,
        _ request: RequestHead,
        _ shown: RequestExplanation.Route,
        _ root: String,
        on loop: isolated EventLoop
    ) async -> RequestExplanation {
        var shown = shown
        switch step {
        // Decided before.
        case .demo, .order: return bypass(request, shown, .demo)
        case .post(let ask, _):
            shown.asks = root + ask.path
            return bypass(request, shown, .storedPost)
        case .pass(let path, _):
            shown.asks = root + path
            return bypass(request, shown, .content)
        case .store(let ask, _):
            shown.asks = root + ask.path
            return await explain(request, shown, ask, on: loop)
        }
    }

    private func explain(
        _ request: RequestHead,
        _ route: RequestExplanation.Route,
        _ ask: CacheRequest,
        on loop: isolated EventLoop
    ) async -> RequestExplanation {
        if let seed = ask.seed, await core.seeds.pinned(ask, seed) != nil {
            return bypass(request, route, .seed)
        }
        guard ask.policy.mode != .none else { return bypass(request, route, .cacheOff) }
        let stored = await core.lookup.explain(ask, on: loop)
        var explanation = RequestExplanation(
            request: request,
            route: route,
            now: stored.rules.now,
            isOffline: stored.rules.isOffline
        )
        explanation.stored = RequestExplanation.Stored(revalidate: ask.policy.revalidate, explanation: stored)
        explanation.ways = plan.ways(to: route.asks ?? ask.key.description)
            .filter { $0.route.plan.name != ask.key.service }
            .map { way in
                let url = way.host.map { "http://\($0)\(way.target)" } ?? way.target
                return RequestExplanation.Way(service: way.route.plan.name, url: url)
            }
        return explanation
    }

    /// Nothing is stored or looked up.
    private func bypass(
        _ request: RequestHead,
        _ route: RequestExplanation.Route,
        _ reason: RequestExplanation.Bypass
    ) -> RequestExplanation {
        RequestExplanation(
            request: request,
            route: route,
            now: core.clock.now(),
            isOffline: core.isOffline,
            bypass: reason
        )
    }
}

extension ServiceClient {
    /// The rules of demo mode up to the one that answers a call, with why the others do not; nothing is counted.
    func rulings(_ plan: DemoPlan, on call: ServiceCall) -> [RequestExplanation.DemoRuling] {
        var rulings: [RequestExplanation.DemoRuling] = []
        let (state, parts, key) = (call.match.route.demoState, call.demoParts, call.demoKey)
        for rule in plan.rules {
            let differences = state.differences(rule, parts, key: key, now: core.clock.elapsed)
            let answers = differences.isEmpty
            rulings.append(RequestExplanation.DemoRuling(rule: rule.label, answers: answers, differences: differences))
            if answers { break }
        }
        return rulings
    }
}

extension Server where Handler == ProxyHandler {
    /// Asks the proxy's handler of a loop; empty where the loop has ended.
    package func listedForms(of text: String) async -> [String] {
        await handlers[0].run { handler, _ in handler.unsent.listedForms(of: text) } ?? []
    }

    /// Asks the proxy's handler of a loop; nil where the loop has ended.
    package func explain(_ question: RequestQuestion) async -> Result<RequestExplanation, Problem>? {
        await handlers[0].run { handler, loop -> Result<RequestExplanation, Problem> in
            do throws(Problem) {
                return .success(try await handler.unsent.explain(question, on: loop))
            } catch {
                return .failure(error)
            }
        }
    }
}

// MARK: - The order of sources

/// Says what each source of a route would do; for the length of one question, on the loop.
struct SourceExplanation {
    private let services: ServiceClient

    init(_ services: ServiceClient) { self.services = services }

    private var core: DownloadCore { services.core }

    /// Each source in its order, with what it would do if it were asked.
    func rulings(
        of order: SourceOrder<EndpointRoute>,
        _ call: ServiceCall,
        on loop: isolated EventLoop
    ) async -> [RequestExplanation.SourceRuling] {
        var result: [RequestExplanation.SourceRuling] = []
        for stage in order.stages {
            let attempt = stage.call(call)
            for source in stage.sources {
                let said = await says(source, stage.route, attempt, on: loop)
                result.append(RequestExplanation.SourceRuling(source: source, says: said))
            }
        }
        return result
    }

    /// Each source of a route whose answers come from its `source`, with what it would do.
    func rulings(
        of plan: RecordingPlan,
        _ call: ServiceCall,
        on loop: isolated EventLoop
    ) async -> [RequestExplanation.SourceRuling] {
        let order: [OrderedSource] =
            switch plan.source {
            case .live: []
            case .record: plan.rules.onFailure == .replay ? [.live, .recording] : [.live]
            case .replayOrRecord: [.recording, .live]
            case .replay: [.recording]
            }
        var result: [RequestExplanation.SourceRuling] = []
        for source in order {
            // The source of a recorded route looks by itself whether anybody is to be asked.
            let isOffline = source == .live && core.isOffline
            let said = isOffline ? .offline : await says(source, call.match.endpoint, call, on: loop)
            result.append(RequestExplanation.SourceRuling(source: source, says: said))
        }
        return result
    }

    private func says(
        _ asked: OrderedSource,
        _ route: EndpointRoute,
        _ call: ServiceCall,
        on loop: isolated EventLoop
    ) async -> RequestExplanation.SourceRuling.Says {
        switch asked {
        case .demo:
            guard let plan = route.demo else { return .noDemoAnswers }
            guard let last = services.rulings(plan, on: call).last else { return .noDemoRule([]) }
            return last.answers ? .demoRule(last.rule) : .noDemoRule(last.differences)
        case .recording:
            let found = await RecordingLookup(services).recording(for: call)
            return found.recording.map { .recorded($0.recordedAt) } ?? .notRecorded(found.reason)
        default: break
        }
        if asked == .live, !core.isOffline, case .refused(let error) = OriginOutlook(call.match) {
            return .refused(error.description)
        }
        let step: ServiceStep
        do throws(RouteRefusal) { step = try services.liveStep(call) } catch {
            let problem = Problem(error, services.plan)
            return .refused("\(problem.title): \(problem.detail)")
        }
        guard case .store(let ask, let source) = step else {
            guard asked == .live else { return .notOfItsMethod }
            let isOffline = core.isOffline && self.source(of: step)?.opensSockets ?? true
            return isOffline ? .offline : .asks(call.match.origin?.root)
        }
        switch asked {
        case .live:
            if core.isOffline, source.opensSockets { return .offline }
            return .asks((call.match.origin ?? call.match.route.address).root + ask.path)
        case .fallback:
            return ask.phases?.fallback.map { .fallback(status: $0.status, path: $0.path) } ?? .noFallback
        case .seed:
            guard let seed = ask.seed, await core.seeds.pinned(ask, seed) != nil else { return .noSeed }
            return .seed
        default: return says(asked, await core.lookup.explain(ask, on: loop))
        }
    }

    /// - Parameter asked: `fresh` or `stale`.
    private func says(_ asked: OrderedSource, _ found: StoredExplanation) -> RequestExplanation.SourceRuling.Says {
        let rules = found.rules
        guard let chosen = rules.chosen else { return .nothingStored }
        let variant = rules.variants[chosen]
        if asked == .fresh {
            guard case .fresh? = rules.decision else {
                return .notAllowed(reason: rules.reason, section: rules.section)
            }
            return .fresh(max(0, variant.lifetime.seconds - variant.timeInUse))
        }
        switch variant.ifError {
        case .allowed(let limit): return .stale(limit)
        case .refused(let refusal): return .notAllowed(reason: refusal.rawValue, section: refusal.section)
        }
    }

    private func source(of step: ServiceStep) -> (any FetchSource)? {
        switch step {
        case .pass(_, let source), .post(_, let source), .store(_, let source): source
        case .demo, .order: nil
        }
    }
}
