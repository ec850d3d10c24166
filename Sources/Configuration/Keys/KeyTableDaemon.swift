// The table of keys, first part: the daemon's own.

/// Every key that the file may hold. A key that is not here is an error.
package enum KeyTable {
    static let memoryTier = SectionDescriptor(
        name: "memory",
        keys: [
            KeyDescriptor("size", .size, default: "256MiB", "The limit for all entries of the memory tier, in bytes."),
            KeyDescriptor(
                "objects",
                .integer(1...1_000_000_000),
                default: "100000",
                "The limit for the number of entries in the memory tier."
            ),
            KeyDescriptor("max_object", .size, default: "8MiB", "The largest entry of the memory tier."),
            KeyDescriptor(
                "pressure",
                .choice(MemoryTierConfiguration.Pressure.allCases.map(\.rawValue)),
                default: "shed",
                "What happens while memory is short: shed evicts entries and returns their memory to the kernel, ignore keeps them; a reload can change this key."
            ),
        ]
    )

    static let diskTier = SectionDescriptor(
        name: "disk",
        keys: [
            KeyDescriptor(
                "path",
                .path,
                default: "/var/cache/drydock",
                "The folder of the disk tier: an empty one, one that does not exist yet, or one that Drydock has marked."
            ),
            KeyDescriptor("size", .size, default: "10GiB", "The limit for all files of the disk tier, in bytes."),
            KeyDescriptor("max_object", .size, default: "2GiB", "The largest stored response of the disk tier."),
            KeyDescriptor("min_free", .size, default: "512MiB", "The space that stays free on the file system."),
        ]
    )

    static let tiers = SectionDescriptor(
        name: "cache",
        keys: [
            KeyDescriptor("memory", .section(memoryTier), "The memory tier; a change needs a restart."),
            KeyDescriptor(
                "disk",
                .section(diskTier),
                "The disk tier; without it nothing survives a restart; a change needs a restart."
            ),
        ]
    )

    static let admin = SectionDescriptor(
        name: "admin",
        keys: [
            KeyDescriptor(
                "listen",
                .word("none", or: .oneOrMore(.address)),
                "Where the admin API listens: unix:/PATH or a loopback address; none takes no commands.",
                required: true
            ),
            KeyDescriptor(
                "mode",
                .permissions,
                default: "0660",
                "The permissions of the admin socket if it is a unix socket, in octal."
            ),
            KeyDescriptor("group", .text(.word), "The group of the admin socket if it is a unix socket."),
        ]
    )

    static let connect = SectionDescriptor(
        name: "connect",
        keys: [
            KeyDescriptor(
                "allow",
                .list(.text(.connectPattern)),
                default: "[\"*:443\"]",
                "HOST:PORT patterns that CONNECT, and https URLs in absolute form, may reach; either side may be *."
            )
        ]
    )

    static let forwardTLS = SectionDescriptor(
        name: "tls",
        keys: [
            KeyDescriptor("ca", .path, "A PEM bundle in place of the system's, for https URLs in absolute form.")
        ]
    )

    static let forwardTimeout = SectionDescriptor(
        name: "timeout",
        keys: [
            KeyDescriptor(
                "tunnel",
                .word("none", or: .duration),
                default: "60m",
                "The time without a byte in either direction of a tunnel: of CONNECT, or of a WebSocket."
            )
        ]
    )

    static let forward = SectionDescriptor(
        name: "forward",
        keys: [
            KeyDescriptor(
                "enabled",
                .boolean,
                default: "true",
                "Whether the daemon serves absolute-form requests and CONNECT."
            ),
            KeyDescriptor(
                "allow",
                .list(.text(.targetPattern)),
                default: "[\"*\"]",
                "HOST or HOST:PORT patterns of the targets that clients may reach; loopback, private and link-local hosts need a rule that names them."
            ),
            KeyDescriptor("connect", .section(connect), "Which targets CONNECT, and https URLs, may reach."),
            KeyDescriptor(
                "upstream_proxy",
                .upstreamProxy,
                default: "none",
                "The HTTP proxy that targets are reached through: none, http://[USER:PASSWORD@]HOST:PORT, or env for what http_proxy, https_proxy, all_proxy and no_proxy say."
            ),
            KeyDescriptor("timeout", .section(forwardTimeout), "Timeouts of tunnels."),
            KeyDescriptor("tls", .section(forwardTLS), "TLS towards the origins of https URLs in absolute form."),
            KeyDescriptor(
                "lenient",
                .boolean,
                default: "true",
                "Whether responses that break a rule of HTTP/1.1, but have only one possible meaning, are accepted."
            ),
            KeyDescriptor("retry", .section(retry), "How a fetch that failed is made again."),
            KeyDescriptor(
                "breaker",
                .section(breaker),
                "When an origin that fails is left alone; each origin has its own."
            ),
            KeyDescriptor(
                "max_concurrent",
                .word("none", or: .integer(1...1_000_000)),
                default: "none",
                "How many fetches may be under way at the same time, of all origins together."
            ),
            KeyDescriptor("max_queue", .section(maxQueue), "The queue of fetches that wait for max_concurrent."),
            KeyDescriptor("cache", .section(serviceCache), "How forwarded responses are stored and reused."),
            faultsKey,
        ]
    )

    static let limits = SectionDescriptor(
        name: "limits",
        keys: [
            KeyDescriptor("head", .size, default: "64KiB", "The largest request head."),
            KeyDescriptor(
                "fields",
                .integer(1...10_000),
                default: "100",
                "The highest number of field lines in a request head."
            ),
            KeyDescriptor("field", .size, default: "8KiB", "The longest field line of a request."),
            KeyDescriptor("target", .size, default: "8KiB", "The longest request target."),
            KeyDescriptor("response_head", .size, default: "256KiB", "The largest response head."),
            KeyDescriptor(
                "response_fields",
                .integer(1...10_000),
                default: "1000",
                "The highest number of field lines in a response head."
            ),
            KeyDescriptor("response_line", .size, default: "64KiB", "The longest field line of a response."),
            KeyDescriptor(
                "head_timeout",
                .duration,
                default: "10s",
                "How long a whole request head may take to arrive."
            ),
            KeyDescriptor("idle", .duration, default: "60s", "How long a connection may be idle between requests."),
            KeyDescriptor(
                "body_rate",
                .size,
                default: "1KiB",
                "The lowest transfer rate of a request body, per second; it applies after the first 10 s."
            ),
            KeyDescriptor(
                "connections",
                .integer(1...10_000_000),
                default: "10000",
                "The highest number of client connections in total."
            ),
            KeyDescriptor(
                "per_client",
                .integer(1...10_000_000),
                default: "1000",
                "The highest number of connections from one client address."
            ),
        ]
    )

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

    static let log = SectionDescriptor(
        name: "log",
        keys: [
            KeyDescriptor(
                "level",
                .choice(LogConfiguration.Level.allCases.map(\.rawValue)),
                default: "info",
                "The least severe message of the daemon's own log; debug tells what becomes of each request."
            ),
            KeyDescriptor(
                "access",
                .logTarget,
                default: "stdout",
                "Where the access log is written: stdout, stderr, off or a path."
            ),
            KeyDescriptor(
                "format",
                .choice(LogConfiguration.Format.allCases.map(\.rawValue)),
                default: "auto",
                "The format of the logs: auto is JSON for the access log and text for the daemon's own; json is JSON for both."
            ),
            KeyDescriptor(
                "request_id",
                .boolean,
                default: "true",
                "Whether the ids of requests that JSON and debug lines have go on to origins, in X-Request-Id."
            ),
        ]
    )

    package static let root = SectionDescriptor(
        name: "the file",
        keys: [
            KeyDescriptor(
                "listen",
                .oneOrMore(.address),
                default: "localhost:8080",
                "Where clients connect: ADDRESS:PORT, localhost:PORT (127.0.0.1 and ::1), :PORT (all addresses) or unix:/PATH; a change needs a restart."
            ),
            KeyDescriptor(
                "admin",
                .shorthand(admin, key: "listen"),
                "The admin socket, or just its address; without it a private socket of the user; a change needs a restart."
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
