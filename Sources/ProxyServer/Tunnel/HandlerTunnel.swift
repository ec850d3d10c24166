// CONNECT and Upgrade: who may be reached, and the tunnel to it.

import DownloadCore
import EventLoop
import HTTPCaching
import HTTPWire
import ServiceCore
import Upstream

extension ProxyHandler {
    /// CONNECT (RFC 9110 section 9.3.6): only to hosts and ports that the rules allow, checked again after resolution.
    func connect(_ exchange: Exchange, _ authority: Authority, on loop: isolated EventLoop) async throws(Problem) {
        exchange.outcome.route = "connect"
        let rules = try services.refusing { () throws(RouteRefusal) in try router.tunnel(to: authority) }
        exchange.trace?.say("decided", [("source", "tunnel"), ("rule", "forward.connect"), ("to", "\(authority)")])
        let remote = try await reach(
            authority.host,
            port: authority.port ?? 443,
            rules: rules,
            timeout: plan.forward?.route.itself.request.timeouts.connect,
            exchange,
            on: loop
        )
        exchange.sendHead(ResponseHead(status: 200, reason: "Connection established"), body: .none)
        guard let client = exchange.takeOver() else {
            Socket.close(remote)
            return exchange.fail()
        }
        _ = await Tunnel(on: loop, client: client, remote: remote).run()
    }

    /// Upgrade (RFC 9110 section 7.8): a tunnel only after the origin's 101. It is one of the fetches that `max_concurrent` counts,
    /// to its end.
    /// - Parameters:
    ///   - asked: the request of the exchange, with the Host that it is for.
    ///   - protocols: the value of Upgrade that goes on.
    ///   - added: fields of cross-origin rules.
    func upgrade(
        _ exchange: Exchange,
        _ asked: RequestHead,
        to protocols: String,
        _ hop: UpgradeHop,
        rewriting: Rewriting,
        _ added: Fields,
        on loop: isolated EventLoop
    ) async throws(Problem) {
        exchange.trace?.say(
            "decided",
            [
                ("service", exchange.outcome.route), ("source", "tunnel to the origin"),
                ("rule", "Upgrade: \(protocols)"),
                ("origin", hop.origin.root),
            ]
        )
        do throws(Problem) {
            try await passUpgrade(exchange, asked, to: protocols, hop, rewriting: rewriting, added, on: loop)
        } catch {
            exchange.tell(.failedUpgrade, error.detail)
            throw error
        }
    }

    private func passUpgrade(
        _ exchange: Exchange,
        _ asked: RequestHead,
        to protocols: String,
        _ hop: UpgradeHop,
        rewriting: Rewriting,
        _ added: Fields,
        on loop: isolated EventLoop
    ) async throws(Problem) {
        guard hop.origin.scheme == "http" else { throw UpgradeTunnel.unsupportedScheme }
        if core.isOffline { throw offlineProblem }
        var slots: [Admission] = []
        defer { for admission in slots { admission.release() } }
        for gate in hop.gates {
            do throws(RouteRefusal) { try await gate.enter(on: loop) } catch { throw Problem(error, plan) }
            slots.append(gate.runtime.admission)
        }
        hop.gates.last?.runtime.countFetch()
        let remote = try await reach(
            hop.origin.host,
            port: hop.origin.effectivePort,
            rules: hop.target,
            timeout: hop.plan.timeouts.connect,
            exchange,
            on: loop
        )
        var brought = asked.fields
        brought.set(.upgrade, protocols)
        brought.remove(.contentLength)
        brought.remove(.expect)
        var fields = UpgradeTunnel.requestFields(brought)
        if fields.contains(.te) { fields.set(.connection, "upgrade, TE") }
        fields.appendMember(.via, plan.via)
        if !hop.service.preservesHost { fields.set(.host, hop.origin.authority) }
        exchange.identify(&fields)
        for change in hop.passed { change.apply(to: &fields) }
        FieldChange(rules: hop.plan.rules, authorization: hop.service.authorization).apply(to: &fields)
        let target = QueryDefaults.adding(hop.hidden, to: hop.path)
        let request = RequestHead(method: asked.method, target: target, fields: fields)
        let via = plan.via
        let tunnel = UpgradeTunnel(
            exchange,
            remote: remote,
            firstByte: hop.plan.timeouts.firstByte ?? .max,
            idle: hop.plan.timeouts.idle ?? .max
        ) { head in
            rewriting.apply(to: &head.fields)
            CrossOrigin.apply(added, to: &head.fields)
            head.fields.appendMember(.via, via)
        }
        await tunnel.run(request, on: loop)
    }

    /// Resolves, refuses this daemon's own listeners whatever they are called, and connects.
    private func reach(
        _ host: String,
        port: UInt16,
        rules: TargetRules,
        timeout: UInt64?,
        _ exchange: Exchange,
        on loop: isolated EventLoop
    ) async throws(Problem) -> Int32 {
        if core.isOffline { throw offlineProblem }
        do throws(UpstreamError) {
            let addresses = try await listeners.resolve(host, port: port, rules: rules)
            return try await Tunnel.connect(
                to: addresses,
                host: host,
                timeout: timeout ?? .max,
                context: exchange.context,
                on: loop
            )
        } catch {
            exchange.outcome.error = error.detail
            throw Problem(error)
        }
    }

    /// A tunnel needs a socket of its own, which an offline daemon does not open.
    private var offlineProblem: Problem {
        var problem = Problem(.offline, plan)
        CacheStatus(cacheName: plan.name, detail: StaleAllowance.offline.rawValue).append(to: &problem.fields)
        return problem
    }
}
