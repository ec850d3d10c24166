// The part of the admin API that every daemon has: status, reload, listing, explanation, switches and metrics.

import CacheStore
package import Configuration
import DownloadCore
import EventLoop
import Glibc
import HTTPWire
import ProxyServer
import ServiceCore
import Synchronization

/// Answers the commands about the daemon as a whole.
///
/// Sendable: it has no mutable state of its own.
final class DaemonControl: DaemonFeature {
    private let context: DaemonContext
    private let startedAt = Monotonic.now()
    private let stored: StoredEntries
    private let switches: OperatorSwitches
    private let reloader: Reloader
    private let record: ReloadRecord
    private let metrics: DaemonMetrics
    private let watch: StallDetector

    init(
        _ context: DaemonContext,
        stored: StoredEntries,
        switches: OperatorSwitches,
        reloader: Reloader,
        record: ReloadRecord,
        metrics: DaemonMetrics,
        watch: StallDetector
    ) {
        self.context = context
        self.stored = stored
        self.switches = switches
        self.reloader = reloader
        self.record = record
        self.metrics = metrics
        self.watch = watch
    }

    /// Why no client should be sent here now; nil if the daemon listens, is not ending, and nothing in it stands still.
    var unreadiness: String? {
        if context.isStopping { return "it is ending" }
        if context.server == nil { return "it is starting" }
        let standing = watch.standing
        return standing.isEmpty
            ? nil : standing.joined(separator: ", ") + (standing.count == 1 ? " stands still" : " stand still")
    }

    func status() async -> AdminStatus {
        let counters = await context.server?.counters() ?? CounterValues()
        let (plan, configuration) = context.state.withLock { ($0.plan, $0.configuration) }
        let parts = context.parts
        let stored = parts.core.store.statistics
        let (memory, disk) = (stored.memory, stored[.disk])
        var status = AdminStatus(
            version: DrydockVersion.current,
            pid: Int(getpid()),
            uptime: Int((Monotonic.now() - startedAt) / 1_000_000_000),
            configuration: parts.source.name(configuration),
            loops: parts.loops.loops.count,
            listen: context.addresses,
            services: configuration.services.map { Self.describe($0, plan) }
                + (plan.forward.map { [Self.describe($0)] } ?? []),
            isOffline: parts.core.isOffline,
            clock: switches.clock(isMovable: configuration.clock.movable),
            memory: AdminStatus.Tier(entries: memory.objects, bytes: memory.bytes, limit: memory.limit),
            disk: disk.map {
                AdminStatus.Tier(entries: $0.objects, bytes: Int(clamping: $0.bytes), limit: Int(clamping: $0.limit))
            }
        )
        status.count(counters)
        status.forward = AdminStatus.Forward(configuration, environment: parts.environment)
        status.demo = context.demo.overrides
        status.refusal = record.refusal
        let (distrusted, areTunnelled) = parts.security.tunnels.distrusted
        status.distrusted = distrusted.map { entry in
            AdminStatus.Distrusted(
                client: entry.client,
                host: entry.target,
                reason: entry.reason,
                times: entry.times,
                since: entry.since,
                isTunnelled: areTunnelled
            )
        }
        return status
    }

    /// Describes forward mode in the form of a service.
    private static func describe(_ forward: ForwardPlan) -> AdminStatus.Service {
        let route = forward.route
        var result = AdminStatus.Service(
            name: "forward",
            target: "the URL of the request",
            match: "http_proxy",
            isDemo: false,
            isPartlyDemo: false
        )
        result.fetches = route.runtime.admission.running
        result.waiting = route.runtime.admission.waiting
        if route.plan.breaker != nil {
            let count = route.runtime.resilience.openBreakerCount
            result.breaker = count == 0 ? "closed" : count == 1 ? "open for 1 origin" : "open for \(count) origins"
        }
        return result
    }

    private static func describe(_ service: ServiceConfiguration, _ plan: RoutePlan) -> AdminStatus.Service {
        let base: String =
            switch service.baseURL {
            case .origin(let url)?: url.description
            case .service(let name)?: "service:\(name)"
            case nil: "none"
            }
        let route = plan.service(named: service.name)
        var result = AdminStatus.Service(
            name: service.name,
            target: base,
            match: service.match.description,
            isDemo: route?.playsDemo ?? false,
            isPartlyDemo: route.map { $0.playsDemo && $0.asksOrigin } ?? false
        )
        if let route {
            result.fetches = route.runtime.admission.running
            result.waiting = route.runtime.admission.waiting
            result.breaker = route.breakerState?.name
            if route.plan.park != nil { result.parked = route.runtime.parked.callCount }
            let early = route.runtime.rates.earlyCount
            if early > 0 { result.early = early }
        }
        return result
    }

