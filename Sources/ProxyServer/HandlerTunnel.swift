// CONNECT and Upgrade: who may be reached, and the tunnel to it.

import EventLoop
import HTTPWire
import ServiceCore
import Upstream

extension ProxyHandler {
    /// CONNECT (RFC 9110 section 9.3.6): only to hosts and ports that the rules allow, checked again after resolution.
    func connect(_ exchange: Exchange, _ authority: Authority, on loop: isolated EventLoop) async throws(Problem) {
        exchange.outcome.route = "connect"
        guard let forward = plan.forward else { throw ForwardRules.disabled }
        if isOwn(authority, port: authority.port ?? 443) { throw LoopDetection.problem(pseudonym: plan.name) }
        let verdict = forward.verdict(connect: authority)
        if verdict == .refused { throw ForwardRules.refused(authority.description) }
        let remote = try await reach(
            authority.host,
            port: authority.port ?? 443,
            rules: verdict == .named ? .any : .noPrivate,
            timeout: forward.request.timeouts.connect,
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

    /// Upgrade (RFC 9110 section 7.8): a tunnel only after the origin's 101.
    func upgrade(
        _ exchange: Exchange,
        _ service: ServicePlan,
        _ origin: OriginAddress,
        _ plan: RequestPlan,
        path: String,
        rewriting: Rewriting?,
        on loop: isolated EventLoop
    ) async throws(Problem) {
        guard origin.scheme == "http" else {
            throw Problem(
                status: 501,
                title: "Upgrade not supported",
                detail: "an upgrade to an https origin is not passed on; use CONNECT, or an http base_url",
                proxyError: "http_upgrade_failed"
            )
        }
        guard exchange.framing == .none else {
            throw Problem(
                status: 501,
                title: "Upgrade not supported",
                detail: "an upgrade with a request body is not passed on; send the body in a request of its own",
                proxyError: "http_upgrade_failed"
            )
        }
        let remote = try await reach(
            origin.host,
            port: origin.effectivePort,
            rules: service.target,
            timeout: plan.timeouts.connect,
            exchange,
            on: loop
        )
        var fields = UpgradeTunnel.requestFields(exchange.request.fields)
        fields.appendMember(.via, self.plan.via)
        plan.rules.apply(to: &fields)
        if let authorization = service.authorization { fields.set(.authorization, authorization) }
        if !service.preservesHost { fields.set(.host, origin.authority) }
        let request = RequestHead(method: exchange.request.method, target: path, fields: fields)
        let via = self.plan.via
        let tunnel = UpgradeTunnel(exchange, remote: remote, firstByte: plan.timeouts.firstByte ?? .max) { head in
            rewriting?.apply(to: &head.fields)
            head.fields.appendMember(.via, via)
        }
        await tunnel.run(request, on: loop)
    }

    private func reach(
        _ host: String,
        port: UInt16,
        rules: TargetRules,
        timeout: UInt64?,
        _ exchange: Exchange,
        on loop: isolated EventLoop
    ) async throws(Problem) -> Int32 {
        do throws(UpstreamError) {
            return try await Tunnel.connect(
                host: host,
                port: port,
                resolver: resolver,
                rules: rules,
                timeout: timeout ?? .max,
                context: exchange.context,
                on: loop
            )
        } catch {
            throw Problem(
                status: error.status,
                title: StatusText.reason(error.status),
                detail: error.detail,
                proxyError: error.proxyStatus
            )
        }
    }

    /// Whether an authority is one of this daemon's own listeners, as far as that can be seen without resolving it.
    func isOwn(_ authority: Authority, port: UInt16) -> Bool {
        let host = authority.host == "localhost" ? "127.0.0.1" : authority.host
        guard let address = HostRules.address(host, port: authority.port ?? port) else { return false }
        return LoopDetection.isOwn(address, listeners: listeners)
    }
}
