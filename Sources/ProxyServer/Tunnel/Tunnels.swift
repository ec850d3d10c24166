// The handling of CONNECT and Upgrade: the target is checked, and a tunnel to it is made.

import DownloadCore
import EventLoop
import HTTPCaching
import HTTPWire
import ServiceCore
import TLS
import Upstream

/// Answers one CONNECT or Upgrade request. On the loop, for the time of that request.
struct Tunnels {
    let routes: RoutesInForce
    let core: DownloadCore
    let client: UpstreamClient
    let listeners: OwnListeners
    /// Makes the sessions in tunnels that are read; nil if none is.
    let interception: (any Interception)?

    private var plan: RoutePlan { routes.plan }

    /// Answers CONNECT (RFC 9110 section 9.3.6): only to hosts and ports that the rules allow, which are checked again
    /// after name resolution.
    func connect(_ exchange: Exchange, _ authority: Authority, on loop: isolated EventLoop) async throws(Problem) {
        exchange.outcome.route = "connect"
        exchange.outcome.number = .connect
        let rules = try routes.services.refusing { () throws(RouteRefusal) in try routes.router.tunnel(to: authority) }
        if try isRead(exchange, authority), let interception {
            return await read(exchange, authority, rules, interception, on: loop)
        }
        exchange.trace?.say("decided", [("source", "tunnel"), ("rule", "forward.connect"), ("to", "\(authority)")])
        let remote = try await dial(exchange, authority, rules, on: loop)
        exchange.sendHead(Self.established, body: .none)
        guard let client = exchange.detach() else {
            remote.close(resets: false)
            return exchange.fail()
        }
        await carry(exchange.context, client, remote, on: loop)
    }

    private static let established = ResponseHead(status: 200, reason: "Connection established")

    /// The connection to the target of a tunnel.
    private func dial(
        _ exchange: Exchange,
        _ authority: Authority,
        _ rules: TargetRules,
        on loop: isolated EventLoop
    ) async throws(Problem) -> any ByteTransport {
        let target = DialTarget(
            host: authority.host,
            port: authority.port ?? 443,
            rules: rules,
            timeout: plan.forward?.route.itself.request.timeouts.connect,
            proxy: plan.forward?.route.plan.proxies.proxy(
                scheme: "https",
                host: authority.host,
                port: authority.port ?? 443
            ),
            via: exchange.request.fields.all(.via) + [plan.via]
        )
        let addresses = try await addresses(of: target, exchange, on: loop)
        do throws(UpstreamError) {
            return PlainTransport(try await client.dialler.connect(to: addresses, of: target, on: loop))
        } catch {
            exchange.outcome.error = error.detail
            throw Problem(error)
        }
    }

    /// Copies bytes both ways until the tunnel ends.
    private func carry(
        _ context: LoopContext,
        _ client: DetachedTransport,
        _ remote: any ByteTransport,
        on loop: isolated EventLoop
    ) async {
        let timeout = plan.forward?.route.itself.request.timeouts.tunnel
        _ = await Tunnel(on: loop, in: context, client: client, remote: remote, timeout: timeout).run()
    }

    // MARK: Tunnels that are read

    /// Whether the tunnel is to be read if its client speaks HTTPS in it.
    private func isRead(_ exchange: Exchange, _ authority: Authority) throws(Problem) -> Bool {
        guard let interception, let forward = plan.forward,
            case .read(let pattern) = forward.interception.ruling(on: authority)
        else { return false }
        let rule = ("rule", "forward.intercept.hosts: \(pattern)")
        switch interception.decide(on: authority, for: exchange.peer) {
        case .read:
            exchange.trace?.say("decided", [("source", "tunnel that is read"), rule, ("to", "\(authority)")])
            return true
        case .leave(let why):
            exchange.trace?.say("left alone", [rule, ("reason", why)])
            return false
        case .refuse(let why):
            throw Problem(
                status: 503,
                title: "Tunnel cannot be read",
                detail: "\(why); 'forward.intercept' names \(authority.host)",
                proxyError: "proxy_configuration_error"
            )
        }
    }

