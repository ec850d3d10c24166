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

    /// The origin that an upgrade goes to, through the services that stand in for one. Nil where a demo answer, or nobody,
    /// would take the request: Upgrade is ignored then.
    func upgradeHop(_ route: ServiceRoute, _ rest: String, _ method: Method) throws(Problem) -> UpgradeHop? {
        var (route, rest) = (route, rest)
        var passed: [FieldChange] = []
        for _ in 0..<Self.maximumDepth {
            let endpoint = rest.withUTF8 { route.plan.paths.first(for: method, path: UnsafeRawBufferPointer($0)) }
            if route.demo(endpoint) != nil { return nil }
            if endpoint == nil, route.listedOnly { throw Self.notListed(route) }
            let request = route.request(endpoint).plan
            let path = route.path(rest, request)
            if let origin = route.plan.origin {
                return UpgradeHop(service: route.plan, origin: origin, plan: request, path: path, passed: passed)
            }
            guard let name = route.inner, let inner = plan.service(named: name) else { return nil }
            passed.append(FieldChange(rules: request.rules, authorization: route.plan.authorization))
            (route, rest) = (inner, path)
        }
        return nil
    }

    /// Upgrade (RFC 9110 section 7.8): a tunnel only after the origin's 101.
    /// - Parameters:
    ///   - protocols: the value of Upgrade that goes on.
    ///   - added: fields of cross-origin rules.
    func upgrade(
        _ exchange: Exchange,
        to protocols: String,
        _ hop: UpgradeHop,
        rewriting: Rewriting?,
        _ added: Fields,
        on loop: isolated EventLoop
    ) async throws(Problem) {
        guard hop.origin.scheme == "http" else { throw UpgradeTunnel.unsupportedScheme }
        let remote = try await reach(
            hop.origin.host,
            port: hop.origin.effectivePort,
            rules: hop.service.target,
            timeout: hop.plan.timeouts.connect,
            exchange,
            on: loop
        )
        var asked = exchange.request.fields
        asked.set(.upgrade, protocols)
        asked.remove(.contentLength)
        asked.remove(.expect)
        var fields = UpgradeTunnel.requestFields(asked)
        if fields.contains(.te) { fields.set(.connection, "upgrade, TE") }
        fields.appendMember(.via, plan.via)
        if !hop.service.preservesHost { fields.set(.host, hop.origin.authority) }
        for change in hop.passed { change.apply(to: &fields) }
        FieldChange(rules: hop.plan.rules, authorization: hop.service.authorization).apply(to: &fields)
        let request = RequestHead(method: exchange.request.method, target: hop.path, fields: fields)
        let via = plan.via
        let tunnel = UpgradeTunnel(exchange, remote: remote, firstByte: hop.plan.timeouts.firstByte ?? .max) { head in
            rewriting?.apply(to: &head.fields)
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
            let addresses = try await resolver.resolve(host, port: port, rules: rules)
            if isOwn(addresses) { throw Self.ownListener(host) }
            return try await Tunnel.connect(
                to: addresses,
                host: host,
                timeout: timeout ?? .max,
                context: exchange.context,
                on: loop
            )
        } catch {
            throw Problem(error)
        }
    }

    /// A tunnel needs a socket of its own, which an offline daemon does not open.
    private var offlineProblem: Problem {
        var fields = Fields()
        CacheStatus(cacheName: plan.name, detail: StaleAllowance.offline.rawValue).append(to: &fields)
        return Problem(
            status: 504,
            title: StatusText.reason(504),
            detail:
                "a tunnel needs the origin, and the daemon is offline, so that nobody is asked; 'drydock offline off' ends that",
            proxyError: "destination_unavailable",
            fields: fields
        )
    }

    // MARK: - Own listeners

    /// Whether an authority is one of this daemon's own listeners, as far as that can be seen without asking a name server.
    func isOwn(_ authority: Authority, port: UInt16) -> Bool {
        let port = authority.port ?? port
        guard ownListeners.contains(where: { $0.port == port && !$0.isUnix }) else { return false }
        let host = authority.host.hasSuffix(".") ? String(authority.host.dropLast()) : authority.host
        if host == "localhost" || host.hasSuffix(".localhost") {
            return isOwn(["127.0.0.1", "::1"].compactMap { SocketAddress(numericHost: $0, port: port) })
        }
        guard case .success(let addresses)? = resolver.known(host, port: port, rules: .any) else { return false }
        return isOwn(addresses)
    }

    func isOwn(_ addresses: [SocketAddress]) -> Bool {
        addresses.contains { LoopDetection.isOwn($0, listeners: ownListeners) }
    }

    static func ownListener(_ host: String) -> UpstreamError {
        UpstreamError(
            .addressRefused,
            detail: "\(host) leads to this daemon itself, which is never a target; ask it directly"
        )
    }
}

/// Where an upgrade goes.
struct UpgradeHop {
    let service: ServicePlan
    let origin: OriginAddress
    let plan: RequestPlan
    /// Path and query on the origin.
    let path: String
    /// What the services on the way change in the fields, the outermost first.
    var passed: [FieldChange] = []
}

/// What a service changes in the fields of a request.
struct FieldChange {
    let rules: FieldRules
    let authorization: String?

    func apply(to fields: inout Fields) {
        rules.apply(to: &fields)
        if let authorization { fields.set(.authorization, authorization) }
    }
}