    func reload() async -> ReloadResult {
        do throws(DaemonError) {
            let outcome = try await reloader.reload()
            let ended = outcome.endedDemoChanges
            let demo = ended == 0 ? "" : "; \(BatchProgress.count(ended, "change")) of demo mode ended by it"
            return ReloadResult(
                isReloaded: true,
                summary: context.configuration.summary + demo,
                changes: outcome.changes
            )
        } catch {
            let errors = error.description.split(separator: "\n").map(String.init)
            return ReloadResult(isReloaded: false, summary: "the old configuration stays in force", errors: errors)
        }
    }
}

extension DaemonControl {
    var routes: [AdminRoute] {
        [
            AdminRoute(.get, .status) { _ async throws(Problem) in try .json(await self.status()) },
            AdminRoute(.get, .config) { request async throws(Problem) in
                try request.check([])
                let configuration = self.context.configuration
                // The text of a thousand services is long, and made off the loop.
                let text = await Task.detached { configuration.shown() }.value
                return .text(text, type: "application/yaml")
            },
            AdminRoute(.get, .entries) { request async throws(Problem) in
                try await .jsonBehind(await self.stored.entries(try AdminEntryQuery(query: request.query)))
            },
            AdminRoute(.get, .explain) { request async throws(Problem) in
                let query = try RequestQuestion(members: request.queryItems)
                let explanation = AdminExplanation(try await self.context.explain(query))
                guard request.query["as"] == "text" else { return try .json(explanation) }
                return .text(explanation.text, type: "text/plain; charset=utf-8")
            },
            AdminRoute(.post, .reload) { _ async throws(Problem) in
                let result = await self.reload()
                return try .json(result, status: result.isReloaded ? 200 : 422)
            },
            AdminRoute(.post, .offline) { request async throws(Problem) in
                try .json(await self.switches.setOffline(try request.isOffline))
            },
            AdminRoute(.post, .clock) { request async throws(Problem) in
                try .json(await self.switches.moveClock(try ClockMove(query: request.query)))
            },
            AdminRoute(.get, .metrics) { request async throws(Problem) in
                let format = MetricsFormat(accept: request.accept)
                return .text(await self.metrics.text(format), type: format.type)
            },
            AdminRoute(.get, .health) { _ async throws(Problem) in .text("ok\n") },
            AdminRoute(.get, .readiness) { _ async throws(Problem) in
                self.unreadiness.map { .text("not ready: \($0)\n", status: 503) } ?? .text("ready\n")
            },
        ]
    }
}

extension AdminRequest {
    /// True for the query `on`, false for `off`.
    /// - Throws: a 400 for any other query.
    fileprivate var isOffline: Bool {
        get throws(Problem) {
            guard query.count == 1, let word = query.first, word.value.isEmpty, ["on", "off"].contains(word.key) else {
                throw .badQuery("give either on or off")
            }
            return word.key == "on"
        }
    }
}

extension AdminStatus {
    fileprivate mutating func count(_ counters: CounterValues) {
        connections = Int(clamping: counters.connections)
        tunnels = Int(clamping: counters[.tunnelsOpened] &- counters[.tunnelsClosed])
        answers = Int(clamping: counters.answers.count)
        hits = Int(clamping: counters.answers[.hit])
        misses = Int(clamping: counters.answers[.miss])
        hitRatio = counters.answers.hitRatio
        answersPerSecond = uptime > 0 ? Double(answers) / Double(uptime) : nil
    }
}

// MARK: - Documents

