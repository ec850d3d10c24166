// How the effect of each key of the configuration is observed: in what the daemon makes of it, or by a named scenario.

import Configuration
import Content
import EventLoop
import Glibc
import HTTPWire
import Policies
import Synchronization

@testable import CacheStore
@testable import DiskStore
@testable import DownloadCore
@testable import DrydockDaemon
@testable import ProxyServer
@testable import ServiceCore

/// Where a change of a key is seen.
enum KeyEffect: Sendable {
    /// In what applies to a request: of the endpoint, the service or forward mode, whichever the key stands in.
    case request(@Sendable (RequestPlan) -> String)
    /// In the compiled service.
    case route(@Sendable (ServiceRoute) -> String)
    /// In the demo answers of the compiled service, which are switched on for it.
    case demo
    /// In the compiled plan as a whole.
    case plan(@Sendable (RoutePlan) -> String)
    /// In the bounds that connections keep.
    case settings(@Sendable (ServerSettings) -> String)
    /// In the parts of a daemon that has started; the key has this value then, in which `FOLDER` is a
    /// folder of the test's own.
    case daemon(_ value: String? = nil, @Sendable (Daemon) -> String)
    /// By a scenario, `SUITE/FUNCTION` in Tests/ScenarioTests.
    case scenario(String)
}

extension KeyEffect {
    private static let policy = KeyEffect.request { "\($0.policy)" }
    private static let recording = KeyEffect.request { plan in
        plan.recording.map { "\($0.source) \($0.rules) \($0.folder.path)" } ?? "live"
    }
    private static let seed = KeyEffect.request { "\($0.seed.map { "\($0.path) \($0.mode) \($0.layout)" } ?? "none")" }
    private static let schedule = KeyEffect.daemon { daemon in
        let plans = daemon.schedules.plans(daemon.context.configuration)
        return "\(plans.map { "\($0.identity) \($0.every) \($0.atStart)" })"
    }

    private static let other = Authority(host: "other")

    private static func forwarded(_ part: @escaping @Sendable (ServicePlan) -> String) -> KeyEffect {
        .plan { $0.forward.map { part($0.route.plan) } ?? "none" }
    }

    private static func standIn(_ of: @escaping @Sendable (PhasePlan) -> SubstituteResponse?) -> KeyEffect {
        .request { plan in
            let standIn = plan.phases.flatMap(of)
            return "\(standIn?.path ?? "none") \(standIn?.status ?? 0)"
        }
    }

    /// Under `cache` of services, endpoints and forward mode.
    private static let cache: [String: KeyEffect] = [
        "mode": policy, "ttl": policy, "ttl_by_status": policy, "override_origin": policy, "revalidate": policy,
        "compare": policy, "check_pause": policy, "gone": policy, "stale_while_revalidate": policy,
        "stale_if_error": policy, "other_variant": policy, "max_variants": policy, "memory": policy, "disk": policy,
        "set_cookie": policy, "cookies": policy, "min_length": policy,
        "methods": .request { "\($0.storesGet) \($0.storesPost)" },
        "key.ignore_query": .request { "\($0.key)" },
        "key.fields": .request { "\($0.key)" },
        "collapse.wait": .request { "\($0.collapse)" },
        "collapse.waiters": .request { "\($0.collapse)" },
        "seed_dir": seed, "seed_mode": seed, "seed_layout": seed,
        "on_client_abort": .request { "\($0.onClientAbort)" },
        "placeholder.file": standIn(\.placeholder),
        "placeholder.status": standIn(\.placeholder),
        "placeholder.after": .request { "\($0.phases?.placeholderDelay ?? 0)" },
        "fallback.file": standIn(\.fallback),
        "fallback.status": standIn(\.fallback),
    ]

