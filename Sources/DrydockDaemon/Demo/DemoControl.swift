// The operator's commands about demo mode: switch it, change its answers and faults, reset its counters.

import Configuration
import DemoMode
import DownloadCore
import EventLoop
import HTTPWire
import Logging
import Plans
import Policies
import ProxyServer
import ServiceCore
import Synchronization

/// Changes demo mode by an operator's commands, and ends changes whose time is over.
///
/// Sendable: the changes are in the context, and the timer for their end protects itself.
final class DemoControl: DaemonFeature {
    private let context: DaemonContext
    private let reloader: Reloader
    private let timer = OrderTimer()

    init(_ context: DaemonContext, reloader: Reloader) {
        self.context = context
        self.reloader = reloader
    }

    var gauges: [Gauge] {
        [
            Gauge(
                "drydock_demo_overrides",
                "Changes of demo mode that hold in place of the configuration's word.",
                read: { [context] in context.state.withLock { $0.demo.changes.count } }
            )
        ]
    }

    func demo() async -> AdminDemo { context.demo }

    func change(_ order: DemoOrder) async throws(Problem) -> AdminDemo {
        let scope = DemoScope(service: order.service, endpoint: order.endpoint)
        let now = Monotonic.now()
        let end = order.seconds.map { now &+ UInt64($0) &* 1_000_000_000 }
        try await reloader.change { overlay, configuration in
            if let problem = Self.refusal(of: order, configuration) { return problem }
            guard !order.settings.isEmpty else {
                overlay.clear(scope)
                return nil
            }
            for setting in order.settings {
                guard overlay.set(setting, for: scope, until: end) else {
                    return Problem(
                        status: 409,
                        title: "Too many changes",
                        detail: "\(DemoOverlay.most) changes of demo mode hold already; clear some of them first"
                    )
                }
            }
            return nil
        }
        let words = order.settings.map { "\($0.key.rawValue)=\($0.text)" }.joined(separator: " ")
        tell(scope, words.isEmpty ? "cleared" : words + (order.seconds.map { " for \(Lifetimes.text($0))" } ?? ""))
        wait()
        return context.demo
    }

    /// The refusal of an order that names an unknown service, or a service without demo answers; nil if there is no
    /// mistake.
    private static func refusal(of order: DemoOrder, _ configuration: Configuration) -> Problem? {
        let services = configuration.services
        for setting in order.settings {
            guard let problem = setting.problem(with: configuration) else { continue }
            return Problem(status: 404, title: "Not in the configuration", detail: problem)
        }
        let needsAnswers = order.settings.contains { $0.needsDemoAnswers }
        guard let name = order.service else {
            if !needsAnswers || services.contains(where: { $0.hasDemoAnswers }) { return nil }
            return noAnswers("no service")
        }
        guard let service = configuration.service(named: name) else {
            return .unknown(service: name, among: services.map(\.name))
        }
        guard let endpointName = order.endpoint else {
            return service.hasDemoAnswers || !needsAnswers ? nil : noAnswers("service '\(name)'")
        }
        guard let endpoint = service.endpoints.first(where: { $0.name == endpointName }) else {
            return .unknown(endpoint: endpointName, among: service.endpoints.map(\.name))
        }
        return endpoint.demo.hasAnswer || !needsAnswers ? nil : noAnswers("endpoint '\(name)/\(endpointName)'")
    }

    private static func noAnswers(_ who: String) -> Problem {
        let verb = who.hasPrefix("no ") ? "has" : "has no"
        return Problem(
            status: 409,
            title: "No demo answers",
            detail: "\(who) \(verb) demo answers; write demo: { file: ... } or demo: { files: ... } for it, and reload"
        )
    }

