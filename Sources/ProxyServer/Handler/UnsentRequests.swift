// Requests that no client has sent: questions about them, the items of batches, and the calls of groups. They are read
// and routed as a client's are.

import CacheStore
import Content
package import DownloadCore
import EventLoop
import HTTPCaching
import HTTPWire
import Policies
package import ServiceCore
import Upstream

/// Says what would become of requests that no client has sent; for the length of one question, on the loop.
struct UnsentRequests {
    let routes: RoutesInForce
    let core: DownloadCore
    let listeners: OwnListeners
    /// The limits of a client's head.
    let limits: HeadLimits

    var plan: RoutePlan { routes.plan }

    /// The service that a request is for which is not a client's.
    func match(_ request: RequestHead, _ target: RequestTarget) throws(Problem) -> RouteMatch {
        let found = try routes.services.refusing { () throws(RouteRefusal) in
            try routes.router.destination(request, target, known: { routes.hot.known(host: $0) })
        }
        switch found {
        case .service(let match): return match
        case .daemon: throw Problem.badQuery("the daemon answers such a request itself, and asks nobody")
        case .tunnel: throw Problem(.noService(target: request.target), plan)
        }
    }

    /// Takes the question through the parser that a client's bytes go through.
    func parse(_ bytes: [UInt8]) throws(Problem) -> (RequestHead, RequestTarget, BodyFraming) {
        let limits = limits
        let result: Result<(RequestHead, RequestTarget, BodyFraming), Problem> = bytes.withUnsafeBytes { bytes in
            var parser = RequestParser(limits: limits)
            do throws(WireError) {
                guard case .complete = try parser.parse(bytes) else {
                    return .failure(Problem(WireError(.headTooLong, side: .request)))
                }
                let head = parser.makeHead(bytes)
                return .success((head, try RequestTarget.parse(head.target, method: head.method), parser.framing))
            } catch {
                return .failure(Problem(error))
            }
        }
        return try result.get()
    }

    /// The Host for a query by path: the first address that the daemon listens on.
    var listenerName: String {
        guard let address = listeners.clients.first(where: { !$0.isUnix }) else { return "localhost" }
        let host = address.ipBytes.allSatisfy { $0 == 0 } || address.isLoopback ? "localhost" : address.host
        return "\(host.contains(":") ? "[\(host)]" : host):\(address.port)"
    }

    /// Whether a client that asks this authority is connected to this daemon.
    func isListener(_ authority: Authority) -> Bool {
        // Only a request to the proxy names the origin of a service that has none.
        if plan.services.contains(where: { $0.asksTarget && $0.host == authority.name }) {
            return routes.router.isServedHere(authority)
        }
        // A proxy in front listens on port 80, and passes its name on.
        if authority.port == nil, plan.writtenNames.contains(authority.name) { return true }
        if plan.routes(host: authority.name).first?.host != nil || routes.router.isServedHere(authority) { return true }
        // An address that a router translates to one of this machine; in forward mode it is a target like any other.
        guard plan.forward == nil, routes.router.allows(authority) else { return false }
        return listeners.takesClients(on: authority.port ?? 80)
    }
}

// MARK: - Items of batches

extension UnsentRequests {
    /// Routes an item as a client's request would be routed; it sends no request.
    /// - Throws: ``BatchRefusal`` with the refusal that the request would be answered with.
    func batchRoute(_ item: BatchItem, on loop: isolated EventLoop) throws(BatchRefusal) -> BatchRoute {
        let fields = try item.requestFields()
        do throws(Problem) {
            return try route(item, fields, on: loop)
        } catch {
            throw BatchRefusal("\(error.title): \(error.detail)")
        }
    }

    /// The route of an item that is downloaded for clients to come.
    func prefetchRoute(_ item: BatchItem, on loop: isolated EventLoop) throws(BatchRefusal) -> BatchRoute {
        let route = try batchRoute(item.asClientsAsk(codings: true), on: loop)
        // Programs read the file of `store_as`.
        guard case .store(let ask, _) = route, ask.storeAs != nil else { return route }
        return try batchRoute(item.asClientsAsk(codings: false), on: loop)
    }