/// The document of `GET /v1/status`. Sizes are bytes, times whole seconds.
package struct AdminStatus: Codable, Sendable, Equatable {
    /// The members that tell one daemon from another; the status of any version has them.
    package struct Identity: Codable, Sendable, Equatable {
        package var pid: Int
        /// The absolute path of the configuration file; nil if there is none.
        package var configuration: String?
    }

    package struct Tier: Codable, Sendable, Equatable {
        package var entries: Int
        package var bytes: Int
        package var limit: Int
    }

    package struct Service: Codable, Sendable, Equatable {
        package var name: String
        /// The destination to which the service's requests go: a URL, or another service.
        package var target: String
        /// The match of the service as the configuration has it, such as `/github` or `api.localhost`.
        package var match: String
        /// True if some or all requests get demo answers.
        package var isDemo: Bool
        /// True if some requests get demo answers, and the others go to `target`; nil from an older daemon.
        package var isPartlyDemo: Bool?
        /// The number of fetches under way; nil, like the members that follow, from an older daemon.
        package var fetches: Int?
        /// The number of fetches that wait for `max_concurrent`.
        package var waiting: Int?
        /// The state of the circuit breaker: `closed`, `open` or `half-open`, in forward mode `open for 2 origins`; nil
        /// also if the service has none.
        package var breaker: String?
        /// The number of calls that wait for an unreachable origin; nil also if the service parks none.
        package var parked: Int?
        /// The number of requests that came before the Retry-After of a quota had passed; nil also if there were none.
        package var early: Int?
    }

    /// A client that has shown, inside of a tunnel that is read, that it does not trust the local authority.
    package struct Distrusted: Codable, Sendable, Equatable {
        /// Its address, or `unix`.
        package var client: String
        /// The host and the port of the tunnel.
        package var host: String
        /// What it did, in words that follow "the client".
        package var reason: String
        /// How often it did so.
        package var times: Int
        /// When it did so first, in seconds since 1970.
        package var since: Int64
        /// True if its tunnels to the host are left alone.
        package var isTunnelled: Bool
    }

    /// What clients may ask the daemon as a proxy.
    package struct Forward: Codable, Sendable, Equatable {
        /// True if it takes requests for other hosts than those of services.
        package var isEnabled: Bool
        /// The patterns of the hosts whose tunnels are read.
        package var intercepted: [String]
        /// The absolute path of the local authority's certificate; nil if no tunnel is read.
        package var certificate: String?
    }

    package var version: String
    package var pid: Int
    package var uptime: Int
    /// The absolute path of the configuration file; nil if there is none.
    package var configuration: String?
    package var loops: Int
    package var listen: [String]
    package var services: [Service]
    package var connections = 0
    package var tunnels = 0
    package var answers = 0
    package var hits = 0
    package var misses = 0
    /// The part of the answers that needed no origin, of those that have to do with one; nil if there were none.
    package var hitRatio: Double?
    /// Since the start; nil in its first second.
    package var answersPerSecond: Double?
    /// True if no origin is asked.
    package var isOffline: Bool
    package var clock: AdminClock
    package var memory: Tier
    /// The disk tier; nil if there is none.
    package var disk: Tier?
    /// The changes of demo mode that hold; nil from an older daemon.
    package var demo: [AdminDemo.Override]?
    /// The clients that do not trust the local authority; nil from an older daemon.
    package var distrusted: [Distrusted]?
    /// The files that were refused and why, with the place of the first error; nil if what was read last is in force, and
    /// from an older daemon.
    package var refusal: String?
    /// Forward mode; nil from an older daemon.
    package var forward: Forward?
}

extension AdminStatus.Forward {
    /// - Parameter environment: says where the local authority is, if the configuration does not.
    package init(_ configuration: Configuration, environment: [String: String]) {
        isEnabled = configuration.forward.enabled
        intercepted = configuration.forward.interception.hosts
        let folder = configuration.authorityFolder ?? DefaultAuthority.folder(environment: environment)
        certificate = intercepted.isEmpty ? nil : folder.map { AuthorityFolder($0).certificatePath }
    }
}

/// The answer of `POST /v1/clock`, and `clock` in `GET /v1/status`.
package struct AdminClock: Codable, Sendable, Equatable {
    /// True if the configuration allows to move the clock.
    package var isMovable: Bool
    /// How far the clock is ahead of the system's clock, in seconds.
    package var ahead: Int64
    /// The daemon's time, such as `2026-01-31T12:00:00Z`.
    package var time: String
    /// The daemon's time in seconds since 1970; nil from a daemon that leaves it out.
    package var unixTime: Int64?
}

/// The answer of `POST /v1/reload`.
package struct ReloadResult: Codable, Sendable, Equatable {
    /// True if the new configuration is in force.
    package var isReloaded: Bool
    /// The outcome as a line for the log, such as `ok (3 services, 12 endpoints)`.
    package var summary: String
    /// The errors with their positions, if the old configuration stays in force.
    package var errors: [String] = []
    /// What differs from the configuration before, a line each, if the new one is in force; nil from an older daemon.
    package var changes: [String]?
}
