// The resolved configuration of one daemon: every default applied, every inheritance done, every path absolute.

package import EventLoop
package import Policies

/// The settings of a configuration file, ready to be compiled into a plan.
///
/// Durations are nanoseconds (`UInt64`) except the lifetimes of `cache`, which are whole seconds (`Int64`) as in RFC
/// 9111; sizes are bytes; shares lie in 0...1. Two configurations are equal when they ask for the same thing, wherever
/// in their files they say it.
package struct Configuration: Sendable, Equatable {
    /// Where clients connect. Default: `localhost:8080`, on 127.0.0.1 and ::1. A change needs a restart.
    package var listen: [ListenPoint]
    /// What clients are shown where they speak TLS; nil if they do nowhere.
    package var tls: ListenerTLS?
    /// The absolute path of the local authority's folder; nil for that of ``DefaultAuthority``.
    package var authorityFolder: String?
    /// The admin socket; nil where the daemon uses its user's own (``DefaultAdmin``), without addresses where there is
    /// to be none. A change of its addresses needs a restart.
    package var admin: AdminConfiguration?
    /// Where metrics and the daemon's state are told, and nothing else. Default: nowhere. A change needs a restart.
    package var metrics: [ListenAddress] = []
    /// The number of event loops; nil means one per core. A change needs a restart.
    package var loops: Int?
    /// The name that the file gives the daemon; nil for the one that is made of the machine and of ``listen``.
    /// A change needs a restart.
    package var givenName: String?
    /// Who may connect. Default: loopback only.
    package var clients: [ClientRule]
    /// Host patterns under which services that are matched by their prefix alone answer, unless they name
    /// their own. Default: none.
    package var hosts: [String]
    /// Names whose values logs, the journal and recordings have, although they look like secrets. Default: none.
    package var notSecret: [String]
    /// The memory tier and the disk tier.
    package var cache = TierConfiguration()
    /// Forward mode: absolute-form requests and CONNECT.
    package var forward = ForwardConfiguration()
    /// The bounds on what one client may cost.
    package var limits = LimitsConfiguration()
    /// How long requests under way may take to finish after SIGTERM. Default: 30 s.
    package var shutdown: UInt64
    /// The services in the order of the file; those of included files follow.
    package var services: [ServiceConfiguration] = []
    /// Whether no origin is contacted, and stored responses answer whatever their age. Default: false.
    package var offline: Bool
    /// Whether the daemon's clock may be moved.
    package var clock: ClockConfiguration
    /// The daemon's own log and the access log.
    package var log = LogConfiguration()
    /// The settings of the journal of requests.
    package var journal = JournalConfiguration()
    /// Where the traces of requests are sent.
    package var tracing = TracingConfiguration()
    /// The lists that are downloaded on a schedule.
    package var prefetch: [PrefetchConfiguration] = []
    /// The purges that are made on a schedule.
    package var purge: [PurgeConfiguration] = []
    /// The groups of calls.
    package var groups: [GroupConfiguration] = []
    /// The absolute path of the file of learned latencies; nil: learned latencies are lost when the daemon ends.
    package var learnedLatencies: String?
    /// The rules of each fault profile by its name, presets included; routes that use a profile have its rules already.
    package var faultProfiles: [String: [FaultPolicy]]
    /// The absolute paths of all files that were read, demo files included; `--watch` watches them.
    package var files: [String] = []
    /// The files among ``files`` that answers are made of, such as demo files: a changed one is served without a
    /// reload.
    package var answerFiles: [String] = []
    /// The warnings about settings that are valid but probably not intended, each with its position; not compared by `==`.
    package var warnings: [ConfigurationError] = []
    /// What `drydock check` tells about settings that are meant, and have an effect that may surprise; not compared by
    /// `==`.
    package var notes: [ConfigurationError] = []
    /// The position of each key in the files; not compared by `==`.
    var origin = ConfigurationOrigin()

    /// The pseudonym in Via, Cache-Status and Proxy-Status, which no other daemon in a chain may have.
    package var name: String { givenName ?? DefaultName.made(listen: listen.map(\.address)) }

    /// The name of forward mode among the labels of learned latencies.
    package static let forwardName = "forward"

    /// The labels whose latencies may be learned: services, `SERVICE/ENDPOINT`, and forward mode.
    package var learnableLabels: [String] {
        [Self.forwardName]
            + services.flatMap { service in
                [service.name] + service.endpoints.map { "\(service.name)/\($0.name)" }
            }
    }

    /// The number of endpoints over all services.
    package var endpointCount: Int { services.reduce(0) { $0 + $1.endpoints.count } }

    /// The one line that `drydock check` prints: `ok (3 services, 12 endpoints)`.
    package var summary: String {
        let endpoints = endpointCount
        return
            "ok (\(services.count) service\(services.count == 1 ? "" : "s"), \(endpoints) endpoint\(endpoints == 1 ? "" : "s"))"
    }

    /// The service with this name; nil if there is none.
    package func service(named name: String) -> ServiceConfiguration? {
        services.first { $0.name == name }
    }

    package static func == (left: Configuration, right: Configuration) -> Bool {
        left.listen == right.listen && left.tls == right.tls && left.authorityFolder == right.authorityFolder
            && left.admin == right.admin && left.metrics == right.metrics && left.loops == right.loops
            && left.name == right.name
            && left.clients == right.clients && left.hosts == right.hosts && left.cache == right.cache
            && left.notSecret == right.notSecret
            && left.forward == right.forward
            && left.limits == right.limits && left.shutdown == right.shutdown && left.services == right.services
            && left.offline == right.offline && left.clock == right.clock && left.log == right.log
            && left.journal == right.journal && left.tracing == right.tracing
            && left.learnedLatencies == right.learnedLatencies
            && left.faultProfiles == right.faultProfiles
            && left.prefetch == right.prefetch && left.purge == right.purge && left.groups == right.groups
    }
}

