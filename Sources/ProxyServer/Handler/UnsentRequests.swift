// Requests that no client has sent: questions about them, and the items of batches. They are read and
// routed as a client's are.

import DownloadCore
import EventLoop
import HTTPWire
import ServiceCore

/// Says what would become of requests that no client has sent; for the length of one question, on the loop.
struct UnsentRequests {
    let routes: RoutesInForce
    let core: DownloadCore
    let listeners: OwnListeners
    /// Of a client's head.
    let limits: HeadLimits

    var plan: RoutePlan { routes.plan }

    /// The service that a request is for which is not a client's.
    func match(_ request: RequestHead, _ target: RequestTarget) throws(Problem) -> RouteMatch {
        let place = try routes.services.refusing { () throws(RouteRefusal) in
            try routes.router.place(request, target, known: { routes.hot.known(host: $0) })
        }
        switch place {
        case .service(let match): return match
        case .daemon: throw ExplainQuery.bad("the daemon answers such a request itself, and asks nobody")
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
        // A proxy in front listens on port 80, and passes its name on.
        if authority.port == nil, plan.writtenNames.contains(authority.name) { return true }
        if plan.routes(host: authority.name).first?.host != nil || routes.router.isServedHere(authority) { return true }
        // An address that a router translates to one of this machine; in forward mode it is a target like any other.
        guard plan.forward == nil, routes.router.allows(authority) else { return false }
        return listeners.takesClients(on: authority.port ?? 80)
    }
}
