// What would become of a request: routed as it would be, with nobody asked and nothing changed.

import CacheStore
import DownloadCore
package import EventLoop
import HTTPCaching
import HTTPWire
import ServiceCore

extension ProxyHandler {
    /// Routes the question as its request would be routed.
    /// - Throws: a 422 with the refusal that the request would be answered with, or a 400 where it is none.
    package func explain(
        _ question: ExplainQuestion,
        on loop: isolated EventLoop
    ) async throws(Problem) -> AdminExplanation {
        let bytes = try question.bytes(host: listenerName) { isListener($0) }
        do throws(Problem) {
            return try await explain(bytes, on: loop)
        } catch {
            let detail = "such a request is answered \(error.status) \(error.title): \(error.detail)"
            throw Problem(status: 422, title: "Refused", detail: detail)
        }
    }

    private func explain(_ bytes: [UInt8], on loop: isolated EventLoop) async throws(Problem) -> AdminExplanation {
        let (request, target, framing) = try parse(bytes)
        try accept(request)
        let head = Self.endToEnd(request)
        let fields = originFields(head, hasBody: framing != .none)
        switch target.form {
        case .absolute(let scheme, let authority, let path):
            let (forward, origin, _) = try forwardTarget(scheme, authority)
            var route = AdminExplanation.Route(kind: .forward, asks: origin.root + path)
            if Self.wantedProtocols(request, framing) != nil {
                route.kind = .tunnel
                return bypass(request, route, "upgrade", "RFC 9110 section 7.8")
            }
            guard framing == .none || framing == .length(0) else {
                return bypass(request, route, "content", "RFC 9110 section 9.3.1")
            }
            return await explain(request, route, ask(forward, origin, path, head, originFields: fields), on: loop)
        case .origin(let target):
            let place = try service(for: request, target)
            guard let route = place.route else { throw notRouted(target) }
            _ = try CrossOrigin.decide(request, route)
            let rest = route.rest(target)
            var shown = AdminExplanation.Route(route, rest)
            if Self.wantedProtocols(request, framing) != nil, let hop = try upgradeHop(route, rest, .get) {
                shown.kind = .tunnel
                shown.asks = hop.origin.root + hop.path
                return bypass(request, shown, "upgrade", "RFC 9110 section 7.8")
            }
            let routed = RoutedRequest(route: route, head: head, rest: rest, originFields: fields, framing: framing)
            switch try step(routed) {
            case .demo:
                shown.kind = .demo
                return bypass(request, shown, "demo", "configuration, demo.enabled")
            case .post(let ask, _):
                shown.asks = route.address.root + ask.path
                return bypass(request, shown, "content", "configuration, cache.methods")
            case .pass(let path, _):
                shown.asks = route.address.root + path
                return bypass(request, shown, "content", "RFC 9110 section 9.3.1")
            case .store(let ask, _):
                shown.asks = route.address.root + ask.path
                return await explain(request, shown, ask, on: loop)
            }
        case .authority, .asterisk: throw notRouted(request.target)
        }
    }

    private func explain(
        _ request: RequestHead,
        _ route: AdminExplanation.Route,
        _ ask: CacheAsk,
        on loop: isolated EventLoop
    ) async -> AdminExplanation {
        if let seed = ask.seed, await core.pinned(ask, seed) != nil {
            return bypass(request, route, StoreTier.seed.rawValue, "configuration, cache.seed_dir")
        }
        guard ask.policy.mode != .none else {
            return bypass(request, route, StoreRefusal.cacheOff.rawValue, StoreRefusal.cacheOff.section)
        }
        return AdminExplanation(request, route, ask, await core.explain(ask, on: loop))
    }

    /// Nothing is stored or looked up.
    private func bypass(
        _ request: RequestHead,
        _ route: AdminExplanation.Route,
        _ reason: String,
        _ section: String
    ) -> AdminExplanation {
        let ruling = AdminExplanation.Ruling(reason: reason, section: section)
        return AdminExplanation(request, route, now: core.clock.now(), isOffline: core.isOffline, bypass: ruling)
    }

    /// Takes the question through the parser that a client's bytes go through.
    func parse(_ bytes: [UInt8]) throws(Problem) -> (RequestHead, RequestTarget, BodyFraming) {
        let limits = context.settings.head
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

    /// The Host of who asks by path: the first address that is listened on.
    var listenerName: String {
        guard let address = listeners.first(where: { !$0.isUnix }) else { return "localhost" }
        let host = address.ipBytes.allSatisfy { $0 == 0 } || address.isLoopback ? "localhost" : address.host
        return "\(host.contains(":") ? "[\(host)]" : host):\(address.port)"
    }

    /// Whether a client that asks this authority is connected to this daemon.
    func isListener(_ authority: Authority) -> Bool {
        if plan.service(host: authority.host) != nil { return true }
        let port = authority.port ?? 80
        return hostRules.allows(authority) && listeners.contains { !$0.isUnix && $0.port == port }
    }
}

extension Server {
    /// Asks the proxy's handler of a loop; nil where the loop has ended.
    package func explain(_ question: ExplainQuestion) async -> Result<AdminExplanation, Problem>? {
        await contexts[0].run { context, loop -> Result<AdminExplanation, Problem>? in
            guard let handler = context.handler(for: .proxy) as? ProxyHandler else { return nil }
            do throws(Problem) {
                return .success(try await handler.explain(question, on: loop))
            } catch {
                return .failure(error)
            }
        } ?? nil
    }
}