extension KeyTable {
    static let daemonDemo = SectionDescriptor(
        name: "demo",
        keys: [
            KeyDescriptor(
                "enabled",
                .boolean,
                default: "false",
                "Puts every service that has demo answers into demo mode, unless the service sets this itself."
            )
        ]
    )

    static let clock = SectionDescriptor(
        name: "clock",
        keys: [
            KeyDescriptor(
                "movable",
                .boolean,
                default: "false",
                "Whether 'drydock clock' may move the daemon's clock, for tests; a reload with false sets the clock back."
            )
        ]
    )

    package static let root = SectionDescriptor(
        name: "the file",
        keys: [
            KeyDescriptor(
                "listen",
                .oneOrMore(.listener),
                default: "localhost:8080",
                "Where clients connect: ADDRESS:PORT, localhost:PORT (127.0.0.1 and ::1), :PORT (all addresses) or unix:/PATH; https:// before it has TLS, any:// TLS and plain on one port; a change needs a restart."
            ),
            listenerTLSKey,
            authorityKey,
            KeyDescriptor(
                "admin",
                .shorthand(admin, key: "listen"),
                "The admin socket, or just its address; without it a private socket of the user; a change needs a restart."
            ),
            KeyDescriptor(
                "metrics",
                .oneOrMore(.address),
                "Where monitors ask for /metrics, /healthz and /readyz, and get nothing else: ADDRESS:PORT, localhost:PORT, :PORT (all addresses) or unix:/PATH; whoever reaches it may read them; a change needs a restart."
            ),
            KeyDescriptor(
                "loops",
                .word("auto", or: .integer(1...1024)),
                default: "auto",
                "The number of event loops; auto is one per core; a change needs a restart."
            ),
            KeyDescriptor(
                "name",
                .word("auto", or: .text(.token)),
                default: "auto",
                "The daemon's name in Via and Cache-Status; auto is drydock- and eight digits that follow from the machine and listen, so that daemons can be chained; a change needs a restart."
            ),
            KeyDescriptor(
                "clients",
                .list(.client),
                default: "[loopback]",
                "Who may connect: loopback, any, an address or a network such as 192.168.0.0/16."
            ),
            KeyDescriptor(
                "hosts",
                .list(.text(.servedHost)),
                default: "[]",
                "Host names besides localhost under which services with match.prefix answer: a name, *.DOMAIN or an address."
            ),
            KeyDescriptor("cache", .section(tiers), "The memory tier and the disk tier."),
            KeyDescriptor(
                "forward",
                .section(forward),
                "Forward mode: export http_proxy=http://localhost:8080 no_proxy=localhost,127.0.0.1,::1."
            ),
            KeyDescriptor("limits", .section(limits), "Limits for requests, responses and connections."),
            KeyDescriptor(
                "shutdown",
                .duration,
                default: "30s",
                "How long answers under way may continue after SIGTERM."
            ),
            KeyDescriptor("defaults", .section(defaults), "Settings that every service inherits."),
            KeyDescriptor("services", .sections(service), "The services."),
            KeyDescriptor("demo", .section(daemonDemo), "Demo mode for the whole daemon."),
            faultProfilesKey,
            KeyDescriptor(
                "learned_latencies",
                .path,
                "The file that what origins took is kept in, for latency: learned; without it, the daemon forgets it when it ends."
            ),
            KeyDescriptor(
                "offline",
                .boolean,
                default: "false",
                "Whether the daemon asks no origin: stored responses are used whatever their age, and every other request gets a 504."
            ),
            KeyDescriptor("clock", .section(clock), "The clock that freshness lifetimes are counted by."),
            KeyDescriptor("log", .section(log), "The daemon's own log and the access log."),
            KeyDescriptor(
                "journal",
                .shorthand(journal, key: "size"),
                "The journal of requests, for 'drydock journal' and 'drydock verify'; or just its size."
            ),
            KeyDescriptor(
                "tracing",
                .shorthand(tracing, key: "otlp"),
                "The traces of requests, for a collector of OpenTelemetry; or just its URL."
            ),
            KeyDescriptor(
                "not_secret",
                .list(.text(.any)),
                default: "[]",
                "Names whose values log.bodies, the journal and recordings have, although they look like secrets."
            ),
            KeyDescriptor("prefetch", .sections(prefetch), "Lists that the daemon downloads on a schedule."),
            KeyDescriptor("purge", .sections(purge), "What the daemon purges on a schedule."),
            KeyDescriptor("groups", .sections(group), "Groups of calls, for 'drydock run' or on a schedule."),
            KeyDescriptor("include", .list(.path), "Files with more services; * and ? match parts of file names."),
        ],
        hasOwnKeys: true
    )