    /// Answers inside of a tunnel what its client asks there, or makes a tunnel of it if that is not HTTPS. The target is
    /// not connected to before that is known.
    private func read(
        _ exchange: Exchange,
        _ authority: Authority,
        _ rules: TargetRules,
        _ interception: any Interception,
        on loop: isolated EventLoop
    ) async {
        exchange.sendHead(Self.established, body: .none)
        guard let client = exchange.detach() else { return exchange.fail() }
        let context = exchange.context
        switch await FirstBytes(of: client, in: context).run(on: loop) {
        case .over(let reason): client.end(sent: 0, error: reason)
        case .session(let hello):
            let tunnel = ReadTunnel(
                target: authority,
                client: exchange.peer,
                userAgent: exchange.request.fields.first(.userAgent) ?? ""
            )
            guard !context.endsIdle, let handler = context.handler(for: exchange.listener.role),
                let session = interception.session(
                    in: tunnel,
                    hello: hello,
                    received: client.received,
                    over: client.transport,
                    on: loop
                )
            else { return client.end(sent: 0, error: "no session can be begun in the tunnel", resets: true) }
            let inside = client.handOver().inside(session, to: authority, asking: hello?.serverName?.text)
            let parts = ConnectionParts(
                context: context,
                handler: handler,
                transport: session.transport,
                client: inside
            )
            ClientHandshake.begin(parts, by: ConnectionFactory.http1, refusal: nil, on: loop)
        case .tunnel:
            do throws(Problem) {
                let remote = try await dial(exchange, authority, rules, on: loop)
                await carry(context, client, remote, on: loop)
            } catch {
                exchange.tell(ClientTrouble(connect: error), error.detail)
                client.end(sent: 0, error: error.detail, resets: true)
            }
        }
    }

    /// Answers Upgrade (RFC 9110 section 7.8): the tunnel begins only after the origin's 101. It holds a slot of
    /// `max_concurrent` until its end.
    func upgrade(_ exchange: Exchange, _ ask: UpgradeAsk, on loop: isolated EventLoop) async throws(Problem) {
        exchange.trace?.say(
            "decided",
            [
                ("service", exchange.outcome.route), ("source", "tunnel to the origin"),
                ("rule", "Upgrade: \(ask.protocols)"),
                ("origin", ask.hop.origin.root),
            ]
        )
        do throws(Problem) {
            try await passUpgrade(exchange, ask, on: loop)
        } catch {
            exchange.tell(.failedUpgrade, error.detail)
            throw error
        }
    }

    private func passUpgrade(
        _ exchange: Exchange,
        _ ask: UpgradeAsk,
        on loop: isolated EventLoop
    ) async throws(Problem) {
        let hop = ask.hop
        if core.isOffline { throw offlineProblem }
        var slots: [Admission] = []
        defer { for admission in slots { admission.release() } }
        for gate in hop.gates {
            do throws(RouteRefusal) { try await gate.enter(on: loop) } catch { throw Problem(error, plan) }
            slots.append(gate.runtime.admission)
        }
        hop.gates.last?.runtime.countFetch()
        let target = DialTarget(
            host: hop.origin.host,
            port: hop.origin.effectivePort,
            rules: hop.target,
            timeout: hop.plan.timeouts.connect,
            proxy: hop.service.proxies.proxy(to: hop.origin)
        )
        let addresses = try await addresses(of: target, exchange, on: loop)
        let session = try await session(hop, exchange, on: loop)
        let via = plan.via
        let tunnel = UpgradeTunnel(exchange, timeout: hop.tunnelTimeout) { head in
            ask.rewriting.apply(to: &head.fields)
            CrossOrigin.apply(ask.added, to: &head.fields)
            head.fields.appendMember(.via, via)
        }
        let request = upstreamRequest(ask, target, addresses, session, exchange)
        try await tunnel.run(request, through: client, on: loop)
    }