    /// Of services and of endpoints.
    private static let shared: [String: KeyEffect] = [
        "headers.set": .request { "\($0.rules)" },
        "headers.add": .request { "\($0.rules)" },
        "headers.remove": .request { "\($0.rules)" },
        "headers.underscore": .request { "\($0.rules)" },
        "query": .request { "\($0.query)" },
        "timeout.connect": .request { "\($0.timeouts)" },
        "timeout.first_byte": .request { "\($0.timeouts)" },
        "timeout.idle": .request { "\($0.timeouts)" },
        "timeout.total": .request { "\($0.timeouts)" },
        "timeout.tunnel": .request { "\($0.timeouts)" },
        "response.expect": .request { "\($0.phases?.expect ?? .anything)" },
        "response.type": .request { "\($0.phases?.types?.description ?? "any") \($0.policy)" },
        "response.success": policy,
        "log.bodies": .request { "\($0.policies.logBodies ?? 0)" },
        "from": .request { "\($0.sources)" },
        "source": recording, "recordings.dir": recording, "recordings.match.fields": recording,
        "recordings.match.body": recording, "recordings.match.credentials": recording,
        "recordings.match.vary": recording, "recordings.match.ignore_query": recording,
        "recordings.redact.fields": recording, "recordings.redact.query": recording,
        "recordings.redact.json": recording, "recordings.max_size": recording, "recordings.on_failure": recording,
        "redirects.mode": .request { "\($0.policies.redirects)" },
        "redirects.follow": .request { "\($0.policies.redirects)" },
        "redirects.allow": .request { "\($0.policies.redirects)" },
        "response.map": .request { "\($0.policy)" },
        "error.map": .request { "\($0.errorMapping.map { "\($0)" } ?? "none") \($0.policy)" },
        "response.map_buffer": .request { "\($0.mapping?.buffer ?? 0)" },
        "demo.enabled": demo, "demo.files": demo, "demo.file": demo, "demo.status": demo, "demo.headers": demo,
        "demo.failure.chance": demo, "demo.failure.status": demo, "demo.failure.file": demo,
        "demo.body": demo, "demo.json": demo, "demo.template": demo, "demo.failure.body": demo,
        "demo.failure.json": demo, "demo.failure.template": demo,
        "demo.random_seed": demo, "demo.unmatched": demo, "demo.body_limit": demo, "demo.overrides": demo,
        "rate_limit.limit": quota, "rate_limit.window": quota, "rate_limit.status": quota, "rate_limit.count": quota,
        "rate_limit.by": quota,
    ].merging(faults) { $1 }.merging(misbehaviour.map { ("demo.misbehave[].\($0)", demo) }) { $1 }
        .merging(events.map { ("demo.events.\($0)", demo) }) { $1 }
        .merging(latencies.map { ("demo.\($0)", demo) }) { $1 }
        .merging(ofSeveral.map { ("demo.\($0)", demo) }) { $1 }
        .merging(ofRules.map { ("demo.rules[].\($0)", demo) }) { $1 }
        .merging(retry.map { ("retry.\($0)", $1) }) { $1 }.merging(cache.map { ("cache.\($0)", $1) }) { $1 }

    /// Of the rules of demo mode.
    private static let ofRules: [String] = [
        ["name", "status", "headers", "files", "random_seed"], latencies, contents, below("failure", contents),
        below("failure", ["chance", "status"]), ofSeveral, below("misbehave[]", misbehaviour), below("events", events),
        below("when", ["method", "query", "only_query", "fields", "cookies", "nth", "first", "every"]),
        below("when.path", tests),
        below("when.path.not", tests), below("when.body", ["is", "contains", "json", "form"]),
        below("when.body.text", tests), below("when.body.text.not", tests),
        below("state", ["scenario", "is", "then"]),
        below("outage", ["after", "for", "every", "after_requests", "for_requests"]),
    ].flatMap { $0 }
    private static let ofSeveral: [String] = [
        ["after", "count"], below("sequence[]", ["status", "headers"] + contents),
        below("answers[]", ["weight", "status", "headers"] + contents),
    ].flatMap { $0 }
    private static let misbehaviour = ["kind", "date", "age", "chance", "every"]
    private static let events = ["list[].id", "list[].event", "list[].data", "list[].retry", "file", "every", "repeat"]
    private static let contents = ["file", "body", "json", "template"]
    private static func below(_ section: String, _ keys: [String]) -> [String] { keys.map { "\(section).\($0)" } }
    private static let tests = ["is", "contains", "matches", "one_of", "present"]