    /// The item that an answer to an item sends on to: with the redirect's URL, which is routed like any other.
    /// - Returns: nil where the answer is no redirect of an origin.
    /// - Throws: ``BatchRefusal`` where the redirect must not be followed.
    func redirected(_ item: BatchItem, by answer: ResponseHead) throws(BatchRefusal) -> BatchItem? {
        guard item.method == "GET", 300..<400 ~= answer.status,
            let call = try? call(item, item.requestFields()), let origin = call.match.origin,
            case .store(let ask, _)? = try? routes.services.step(call)
        else { return nil }
        let current = RedirectTarget(origin, path: ask.path)
        switch RedirectDecision.decide(answer, to: .get, at: current, canRepeat: true) {
        case .answer: return nil
        case .refuse(let why): throw BatchRefusal(why)
        case .follow(let target, _, _):
            var next = item
            next.url = try url(of: target, from: call.match)
            // Credentials stay with their origin.
            if !target.isSameOrigin(as: origin) { next.fields.removeAll { SecretNames.isForOneOrigin($0.name) } }
            return next
        }
    }

    /// The URL of an item for the target of a redirect: through the same service where a client is led there.
    /// - Throws: ``BatchRefusal`` where another service would add credentials to a request that an origin has chosen.
    private func url(of target: RedirectTarget, from match: RouteMatch) throws(BatchRefusal) -> String {
        let route = match.route
        let url = route.rewriting.secrets.removed(from: target.url)
        if route.host == nil, !route.isForward, let rest = plan.rests(of: url, through: route).first {
            let path = String(decoding: route.prefix, as: UTF8.self) + rest
            return path.hasPrefix("/") ? path : "/" + path
        }
        let other = plan.services.first {
            $0 !== route && $0.addsCredentials && !plan.rests(of: url, through: $0).isEmpty
        }
        if let other {
            throw BatchRefusal(
                "a redirect leads to the service '\(other.plan.name)', which adds credentials; list its URL itself"
            )
        }
        return url
    }

    private func route(_ item: BatchItem, _ fields: Fields, on loop: isolated EventLoop) throws(Problem) -> BatchRoute {
        let (call, services) = (try call(item, fields), routes.services)
        return try services.refusing { () throws(RouteRefusal) in try route(item, call, services, on: loop) }
    }

    func call(_ item: BatchItem, _ fields: Fields) throws(Problem) -> ServiceCall {
        guard !["HEAD", "CONNECT", "TRACE"].contains(item.method) else {
            throw Problem.badQuery("\(item.method) downloads nothing; leave the method out, or write GET")
        }
        var question = RequestQuestion(url: item.url)
        question.method = item.method
        question.fields = fields.lines.map { RequestQuestion.Field(name: $0.name, value: $0.value) }
        if let body = item.body { question.fields.append(.init(name: "Content-Length", value: "\(body.count)")) }
        var host = listenerName
        if let way = throughService(item.url) {
            question.url = way.target
            host = way.host ?? host
        }
        let (request, target, framing) = try parse(try question.bytes(host: host) { isListener($0) })
        let match = try match(request, target)
        guard UpgradeTunnel.wantedProtocols(request, framing) == nil else {
            throw Problem.badQuery("a switch to another protocol downloads nothing; leave Upgrade out")
        }
        let services = routes.services
        return try services.refusing { () throws(RouteRefusal) in
            _ = try CrossOrigin.decide(match.request, match.route)
            return ServiceCall(match, framing, via: services.plan.via(request.version))
        }
    }