    func reset(service: String?, journal: Bool, latencies: Bool) async throws(Problem) -> AdminDemoReset {
        let names = context.plan.services.map(\.plan.name)
        if let service, !names.contains(service) { throw .unknown(service: service, among: names) }
        if journal { await context.untilRecorded() }
        let now = context.parts.core.clock.elapsed
        let requests = context.parts.compiler.registry.resetDemo(service: service, now: now)
        let entries = journal ? context.parts.journal.clear() : nil
        tell(DemoScope(service: service), "reset")
        guard latencies else { return AdminDemoReset(requests: requests, entries: entries) }
        let compiler = context.parts.compiler
        let forgotten = compiler.registry.latencies.forget(service: service)
        // The answers in force were made with the latencies that are forgotten now, so they are made anew.
        try await reloader.change(renews: true) { _, _ in nil }
        _ = try? await context.parts.files.run { compiler.latencyFile.save() }
        return AdminDemoReset(requests: requests, entries: entries, latencies: forgotten)
    }

    func draw(again said: String, service: String?) async throws(Problem) -> AdminDraw {
        let plan = context.plan
        let names = plan.services.map(\.plan.name)
        if let service, service != "forward", !names.contains(service) {
            throw .unknown(service: service, among: names)
        }
        let draws: [SaidDraw]
        do throws(SaidDrawError) { draws = try SaidDraw.read(said) } catch { throw .badQuery("said: \(error)") }
        let replay = DrawReplay(plan)
        let repeated = draws.map { replay.draw(again: $0, service: service) }
        return AdminDraw(
            members: repeated.map {
                AdminDraw.Member(said: $0.said.text, drawn: $0.drawn, latency: $0.latency, note: $0.note)
            },
            isSame: repeated.allSatisfy(\.isSame)
        )
    }

    private func tell(_ scope: DemoScope, _ words: String) {
        context.parts.log(.demo).notice("demo mode changed", metadata: ["of": "\(scope.text)", "change": "\(words)"])
    }

    // MARK: - The ends of changes

    /// Sets the timer for the next end of a change, in place of the previous timer.
    /// - Parameter pause: nanoseconds that pass at least before it fires.
    private func wait(_ pause: UInt64 = 0) {
        let end = context.state.withLock { $0.demo.nextEnd }
        timer.set(end.map { max($0, Monotonic.now() &+ pause) }, on: context.parts.loops.loops[0]) { [weak self] in
            await self?.removeEnded()
        }
    }

    private func removeEnded() async {
        let ended = Mutex<[DemoOverlay.Change]>([])
        do throws(Problem) {
            try await reloader.change { overlay, _ in
                let changes = overlay.removeEnded(at: Monotonic.now())
                ended.withLock { $0 = changes }
                return nil
            }
            for change in ended.withLock({ $0 }) {
                tell(change.scope, "\(change.setting.key.rawValue)=\(change.setting.text) has ended")
            }
        } catch {
            context.parts.log(.demo).warning("a change of demo mode cannot end, trying again in 10 s: \(error.detail)")
            return wait(10_000_000_000)
        }
        wait()
    }

    /// Cancels the timer: no change of demo mode ends by itself after this.
    func stop() {
        timer.cancel()
    }
}

extension DaemonContext {
    /// The state of demo mode for the admin API: its answers, the changes that hold, and the learned latencies.
    var demo: AdminDemo {
        let (configuration, plan, overlay) = state.withLock { ($0.configuration, $0.plan, $0.demo) }
        var answers: [AdminDemo.Answers] = []
        for service in configuration.services {
            guard let route = plan.service(named: service.name) else { continue }
            if service.demo.hasAnswer {
                let isOn = route.itself.demo != nil
                answers.append(AdminDemo.Answers(service: service.name, endpoint: nil, isOn: isOn))
            }
            for endpoint in service.endpoints where endpoint.demo.hasAnswer {
                let isOn = route.endpoints.contains { $0.name == endpoint.name && $0.demo != nil }
                answers.append(AdminDemo.Answers(service: service.name, endpoint: endpoint.name, isOn: isOn))
            }
        }
        let latencies = parts.compiler.registry.latencies.all.map { latency in
            let current = latency.current
            return AdminDemo.Latency(
                of: latency.name,
                answers: Int(current.count),
                median: current.quantile(0.5),
                p90: current.quantile(0.9),
                p99: current.quantile(0.99)
            )
        }
        return AdminDemo(
            answers: answers,
            overrides: overlay.document(now: Monotonic.now()),
            latencies: latencies
        )
    }
}