    private static let latencies = below(
        "latency",
        [
            "range", "normal.mean", "normal.deviation", "lognormal.median", "lognormal.p99", "percentiles",
            "learned.of",
            "learned.times", "learned.otherwise", "max",
        ]
    )

    private static let quota = KeyEffect.request { "\(String(describing: $0.policies.rateLimit))" }

    /// Of services, endpoints and forward mode.
    private static let faults = Dictionary(
        uniqueKeysWithValues: (latencies + [
            "profile", "name", "chance", "at", "origin", "first", "every", "status", "retry_after", "file",
            "fault.kind",
            "fault.reset.after", "fault.close.after",
            "fault.bad_chunk.after", "fault.stalled_head.for", "fault.stalled_body.after", "fault.stalled_body.for",
            "fault.slow_close.for",
            "fault.garbage.after", "fault.wrong_length.by", "pace", "dribble.chunks", "dribble.over", "random_seed",
        ]).map { ("faults[].\($0)", KeyEffect.request { "\(String(describing: $0.faults))" }) }
    )

    private static let retry = Dictionary(
        uniqueKeysWithValues: [
            "count", "preset", "delay", "backoff", "max_delay", "jitter", "when", "retry_after", "methods", "budget",
        ].map { ($0, KeyEffect.request { "\($0.policies.retry)" }) }
    )

    /// Of services alone.
    private static let ofServices: [String: KeyEffect] = [
        "name": .route { $0.plan.name },
        "match.prefix": .route { "\($0.prefix)" },
        "match.host": .route { "\($0.host ?? "none")" },
        "hosts": .route { "\($0.hosts)" },
        "base_url": .route { "\($0.address)" },
        "host": .route { "\($0.plan.preservesHost)" },
        "auth.bearer": .route { "\($0.plan.authorization ?? "none")" },
        "auth.basic.user": .route { "\($0.plan.authorization ?? "none")" },
        "auth.basic.password": .route { "\($0.plan.authorization ?? "none")" },
        "max_concurrent": .route { "\($0.plan.admission)" },
        "max_queue.length": .route { "\($0.plan.admission)" },
        "max_queue.wait": .route { "\($0.plan.admission)" },
        "breaker.failures": .route { "\(String(describing: $0.plan.breaker))" },
        "breaker.window": .route { "\(String(describing: $0.plan.breaker))" },
        "breaker.open": .route { "\(String(describing: $0.plan.breaker))" },
        "openapi.file": .route { "\(String(describing: $0.plan.examination))" },
        "openapi.validate": .route { "\(String(describing: $0.plan.examination))" },
        "openapi.body_limit": .route { "\(String(describing: $0.plan.examination))" },
        "park.time": .route { "\(String(describing: $0.plan.park))" },
        "park.calls": .route { "\(String(describing: $0.plan.park))" },
        "park.size": .route { "\(String(describing: $0.plan.park))" },
        "upstream_proxy": .route { "\($0.plan.proxies)" },
        "tls.verify": .route { "\($0.plan.tls)" },
        "tls.ca": .route { "\($0.plan.tls)" },
        "tls.client_cert": .route { "\($0.plan.tls)" },
        "tls.client_key": .route { "\($0.plan.tls)" },
        "tls.pin": .route { "\($0.plan.tls)" },
        "lenient": .route { "\($0.plan.isLenient)" },
        "cors.origins": .route { "\($0.cors)" }, "cors.expose": .route { "\($0.cors)" },
        "cors.credentials": .route { "\($0.cors)" }, "cors.private_network": .route { "\($0.cors)" },
        "demo.crud.file": demo, "demo.crud.id": demo, "demo.crud.new_ids": demo,
        "unlisted": .route { "\($0.itself.isUnlisted)" },
    ]

