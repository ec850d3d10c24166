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
        exchange.trace?.say("decided", [("source", "tunnel"), ("rule", "forward.connect"), ("to", "\(authority)")])
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
        var gates: [UpgradeGate] = []
        var hidden: [HiddenItem] = []
        for _ in 0..<Self.maximumDepth {
            try Self.checkPath(rest, route)
            let endpoint = rest.withUTF8 { route.plan.paths.first(for: method, path: UnsafeRawBufferPointer($0)) }
            if route.demo(endpoint) != nil { return nil }
            if endpoint == nil, route.listedOnly { throw Self.notListed(route) }
            let request = route.request(endpoint).plan
            let path = route.path(rest, request, behind: hidden)
            hidden = hidden.adding(request.query, of: route, to: path)
            gates.append(UpgradeGate(service: route.plan, runtime: route.runtime))
            if let origin = route.plan.origin {
                return UpgradeHop(
                    service: route.plan,
                    origin: origin,
                    plan: request,
                    path: path,
                    gates: gates,
                    passed: passed,
                    hidden: hidden.texts
                )
            }
            guard let name = route.inner, let inner = plan.service(named: name) else { return nil }
            passed.append(FieldChange(rules: request.rules, authorization: route.plan.authorization))
            (route, rest) = (inner, path)
        }
        return nil
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
        rewriting: Rewriting?,
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
        rewriting: Rewriting?,
        _ added: Fields,
        on loop: isolated EventLoop
    ) async throws(Problem) {
        guard hop.origin.scheme == "http" else { throw UpgradeTunnel.unsupportedScheme }
        if core.isOffline { throw offlineProblem }
        var slots: [Admission] = []
        defer { for admission in slots { admission.release() } }
        for gate in hop.gates {
            try await gate.enter(on: loop)
            slots.append(gate.runtime.admission)
        }
        hop.gates.last?.runtime.countFetch()
        let remote = try await reach(
            hop.origin.host,
            port: hop.origin.effectivePort,
            rules: hop.service.target,
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
            exchange.outcome.error = error.detail
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

    /// Whether clients reach this daemon by an authority: then a target in absolute form is answered as one in origin form, which is what
    /// programs send for a URL of the daemon while `http_proxy` names it. The admin API's listeners are not among those.
    func isServedHere(_ authority: Authority) -> Bool {
        let port = authority.port ?? 80
        guard listeners.contains(where: { !$0.isUnix && $0.port == port }) else { return false }
        let name = authority.name
        if plan.ownNames.contains(name) { return true }
        if name == "localhost" || name.hasSuffix(".localhost") {
            return ["127.0.0.1", "::1"].contains { host in
                SocketAddress(numericHost: host, port: port).map { LoopDetection.isOwn($0, listeners: listeners) }
                    ?? false
            }
        }
        guard let address = HostRules.address(name, port: port) else { return false }
        if LoopDetection.isOwn(address, listeners: listeners) { return true }
        // A listener on every address has those of the interfaces.
        let wildcard = [UInt8](repeating: 0, count: address.ipBytes.count)
        return listeners.contains { $0.port == port && $0.ipBytes == wildcard } && Machine.has(address)
    }

    func isOwn(_ addresses: [SocketAddress]) -> Bool {
        addresses.contains { LoopDetection.isOwn($0, listeners: ownListeners) }
    }

    static func ownListener(_ host: String) -> UpstreamError {
        UpstreamError(
            .addressRefused,
            detail:
                "\(host) leads to this daemon itself, which is never a target; ask it directly, or, if that is one of its own names,"
                + " write the full name under hosts (one such as *.lan does not count here)"
        )
    }
}

/// Where an upgrade goes.
struct UpgradeHop {
    let service: ServicePlan
    let origin: OriginAddress
    let plan: RequestPlan
    /// Path and query on the origin, but for `hidden`.
    let path: String
    /// Whose `max_concurrent` counts it, the outermost first.
    let gates: [UpgradeGate]
    /// What the services on the way change in the fields, the outermost first.
    var passed: [FieldChange] = []
    /// Secret query items of the services on the way, percent-encoded.
    var hidden: [String] = []
}

/// A service that an upgrade passes, and its admission.
struct UpgradeGate {
    let service: ServicePlan
    let runtime: ServiceRuntime

    /// Waits for a slot, which whoever got it gives back.
    /// - Throws: what the client hears where there is none.
    func enter(on loop: isolated EventLoop) async throws(Problem) {
        do throws(AdmissionRefusal) {
            try await runtime.admission.acquire(on: loop)
        } catch {
            let failure = FetchError(error, service: service)
            throw Problem(
                status: failure.status,
                title: StatusText.reason(failure.status),
                detail: failure.description,
                proxyError: failure.proxyStatus,
                fields: Fields([("Retry-After", "1")])
            )
        }
    }
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
