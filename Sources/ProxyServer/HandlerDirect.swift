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
        let method = exchange.request.method
        guard method == .get || method == .head, exchange.request.fields.present.isDisjoint(with: Self.indirect),
            exchange.framing == .none || exchange.framing == .length(0),
            case .origin(var target) = exchange.target.form,
            // A Host that has been answered for before.
            let known = exchange.request.fields.withFirst(.host, { hot.known(host: $0) }) ?? nil,
            let route = known.route ?? target.withUTF8({ plan.service(target: UnsafeRawBufferPointer($0)) })
        else { return false }
        var rest = route.rest(target)
        let endpoint = rest.withUTF8 { route.plan.paths.first(for: method, path: UnsafeRawBufferPointer($0)) }
        let direct = route.directPlans[endpoint.map { $0 + 1 } ?? 0]
        guard direct.way != .never, !core.isOffline, let source = try? source(route, endpoint, depth: 0),
            let ask = directAsk(exchange, route, rest, direct)
        else { return false }
        let relay = Relay(handler: self, exchange: exchange, route: route, ask: ask)
        guard relay.begin(from: source) else { return false }
        directRequests += 1
        return true
    }

    /// What the origin is asked; nil where the store has to be looked into.
    private func directAsk(
        _ exchange: Exchange,
        _ route: ServiceRoute,
        _ rest: String,
        _ direct: DirectPlan
    ) -> DirectAsk? {
        let plan = direct.request
        let path = route.path(rest, plan)
        let isJudged = direct.way == .uncacheable
        var key: CacheKey?
        if isJudged {
            let fields = exchange.request.fields
            let asked = route.key(path: path, exchange.request, plan)
            guard exchange.request.method == .get, fields.present.isDisjoint(with: HotPathWindow.disqualifying),
                core.isKnownUncacheable(asked, direct.rules)
            else { return nil }
            // No field is in such a key, and Connection cannot take Host away.
            key = asked
        }
        let head = Self.endToEnd(exchange.request)
        var fields = originFields(head, hasBody: exchange.framing != .none)
        // The source says Host. Here nobody shares the fields any more: there they would be copied once again.
        fields.remove(.host)
        if isJudged { fields = Self.withoutUnkeyed(fields, plan.key) }
        let host = route.plan.preservesHost ? head.fields.first(.host) : nil
        return DirectAsk(
            FetchRequest(method: head.method, path: path, fields: fields, clientHost: host),
            for: head,
            key: key ?? route.key(path: path, head, plan),
            rules: isJudged ? direct.rules : nil
        )
    }
}