    private func route(
        _ item: BatchItem,
        _ call: ServiceCall,
        _ services: ServiceClient,
        on loop: isolated EventLoop
    ) throws(RouteRefusal) -> BatchRoute {
        // Where the content has a say in the request, it is read first.
        switch try call.isShapedFirst ? nil : services.step(call) {
        case .store(var ask, let source)?:
            if !item.seed { ask.seed = nil }
            return .store(ask, source)
        case .post(let ask, let source)?: return .store(PostedContent.question(ask, item.body ?? []), source)
        case .demo, .order, .pass, nil: break
        }
        return .other(call.key) { () async throws(BatchRefusal) in
            var call = call
            call.urgency = FetchUrgency(.prefetch)
            if call.framing != .none { call.body = item.body.map { ContentSource($0) } }
            do throws(RouteRefusal) {
                var answer = try await services.answer(call, on: loop).answer
                call.match.rewriting.apply(to: &answer.head.fields)
                return answer
            } catch {
                let problem = Problem(error, services.plan)
                throw BatchRefusal("\(problem.title): \(problem.detail)")
            }
        }
    }

    /// How a client reaches an origin's URL through the service with the longest matching base URL: the target and, if
    /// the service is found by its host, the Host. Nil if no base URL matches.
    private func throughService(_ url: String) -> (target: String, host: String?)? {
        guard url.contains("://") else { return nil }
        let url = CacheKey(service: "", url: String(url.prefix { $0 != "#" })).description
        var best: (base: String, route: ServiceRoute)?
        for route in plan.services {
            guard let base = route.plan.origin?.base, url.hasPrefix(base), base.count > best?.base.count ?? -1 else {
                continue
            }
            let rest = url.dropFirst(base.count)
            if rest.isEmpty || rest.hasPrefix("/") || rest.hasPrefix("?") { best = (base, route) }
        }
        guard let best else { return nil }
        let rest = url.dropFirst(best.base.count)
        let prefix = String(decoding: best.route.prefix, as: UTF8.self)
        let target = prefix + rest
        return (target.hasPrefix("/") ? target : "/" + target, best.route.host)
    }
}

extension Server where Handler == ProxyHandler {
    /// Routes the items of batches, on the loop of the batch.
    package var batchResolver: BatchResolver {
        { [handlers] item, loop throws(BatchRefusal) in
            guard let handler = handlers.first(where: { $0.loop === loop })?.value(on: loop)
            else { throw BatchRefusal("the daemon is ending; ask again when it is back") }
            return try handler.unsent.prefetchRoute(item, on: loop)
        }
    }

    /// Routes the calls of groups, on the loop of the group.
    package var groupRouter: GroupRouter {
        { [handlers] request, loop throws(BatchRefusal) in
            guard let handler = handlers.first(where: { $0.loop === loop })?.value(on: loop)
            else { throw BatchRefusal("the daemon is ending; ask again when it is back") }
            let unsent = handler.unsent
            return try unsent.batchRoute(try unsent.item(of: request), on: loop)
        }
    }

    /// Says where redirects of items lead, on the loop of the batch.
    package var batchFollower: BatchFollower {
        { [handlers] item, answer, loop throws(BatchRefusal) in
            guard let handler = handlers.first(where: { $0.loop === loop })?.value(on: loop)
            else { return nil }
            return try handler.unsent.redirected(item, by: answer)
        }
    }
}

// MARK: - Calls of groups

extension UnsentRequests {
    /// The request as a client would send it to its service.
    /// - Throws: that the configuration has no such service any more.
    func item(of request: GroupRequest) throws(BatchRefusal) -> BatchItem {
        guard let route = plan.service(named: request.service) else {
            throw BatchRefusal("there is no service '\(request.service)' any more; run the group again")
        }
        var fields = request.fields.map { BatchItem.Field($0.name, $0.value) }
        if let host = route.host { fields.append(BatchItem.Field("Host", host)) }
        let prefix = String(decoding: route.prefix, as: UTF8.self)
        return BatchItem(url: prefix + request.target, method: request.method, fields: fields, body: request.body)
    }
}