    /// What services do not inherit.
    private static let ofOneService: Set<String> = [
        "name", "match.prefix", "match.host", "base_url", "hosts", "openapi.file", "openapi.validate",
        "openapi.body_limit",
    ]

    private static let ofAccessRules: [String: KeyEffect] = [
        "name": .route { "\($0.access)" }, "method": .route { "\($0.access)" },
        "path": .route { "\($0.access)" }, "fields": .route { "\($0.access)" },
    ]

    private static let ofEndpoints: [String: KeyEffect] = [
        "demo.rules[].when.params": demo,
        "name": .route { "\($0.plan.endpoints.map(\.name))" },
        "path": .route { "\($0.plan.endpoints.map(\.pattern))" },
        "method": .route { "\($0.plan.endpoints.map(\.method))" },
        "cache.store_as": .request { "\($0.storeAs ?? "none")" },
        "auth.mode": .request { "\($0.withholdsAuthorization)" },
        "auth.bearer": .request { "\($0.authorization ?? "none")" },
        "auth.basic.user": .request { "\($0.authorization ?? "none")" },
        "auth.basic.password": .request { "\($0.authorization ?? "none")" },
    ].merging(shaping) { $1 }

    private static let shaping = Dictionary(
        uniqueKeysWithValues: [
            "to", "params", "params_in", "params_as.arrays", "params_as.booleans", "params_as.order", "body.encode",
            "body.defaults", "body.strip_nulls", "body.keys", "body.dates.members", "body.dates.as", "body.data",
            "body.max", "body.upload.name", "body.upload.filename", "body.upload.type", "body.files[].name",
            "body.files[].file", "body.files[].filename", "body.files[].type",
        ].map {
            (
                $0,
                KeyEffect.request { plan in
                    guard let shape = plan.shape else { return "none" }
                    let body = String(describing: shape.body)
                    return
                        "\(shape.to?.description ?? "") \(shape.parameters) \(shape.placement) \(shape.style) \(body)"
                }
            )
        }
    )

