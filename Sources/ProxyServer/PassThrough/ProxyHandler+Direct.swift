// The direct way, from the read callback and without a task: a request that only its origin can answer goes there, and
// the latency of a demo answer begins.

import CacheStore
import DownloadCore
import EventLoop
import HTTPCaching
import HTTPWire
import Policies
import ServiceCore

extension ProxyHandler {
    /// With one of these fields a request takes the waiting path.
    private static let indirect = FieldSet(.via, .upgrade, .expect, .origin)

    package func passThrough(_ exchange: Exchange) -> Bool {
        // Asked piece by piece: the whole head would be copied.
        guard exchange.request.method == .get || exchange.request.method == .head,
            exchange.request.fields.present.isDisjoint(with: Self.indirect),
            exchange.framing == .none || exchange.framing == .length(0),
            case .origin(var target) = exchange.target.form, !exchange.client.isInTunnel
        else { return false }
        let last = exchange.client.lastOutgoing.flatMap { $0.isOf(exchange.request, routes.plan) ? $0 : nil }
        // A Host that has been answered for before.
        guard let known = last?.host ?? exchange.request.fields.withFirst(.host, { routes.hot.known(host: $0) }) ?? nil,
            let route = target.withUTF8({ known.service(target: UnsafeRawBufferPointer($0)) }),
            // The waiting path sends the refusal.
            !(route.addsCredentials && CrossOrigin.isForeignFetch(exchange.request.fields))
        else { return false }
        let rest = route.rest(target)
        if route.guardsPaths, DotSegments.mayOccur(in: rest) { return false }
        let endpoint = route.endpoint(for: exchange.request.method, rest)
        guard endpoint.passThrough != .never, !core.isOffline, !routes.hot.isObserved,
            let source = routes.services.originSource(route, endpoint),
            let ask = directAsk(exchange, route, rest, endpoint, last, known)
        else { return wait(exchange, route, endpoint, rest) }
        switch endpoint.request.onClientAbort {
        case .finish: break
        default: exchange.endWithClient()
        }
        let responder = PassThroughResponder(responder: routes.responder, exchange: exchange, route: route, ask: ask)
        exchange.outcome.note(route, endpoint)
        guard responder.begin(from: source) else { return wait(exchange, route, endpoint, rest) }
        directRequests += 1
        return true
    }

    /// Leaves the request to the waiting path, with its route, so that it is routed only once.
    /// - Returns: whether the waiting path begins later, when a latency has passed.
    private func wait(_ exchange: Exchange, _ route: ServiceRoute, _ endpoint: EndpointRoute, _ rest: String) -> Bool {
        let client = exchange.client
        let match = RouteMatch(route, rest, exchange.request, endpoint: endpoint, over: client.connection)
        exchange.match = match
        // What is traced says what it does while it does it.
        guard endpoint.demo != nil, !routes.hot.isTraced, let latency = match.drawEarly(now: core.clock.elapsed),
            latency > 0
        else { return false }
        // What is told of a client that leaves while it waits.
        exchange.outcome.note(route, endpoint)
        beginDraft(exchange)
        DelayedExchange.begin(exchange, after: latency, by: self)
        return true
    }

    /// The request to the origin; nil if the store must be searched first.
    /// - Parameter last: the outgoing fields of the last request, if this one has the same fields.
    private func directAsk(
        _ exchange: Exchange,
        _ route: ServiceRoute,
        _ rest: String,
        _ endpoint: EndpointRoute,
        _ last: OutgoingFields?,
        _ host: KnownHost
    ) -> PassThroughRequest? {
        let path = route.path(rest, endpoint)
        let isJudged = endpoint.passThrough == .uncacheable
        var key: CacheKey?
        if isJudged {
            // No field is in such a key, and Connection cannot take Host away.
            let asked = route.key(path: path, exchange.request.fields, endpoint, on: nil)
            guard exchange.request.method == .get,
                exchange.request.fields.present.isDisjoint(with: HotPathWindow.disqualifying),
                core.forwarder.isKnownUncacheable(asked, endpoint.directRules)
            else { return nil }
            key = asked
        }
        let outgoing = if let last, last.endpoint === endpoint { last } else { outgoing(exchange, host, endpoint) }
        var fields = outgoing.fields
        // The id differs in each request, so the outgoing fields are not kept for the next one.
        if exchange.context.passesIDs { exchange.identify(&fields) }
        return PassThroughRequest(
            exchange.request.method,
            path: isJudged && !endpoint.request.key.ignoreQuery.isEmpty ? endpoint.request.key.path(path) : path,
            fields: fields,
            clientHost: route.plan.preservesHost ? outgoing.endToEnd.first(.host) : nil,
            asked: outgoing.endToEnd,
            key: key ?? route.key(path: path, outgoing.endToEnd, endpoint, on: nil),
            rules: isJudged ? endpoint.directRules : nil,
            on: exchange.context.loop
        )
    }

    /// What becomes of a request's fields on their way out.
    private func outgoing(_ exchange: Exchange, _ host: KnownHost, _ endpoint: EndpointRoute) -> OutgoingFields {
        let request = exchange.request
        let head = OutgoingRequest.endToEnd(request)
        var fields = OutgoingRequest.fields(head, hasBody: false, via: routes.plan.via(head.version))
        // The source adds Host. It is removed here, where the fields have one owner: the
        // source would have to copy them.
        fields.remove(.host)
        if endpoint.passThrough == .uncacheable { fields = UnkeyedFields.removed(from: fields, endpoint.request.key) }
        let outgoing = OutgoingFields(request, host, routes.plan, endpoint, endToEnd: head.fields, fields)
        exchange.keep(outgoing)
        return outgoing
    }
}