    /// What the service's `tls` asks of an `https` origin; nil for another origin.
    private func session(
        _ hop: UpgradeHop,
        _ exchange: Exchange,
        on loop: isolated EventLoop
    ) async throws(Problem) -> TLSContext? {
        guard hop.origin.scheme == "https" else { return nil }
        do throws(UpstreamError) {
            return try await OriginSessions.shared.context(for: hop.service.tls, to: hop.origin.authority, on: loop)
        } catch {
            exchange.outcome.error = error.detail
            throw Problem(error)
        }
    }

    /// The request to the origin for an upgrade.
    /// - Parameters:
    ///   - target: the origin or its proxy, with the time that is left of `timeout.connect`.
    ///   - addresses: the addresses that the rules have checked; only these are connected to.
    ///   - session: the terms of TLS with an `https` origin.
    private func upstreamRequest(
        _ ask: UpgradeAsk,
        _ target: DialTarget,
        _ addresses: [SocketAddress],
        _ session: TLSContext?,
        _ exchange: Exchange
    ) -> UpstreamRequest {
        let hop = ask.hop
        var timeouts = hop.plan.timeouts
        timeouts.connect = target.timeLeft
        var brought = ask.request.fields
        brought.set(.upgrade, ask.protocols)
        brought.remove(.contentLength)
        brought.remove(.expect)
        var fields = UpgradeTunnel.requestFields(brought)
        if fields.contains(.te) { fields.set(.connection, "upgrade, TE") }
        fields.appendMember(.via, plan.via)
        if !hop.service.preservesHost { fields.set(.host, hop.origin.authority) }
        exchange.identify(&fields)
        for change in hop.passed { change.apply(to: &fields) }
        hop.service.change(hop.plan).apply(to: &fields)
        if target.proxy != nil { fields.remove(.proxyAuthorization) }
        return UpstreamRequest(
            method: ask.request.method,
            path: QueryDefaults.adding(hop.hidden, to: hop.path),
            fields: fields,
            terms: UpstreamTerms(
                url: hop.origin.root,
                host: hop.origin.authority,
                timeouts: timeouts,
                tls: hop.service.tls,
                session: session,
                target: hop.target,
                addresses: addresses,
                proxy: target.proxy,
                limits: hop.service.responseLimits,
                isLenient: hop.service.isLenient
            ),
            isUpgrade: true
        )
    }

    /// Resolves the target of a tunnel. An address of this daemon's own listeners is refused, under any name.
    private func addresses(
        of target: DialTarget,
        _ exchange: Exchange,
        on loop: isolated EventLoop
    ) async throws(Problem) -> [SocketAddress] {
        if core.isOffline { throw offlineProblem }
        do throws(UpstreamError) {
            let addresses = try await client.dialler.addresses(of: target, on: loop)
            // The check is for direct connections only: through a proxy, a loop is found by Via.
            if target.proxy == nil { try listeners.check(addresses, of: target.host) }
            return addresses
        } catch {
            exchange.outcome.error = error.detail
            throw Problem(error)
        }
    }

    /// The refusal of a tunnel while the daemon is offline: it would need a socket to the origin.
    private var offlineProblem: Problem {
        var fields = Fields()
        CacheStatus(cacheName: plan.name, detail: StaleAllowance.offline.rawValue).append(to: &fields)
        return Problem(
            status: 504,
            title: ReasonPhrase.reason(504),
            detail:
                "a tunnel needs the origin, and the daemon is offline, so that nobody is asked; 'drydock offline off' ends that",
            proxyError: "destination_unavailable",
            fields: fields
        )
    }
}

/// An upgrade that a client asks for, and the way to its origin.
final class UpgradeAsk {
    /// The request of the exchange, with the Host field of its route.
    let request: RequestHead
    /// The value of Upgrade for the origin.
    let protocols: String
    let hop: UpgradeHop
    let rewriting: Rewriting
    /// The fields that cross-origin rules add to the answer.
    let added: Fields

    init(request: RequestHead, protocols: String, hop: UpgradeHop, rewriting: Rewriting, added: Fields) {
        self.request = request
        self.protocols = protocols
        self.hop = hop
        self.rewriting = rewriting
        self.added = added
    }
}