    private static let ofTheDaemon: [String: KeyEffect] = [
        "listen": .daemon("\"unix:FOLDER/proxy.sock\"") { daemon in
            "\(daemon.addresses.map { $0.hasPrefix("127.0.0.1:") ? "a port" : $0 })"
        },
        "metrics": .daemon("\"unix:FOLDER/metrics.sock\"") { "\($0.context.server?.addresses(.metrics) ?? [])" },
        "admin.listen": .daemon("\"unix:FOLDER/other.sock\"") { "\($0.context.server?.addresses(.admin) ?? [])" },
        "admin.mode": .daemon { "\($0.adminSocket.st_mode)" },
        // Only root gives a file to a group that it is not in.
        "admin.group": geteuid() == 0
            ? .daemon("daemon") { "\($0.adminSocket.st_gid)" } : .scenario("StartErrors/groups"),
        "loops": .daemon("3") { "\($0.context.parts.loops.loops.count)" },
        "name": .plan { $0.name },
        "clients": .settings { "\($0.clients)" },
        "hosts": .plan { "\($0.hasHost("other"))" },
        "not_secret": .plan { "\($0.contents.shown)" },
        "cache.memory.size": .daemon { "\($0.context.parts.core.memory.statistics.limit)" },
        "cache.memory.objects": .daemon { "\($0.context.parts.core.memory.objects)" },
        "cache.memory.max_object": .daemon { "\($0.context.parts.core.context.memoryMaxObject)" },
        "cache.memory.pressure": .scenario("MemoryPressure/itCanBeIgnored"),
        "cache.disk.path": .daemon { "\($0.context.parts.diskTier?.parts.folder.path ?? "none")" },
        "cache.disk.size": .daemon { "\($0.context.parts.core.store.statistics[.disk]?.limit ?? 0)" },
        "cache.disk.max_object": .daemon { "\($0.context.parts.core.context.diskMaxObject)" },
        "cache.disk.min_free": .daemon { "\($0.context.parts.diskTier?.parts.limits.minFree ?? 0)" },
        "forward.enabled": .plan { "\($0.forward == nil)" },
        "forward.allow": .plan { "\(String(describing: $0.forward?.verdict(host: "a.example", port: 80)))" },
        "forward.connect.allow": .plan { plan in
            let authority = Authority(host: "a.example", port: 22)
            return "\(String(describing: plan.forward?.verdict(connect: authority)))"
        },
        "forward.intercept.hosts": .plan { "\(String(describing: $0.forward?.interception.ruling(on: other)))" },
        "forward.intercept.except": .plan { "\(String(describing: $0.forward?.interception.ruling(on: other)))" },
        "forward.intercept.on_distrust": .scenario("Interception/aClientThatDoesNotTrustTheAuthorityIsLeftAlone"),
        "forward.upstream_proxy": .plan { "\(String(describing: $0.forward?.route.plan.proxies))" },
        "forward.breaker.failures": forwarded { "\(String(describing: $0.breaker))" },
        "forward.breaker.window": forwarded { "\(String(describing: $0.breaker))" },
        "forward.breaker.open": forwarded { "\(String(describing: $0.breaker))" },
        "forward.max_concurrent": forwarded { "\($0.admission)" },
        "forward.max_queue.length": forwarded { "\($0.admission)" },
        "forward.max_queue.wait": forwarded { "\($0.admission)" },
        "forward.timeout.tunnel": forwarded { "\($0.request.timeouts)" },
        "forward.tls.ca": .plan { "\(String(describing: $0.forward?.route.plan.tls))" },
        "forward.lenient": .plan { "\(String(describing: $0.forward?.route.plan.isLenient))" },
        "limits.head": .settings { "\($0.head)" },
        "limits.fields": .settings { "\($0.head)" },
        "limits.field": .settings { "\($0.head)" },
        "limits.target": .settings { "\($0.head)" },
        "limits.response_head": .route { "\($0.plan.responseLimits)" },
        "limits.response_fields": .route { "\($0.plan.responseLimits)" },
        "limits.response_line": .route { "\($0.plan.responseLimits)" },
        "limits.head_timeout": .settings { "\($0.headTimeout)" },
        "limits.idle": .settings { "\($0.idle)" },
        "limits.body_rate": .settings { "\($0.bodyRate)" },
        "limits.connections": .settings { "\($0.connections)" },
        "limits.per_client": .settings { "\($0.perClient)" },
        "shutdown": .scenario("Lifecycle/drainingEndsAtItsDeadline"),
        "demo.enabled": demo,
        "fault_profiles": .scenario("Faults/profiles"),
        "learned_latencies": .scenario("LearnedLatency/whatAnOriginTookIsPlayedAlsoByTheNextDaemon"),
        "offline": .daemon { "\($0.context.parts.core.isOffline)" },
        "clock.movable": .scenario("Clock/withoutLeaveItStays"),
        "log.level": .daemon { "\($0.context.parts.logSettings.level(of: .daemon))" },
        "log.modules": .daemon { "\($0.context.parts.logSettings.inForce.modules)" },
        "log.access": .daemon("\"FOLDER/access.log\"") { "\(access($0.ownFolder + "/access.log", F_OK) == 0)" },
        "log.format": .daemon { "\($0.context.parts.logSettings.isJSON)" },
        "journal.size": .daemon { "\($0.context.parts.journal.settings)" },
        "journal.bodies": .daemon("1KiB") { "\($0.context.parts.journal.settings)" },
        "journal.redact": .daemon { "\($0.context.parts.journal.settings)" },
        "tracing.otlp": .daemon { "\($0.context.parts.spans.settings)" },
        "tracing.sample": .daemon { "\($0.context.parts.spans.settings)" },
        "log.request_id": .daemon { "\($0.context.parts.sink.passesIDs)" },
        "prefetch[].name": schedule, "prefetch[].urls": schedule, "prefetch[].file": schedule,
        "prefetch[].every": schedule, "prefetch[].at_start": schedule, "prefetch[].concurrency": schedule,
        "prefetch[].on_error": schedule, "prefetch[].force": schedule,
        "purge[].older_than": schedule, "purge[].tag": schedule, "purge[].prefix": schedule, "purge[].glob": schedule,
        "purge[].service": schedule, "purge[].soft": schedule, "purge[].every": schedule, "purge[].at_start": schedule,
        "groups[].name": schedule, "groups[].mode": schedule, "groups[].on_error": schedule,
        "groups[].every": schedule, "groups[].at_start": schedule, "groups[].calls[].service": schedule,
        "groups[].calls[].endpoint": schedule, "groups[].calls[].params": schedule, "groups[].calls[].path": schedule,
        "groups[].calls[].method": schedule, "groups[].calls[].query": schedule,
        "groups[].calls[].headers": schedule, "groups[].calls[].body": schedule, "groups[].calls[].take": schedule,
        "groups[].calls[].when.value": schedule, "groups[].calls[].when.is": schedule,
        "groups[].calls[].when.is_not": schedule,
        "ca": .scenario("HTTPS/namesThatTheDaemonAnswersForHaveCertificates"),
        "tls[].authority": .scenario("HTTPS/namesThatTheDaemonAnswersForHaveCertificates"),
        "tls[].certificate": .scenario("HTTPS/changedCertificatesAreTakenUpAndBrokenOnesAreNot"),
        "tls[].key": .scenario("HTTPS/changedCertificatesAreTakenUpAndBrokenOnesAreNot"),
        "tls[].clients.ca": .scenario("HTTPS/eachNameHasItsCertificateAndClientsShowTheirs"),
        "tls[].clients.require": .scenario("HTTPS/certificatesOfClientsMayBeLeftToThem"),
        "include": .plan { "\($0.services.map(\.plan.name))" },
    ]