    /// The keys that an included file may have.
    static let included = SectionDescriptor(
        name: "an included file",
        keys: [KeyDescriptor("services", .sections(service), "More services.")],
        hasOwnKeys: true
    )
}

/// The settings of the clock that freshness lifetimes are counted by.
package struct ClockConfiguration: Sendable, Equatable {
    /// Whether `drydock clock` may move the clock, for tests. Default: false.
    package var movable: Bool
}

extension Configuration {
    private static let defaults = Configuration(SectionReader(nothingOf: KeyTable.root))

    /// The configuration of an empty file.
    package init() { self = .defaults }

    /// Reads the keys of the daemon itself; its sections are read with their checks.
    init(_ reader: SectionReader) {
        listen = reader.scalars("listen").compactMap { if case .listener(let point) = $0 { point } else { nil } }
        authorityFolder = reader.text("ca")
        loops = reader.int("loops")
        givenName = reader.text("name")
        clients = reader.scalars("clients").compactMap { if case .client(let rule) = $0 { rule } else { nil } }
        hosts = reader.texts("hosts")
        notSecret = reader.texts("not_secret")
        shutdown = reader.nanoseconds(always: "shutdown")
        offline = reader.bool("offline")
        clock = ClockConfiguration(movable: reader.section("clock").bool("movable"))
        faultProfiles = FaultPreset.all
    }
}

extension Resolver {
    mutating func configuration() -> Configuration {
        let reader = SectionReader(entries: root, section: KeyTable.root)
        var result = Configuration(reader)
        faultProfiles = profiles(reader)
        result.faultProfiles = faultProfiles
        result.admin = admin(reader, listen: result.listen.map(\.address))
        result.metrics = metrics(reader, result)
        result.tls = tls(reader, listen: result.listen)
        result.cache = tiers(reader.section("cache"))
        result.forward = forward(reader.section("forward"))
        if let position = reader.position("forward"), !broken.contains(position) {
            check(resilience: reader.section("forward"), result.forward)
        }
        result.limits = limits(reader.section("limits"))
        result.log = log(reader.section("log"))
        result.journal = journal(reader.section("journal"))
        result.tracing = TracingConfiguration(reader.section("tracing"))
        result.learnedLatencies = learnedLatencies(reader)
        result.prefetch = prefetches(reader)
        checkListeners(reader, result)
        result.services = resolveServices(reader)
        result.purge = purges(reader, services: result.services.map(\.name))
        result.groups = groups(reader, services: result.services)
        if result.givenName == nil {
            followed.append(("name", Leaf(text: result.name, scalar: .text(result.name))))
        }
        if errors.isEmpty {
            warnOfIdleKeys(reader, result)
            warnOfUnservedURLs(reader, result)
            warnOfShortTimeouts(reader, result)
        }
        (result.warnings, result.notes) = (warnings, notes)
        result.origin = ConfigurationOrigin(file: file, root: root, services: trees, followed: followed)
        return result
    }

    mutating func learnedLatencies(_ reader: SectionReader) -> String? {
        guard let path = reader.text("learned_latencies") else { return nil }
        if let problem = FileChecks.canBeFile(path) {
            fail(position(reader, "learned_latencies"), file: "'learned_latencies' \(problem)")
        }
        return path
    }
}
