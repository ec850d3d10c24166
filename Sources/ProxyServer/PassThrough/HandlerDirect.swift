// The direct way: a request that only its origin can answer goes there from the read callback, without a task.

import CacheStore
import DownloadCore
import EventLoop
import HTTPCaching
import HTTPWire
import ServiceCore

/// Whether requests of a route only have to be passed on.
enum DirectWay {
    /// Something besides the origin may answer, or has to be waited for.
    case never
    /// Nothing is stored or looked up.
    case always
    /// Where it is known that the answers cannot be stored.
    case uncacheable

    /// - Parameter isPlain: nothing of the route's but its rules of caching has a say in answers.
    init(_ request: RequestPlan, isPlain: Bool) {
        if !isPlain || request.seed != nil || request.phases != nil {
            self = .never
        } else if request.policy.mode == .none || !request.storesGet {
            self = .always
        } else {
            self = request.key.fields.isEmpty ? .uncacheable : .never
        }
    }
}

/// What the direct way needs of a plan; made once, and held by one reference where a plan would be copied.
///
/// Sendable: nothing in it changes.
final class DirectPlan: Sendable {
    let way: DirectWay
    let request: RequestPlan
    let rules: DirectRules

    init(_ request: RequestPlan, isPlain: Bool) {
        way = DirectWay(request, isPlain: isPlain)
        self.request = request
        rules = DirectRules(request.policy)
    }
}

extension ProxyHandler {
    /// With one of these fields a request takes the waiting path.
    private static let indirect = FieldSet(.via, .upgrade, .expect, .origin)

    package func passOn(_ exchange: Exchange) -> Bool {
        // Asked piece by piece: the whole head would be copied.
        guard exchange.request.method == .get || exchange.request.method == .head,
            exchange.request.fields.present.isDisjoint(with: Self.indirect),
            exchange.framing == .none || exchange.framing == .length(0),
            case .origin(var target) = exchange.target.form
        else { return false }
        let last = exchange.lastOutgoing.flatMap { $0.applies(to: exchange, plan) ? $0 : nil }
        // A Host that has been answered for before.
        guard let known = last?.host ?? exchange.request.fields.withFirst(.host, { hot.known(host: $0) }) ?? nil,
            let route = target.withUTF8({ known.service(target: UnsafeRawBufferPointer($0)) }),
            // Who is refused hears it on the waiting path.
            !(route.addsCredentials && CrossOrigin.isForeignFetch(exchange.request.fields))
        else { return false }
        var rest = route.rest(target)
        if route.guardsPaths, rest.withUTF8({ DotSegments.mayOccur(in: UnsafeRawBufferPointer($0)) }) { return false }
        let endpoint = rest.withUTF8 {
            route.plan.paths.first(for: exchange.request.method, path: UnsafeRawBufferPointer($0))
        }
        let direct = route.directPlans[endpoint.map { $0 + 1 } ?? 0]
        guard direct.way != .never, !core.isOffline, let source = try? source(route, endpoint, depth: 0),
            let ask = directAsk(exchange, route, rest, direct, last, known)
        else { return false }
        switch direct.request.onClientAbort {
        case .finish: break
        default: exchange.endWithClient()
        }
        let relay = Relay(handler: self, exchange: exchange, route: route, ask: ask)
        guard relay.begin(from: source) else { return false }
        directRequests += 1
        return true
    }

    /// What the origin is asked; nil where the store has to be looked into.
    /// - Parameter last: what the client's fields came to before, where it says the same.
    private func directAsk(
        _ exchange: Exchange,
        _ route: ServiceRoute,
        _ rest: String,
        _ direct: DirectPlan,
        _ last: OutgoingFields?,
        _ host: KnownHost
    ) -> DirectAsk? {
        let plan = direct.request
        let path = route.path(rest, plan)
        let isJudged = direct.way == .uncacheable
        var key: CacheKey?
        if isJudged {
            // No field is in such a key, and Connection cannot take Host away.
            let asked = route.key(path: path, exchange.request.fields, plan)
            guard exchange.request.method == .get,
                exchange.request.fields.present.isDisjoint(with: HotPathWindow.disqualifying),
                core.isKnownUncacheable(asked, direct.rules)
            else { return nil }
            key = asked
        }
        let outgoing = if let last, last.direct === direct { last } else { outgoing(exchange, host, direct) }
        var fields = outgoing.fields
        // Another one with each request, so that no line of this is kept for the next.
        if exchange.context.passesIDs { exchange.identify(&fields) }
        return DirectAsk(
            exchange.request.method,
            path: isJudged && !plan.key.ignoreQuery.isEmpty ? plan.key.path(path) : path,
            fields: fields,
            clientHost: route.plan.preservesHost ? outgoing.endToEnd.first(.host) : nil,
            asked: outgoing.endToEnd,
            key: key ?? route.key(path: path, outgoing.endToEnd, plan),
            rules: isJudged ? direct.rules : nil,
            on: exchange.context.loop
        )
    }

    /// What becomes of a request's fields on their way out.
    private func outgoing(_ exchange: Exchange, _ host: KnownHost, _ direct: DirectPlan) -> OutgoingFields {
        let request = exchange.request
        let head = Self.endToEnd(request)
        var fields = originFields(head, hasBody: exchange.framing != .none)
        // The source says Host. Here nobody shares the fields any more: there they would be copied once again.
        fields.remove(.host)
        if direct.way == .uncacheable { fields = UnkeyedFields.removed(from: fields, direct.request.key) }
        let outgoing = OutgoingFields(request, host, plan, direct, endToEnd: head.fields, fields)
        exchange.keep(outgoing)
        return outgoing
    }
}

/// The fields of a request, and what becomes of them by a plan. A connection keeps the last ones: clients mostly say the same again,
/// and then the parser gives the same fields. Nothing in them changes.
final class OutgoingFields {
    private let said: Fields
    private let version: HTTPVersion
    private let plan: RoutePlan
    /// Whom Host names.
    let host: KnownHost
    let direct: DirectPlan
    /// The client's, without those of its connection.
    let endToEnd: Fields
    /// As they go out, but for what the source adds.
    let fields: Fields

    init(
        _ request: RequestHead,
        _ host: KnownHost,
        _ plan: RoutePlan,
        _ direct: DirectPlan,
        endToEnd: Fields,
        _ fields: Fields
    ) {
        said = request.fields
        version = request.version
        self.plan = plan
        self.host = host
        self.direct = direct
        self.endToEnd = endToEnd
        self.fields = fields
    }

    /// Whether a request says the same, as far as it is a GET or HEAD without a body.
    func applies(to exchange: Exchange, _ plan: RoutePlan) -> Bool {
        self.plan === plan && version == exchange.request.version && said.isIdentical(to: exchange.request.fields)
    }
}

@available(*, unavailable) extension OutgoingFields: Sendable {}