/// A change of demo mode that `POST /v1/demo` asks for.
struct DemoOrder: Sendable, Equatable {
    /// The name of the service that is changed; nil for all services.
    var service: String?
    /// The name of the endpoint that is changed; nil for the whole service.
    var endpoint: String?
    /// The settings that are changed; empty for `clear`, which takes all changes back.
    var settings: [DemoSetting] = []
    /// Seconds for which the change holds; nil until it is cleared or the configuration is reloaded.
    var seconds: Int64?

    init(service: String? = nil, endpoint: String? = nil) {
        self.service = service
        self.endpoint = endpoint
    }

    /// Parses the query: `service=`, `endpoint=` and `for=` with at least one of `enabled=on|off`, `latency=`,
    /// `status=`, `chance=` and `faults=`; or `clear`.
    /// - Throws: a 400 that names the mistake.
    init(members: [(name: String, value: String)]) throws(Problem) {
        var clears = false
        for (name, value) in members {
            switch name {
            case "service" where !value.isEmpty && service == nil: service = value
            case "endpoint" where !value.isEmpty && endpoint == nil: endpoint = value
            case "clear" where value.isEmpty: clears = true
            case "for" where seconds == nil:
                do throws(Lifetimes.Malformed) { seconds = try Lifetimes.seconds(value) } catch {
                    throw .badQuery("for: \(error)")
                }
                if seconds == 0 { throw .badQuery("for: 0s is no time; write 1s or more") }
            default:
                guard let key = DemoSetting.Key(rawValue: name), !settings.contains(where: { $0.key == key }) else {
                    throw .badQuery(
                        "\(name) is not known, empty, or given twice; there are service, endpoint, "
                            + "\(DemoSetting.Key.names), for and clear"
                    )
                }
                do throws(Lifetimes.Malformed) { settings.append(try DemoSetting(key, value)) } catch {
                    throw .badQuery("\(name): \(error)")
                }
            }
        }
        if endpoint != nil, service == nil {
            throw .badQuery("an endpoint is one of a service: give service=NAME, too")
        }
        if clears != settings.isEmpty || clears && seconds != nil {
            throw .badQuery(
                "give one or more of \(DemoSetting.Key.names), with for=DURATION or not; or clear"
            )
        }
    }
}

extension DemoControl {
    var routes: [AdminRoute] {
        [
            AdminRoute(.get, .demo) { request async throws(Problem) in
                guard request.queryItems.isEmpty else { throw .badQuery("the state of demo mode takes no query") }
                return try .json(await self.demo())
            },
            AdminRoute(.post, .demo) { request async throws(Problem) in
                try .json(await self.change(try DemoOrder(members: request.queryItems)))
            },
            AdminRoute(.post, .resetDemo) { request async throws(Problem) in
                var (service, journal, latencies) = (nil as String?, false, false)
                for (name, value) in request.queryItems {
                    switch name {
                    case "service" where !value.isEmpty && service == nil: service = value
                    case "journal" where value.isEmpty: journal = true
                    case "latencies" where value.isEmpty: latencies = true
                    default: throw .badQuery("give service=NAME, journal, latencies, several of these or nothing")
                    }
                }
                return try .json(
                    await self.reset(service: service, journal: journal, latencies: latencies)
                )
            },
            AdminRoute(.get, .draw) { request async throws(Problem) in
                var (service, said) = (nil as String?, nil as String?)
                for (name, value) in request.queryItems {
                    switch name {
                    case "service" where !value.isEmpty && service == nil: service = value
                    case "said" where !value.isEmpty && said == nil: said = value
                    default: throw .badQuery("give said=VALUE, the value of Drydock-Demo, with service=NAME or not")
                    }
                }
                guard let said else { throw .badQuery("give said=VALUE, the value of Drydock-Demo") }
                return try .json(await self.draw(again: said, service: service))
            },
        ]
    }
}
