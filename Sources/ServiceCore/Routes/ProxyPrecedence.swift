// Who takes a request that a client has sent to a proxy: the one order of the daemon's own addresses, services by host and
// forward mode, for answers and for explanations.

package import HTTPWire
import Upstream

/// What a client that uses a proxy wants to reach.
package struct ProxyTarget: Sendable, Equatable {
    /// The scheme in lower case, whatever it is.
    package let scheme: String
    package let authority: Authority
    /// The path and query; empty for OPTIONS of the server as a whole (RFC 9112 section 3.2.4).
    package let path: String

    package init(scheme: String, authority: Authority, path: String) {
        self.scheme = scheme
        self.authority = authority
        self.path = path
    }

    var isSecure: Bool { scheme == "https" }

    /// The port that the target names, or else that of its scheme.
    var port: UInt16 { authority.port ?? (isSecure ? 443 : 80) }

    package var origin: OriginAddress {
        OriginAddress(scheme: scheme, host: authority.host, port: authority.port, basePath: "")
    }
}

/// Who takes a request that a client has sent to a proxy. The cases are in the order in which they are asked:
///
/// | | takes | then asks |
/// |---|---|---|
/// | `own` | a URL of the daemon itself, of the scheme of the connection, outside of tunnels | as for the same path in origin form |
/// | `service` | a host that is a service's `match.host`; of several, the longest `match.prefix` | its `base_url`, whatever forward mode allows; without one the origin that the target names, if forward mode allows it |
/// | `forward` | all the rest | the origin that the target names, if forward mode allows it |
///
/// Services that are matched by their prefix alone are only asked by `own`: their paths belong to the daemon's own names.
/// No request gets further whose target is one of the daemon's listeners, the admin API's included, or whose https URL
/// has crossed the network in the clear. Forward mode allows by `forward.allow` and `forward.connect.allow`; of hosts that
/// only a pattern allows, no internal address is asked. A service's `match.host` allows nothing.
package enum ProxyTaker: Sendable {
    case own
    case service(ServiceRoute)
    case forward
}

extension Router {
    /// Finds who takes a request that a client has sent to a proxy.
    package func taker(of asked: ProxyTarget, over connection: ConnectionContext) -> ProxyTaker {
        if connection.authority == nil, asked.scheme == connection.scheme,
            isServedHere(asked.authority, over: connection)
        {
            return .own
        }
        // No service is the server as a whole.
        if !asked.path.isEmpty, let route = plan.service(ofHost: asked.authority.name, target: asked.path) {
            return .service(route)
        }
        return .forward
    }
}

extension ForwardPlan {
    /// The verdict on a target that is asked for through the proxy.
    func verdict(on asked: ProxyTarget) -> Verdict {
        let host = asked.authority.host
        return asked.isSecure
            ? verdict(connect: Authority(host: host, port: asked.port)) : verdict(host: host, port: asked.port)
    }
}

// MARK: - Explanations

/// What one of those that may take a request to the proxy says of it.
package struct ProxyRuling: Sendable, Equatable {
    /// Those who are asked, in the order of ``ProxyTaker``.
    package enum Rule: String, Sendable, CaseIterable {
        case own = "own address"
        case host = "service by host"
        case forward = "forward mode"
    }

    package let rule: Rule
    package let takes: Bool
    package let reason: String
}

extension Router {
    /// What each says of a request to the proxy, up to the one that takes it; nothing of another request.
    package func rulings(of target: RequestTarget) -> [ProxyRuling] {
        guard case .absolute(let scheme, let authority, let path) = target.form else { return [] }
        let asked = ProxyTarget(scheme: scheme, authority: authority, path: target.isServerWide ? "" : path)
        let taker = taker(of: asked, over: ConnectionContext())
        if case .own = taker {
            return [ProxyRuling(rule: .own, takes: true, reason: "\(authority) is one of this daemon's")]
        }
        let others = ProxyRuling(rule: .own, takes: false, reason: "\(authority) is none of this daemon's")
        if case .service(let route) = taker {
            return [
                others,
                ProxyRuling(
                    rule: .host,
                    takes: true,
                    reason: "service \(route.plan.name) at \(route.mountPoint)" + tunnelAdvice(asked)
                ),
            ]
        }
        let named = plan.services.filter { $0.host == authority.name }
            .map { "\($0.mountPoint) (\($0.plan.name))" }.joined(separator: ", ")
        let none = named.isEmpty ? "no service has match.host: \(authority.name)" : "there are only \(named)"
        return [others, ProxyRuling(rule: .host, takes: false, reason: none), ruling(ofForward: asked)]
    }

    private func ruling(ofForward asked: ProxyTarget) -> ProxyRuling {
        let (takes, reason) =
            switch plan.forward?.verdict(on: asked) {
            case .named: (true, "a rule names the host" + tunnelAdvice(asked))
            case .anyPublic:
                (true, "a pattern allows the host, at addresses that are not internal" + tunnelAdvice(asked))
            case .refused: (false, "no rule allows \(asked.authority)")
            case nil: (false, "forward.enabled is false")
            }
        return ProxyRuling(rule: .forward, takes: takes, reason: reason)
    }

    /// What an explanation adds for https, for which most clients open a tunnel (CONNECT).
    private func tunnelAdvice(_ asked: ProxyTarget) -> String {
        guard asked.isSecure else { return "" }
        let closed = ", if the proxy gets the request itself and not a closed tunnel (CONNECT)"
        guard let forward = plan.forward else { return closed }
        switch forward.interception.ruling(on: Authority(host: asked.authority.host, port: asked.port)) {
        case .unnamed: return closed
        case .excepted(let pattern): return closed + ", as forward.intercept.except has it: \(pattern)"
        case .read where forward.verdict(on: asked) == .refused:
            return closed + ", which no rule of forward.connect.allow and forward.allow allows"
        case .read(let pattern):
            return ", inside of a tunnel (CONNECT), too, which forward.intercept.hosts has read: \(pattern)"
        }
    }
}