    /// By the key's whole name. `defaults` has the keys of services that are handed on.
    static let all: [String: KeyEffect] = {
        var all = ofTheDaemon
        func add(_ effects: [String: KeyEffect], below section: String, but left: Set<String> = []) {
            for (key, effect) in effects where !left.contains(key) { all["\(section).\(key)"] = effect }
        }
        add(cache, below: "forward.cache")
        add(retry, below: "forward.retry")
        add(faults, below: "forward")
        add(ofServices, below: "services[]")
        for list in ["allow[]", "deny[]"] { add(ofAccessRules, below: "services[].\(list)") }
        add(shared, below: "services[]")
        add(shared, below: "services[].endpoints[]")
        add(ofEndpoints, below: "services[].endpoints[]")
        add(shared, below: "defaults")
        add(ofServices, below: "defaults", but: ofOneService)
        return all
    }()
}

extension Daemon {
    /// The folder of its configuration file.
    fileprivate var ownFolder: String {
        let file = context.configuration.files.first ?? ""
        return String(file.prefix(upTo: file.lastIndex(of: "/") ?? file.startIndex))
    }

    /// Of the socket under `admin.listen`.
    fileprivate var adminSocket: stat {
        var status = stat()
        for case .unix(let path) in context.configuration.admin?.listen ?? [] { stat(path, &status) }
        return status
    }
}

extension DaemonParts {
    fileprivate var diskTier: DiskTier? { core.context.store.tiers.lazy.compactMap { $0 as? DiskTier }.first }
}
