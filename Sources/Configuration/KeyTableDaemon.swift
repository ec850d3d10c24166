// The table of keys, first part: the daemon's own.

/// Every key that the file may hold. A key that is not here is an error.
enum KeyTable {
    static let memoryTier = SectionDescriptor(
        name: "memory",
        keys: [
            KeyDescriptor("size", .size, default: "256MiB", "Bytes over all entries of the memory tier."),
            KeyDescriptor("objects", .integer(1...1_000_000_000), default: "100000", "Entries of the memory tier."),
            KeyDescriptor("max_object", .size, default: "8MiB", "The largest entry of the memory tier."),
            KeyDescriptor(
                "pressure",
                .choice(MemoryTierConfiguration.Pressure.allCases.map(\.rawValue)),
                default: "shed",
                "While memory is short: shed gives entries back to the kernel, ignore keeps them; a reload changes it."
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
                "The folder of the disk tier."
            ),
            KeyDescriptor("size", .size, default: "10GiB", "Bytes over all files of the disk tier."),
            KeyDescriptor("max_object", .size, default: "2GiB", "The largest stored response of the disk tier."),
            KeyDescriptor("min_free", .size, default: "512MiB", "Bytes that stay free on the file system."),
        ]
    )

    static let tiers = SectionDescriptor(
        name: "cache",
        keys: [
            KeyDescriptor("memory", .section(memoryTier), "The memory tier; a change needs a restart."),
            KeyDescriptor(
                "disk",
                .section(diskTier),
                "The disk tier; without it nothing is kept over a restart; a change needs a restart."
            ),
        ]
    )

    static let admin = SectionDescriptor(
        name: "admin",
        keys: [
            KeyDescriptor(
                "listen",
                .oneOrMore(.address),
                "Where the admin API listens: unix:/PATH or a loopback address.",
                required: true
            ),
            KeyDescriptor("mode", .permissions, default: "0660", "Permissions of the admin's unix socket, in octal."),
            KeyDescriptor("group", .text(.word), "The group that owns the admin's unix socket."),
        ]
    )

    static let connect = SectionDescriptor(
        name: "connect",
        keys: [
            KeyDescriptor(
                "allow",
                .list(.text(.connectPattern)),
                default: "[\"*:443\"]",
                "HOST:PORT patterns that CONNECT may reach; either side may be *."
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
                "Whether absolute-form requests and CONNECT are served."
            ),
            KeyDescriptor(
                "allow",
                .list(.text(.hostPattern)),
                default: "[\"*\"]",
                "Hosts that may be reached; loopback, private and link-local ones only when named."
            ),
            KeyDescriptor("connect", .section(connect), "Which targets CONNECT may reach."),
            KeyDescriptor("cache", .section(serviceCache), "How forwarded responses are stored and reused."),
        ]
    )

    static let limits = SectionDescriptor(
        name: "limits",
        keys: [
            KeyDescriptor("head", .size, default: "64KiB", "The largest request or response head."),
            KeyDescriptor("fields", .integer(1...10_000), default: "100", "Field lines of a head."),
            KeyDescriptor("field", .size, default: "8KiB", "The longest field line."),
            KeyDescriptor("target", .size, default: "8KiB", "The longest request target."),
            KeyDescriptor("head_timeout", .duration, default: "10s", "How long a whole head may take."),
            KeyDescriptor("idle", .duration, default: "60s", "How long a connection may rest between requests."),
            KeyDescriptor(
                "body_rate",
                .size,
                default: "1KiB",
                "The least rate of a request body, per second, after a grace of 10 s."
            ),
            KeyDescriptor("connections", .integer(1...10_000_000), default: "10000", "Client connections in all."),
            KeyDescriptor(
                "per_client",
                .integer(1...10_000_000),
                default: "1000",
                "Connections of one client address."
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
                "Puts every service that has demo answers in demo mode, unless it says otherwise itself."
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
                "Whether drydock clock may move the daemon's clock, for tests; a reload with false sets it back."
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
                "The least severe message of the daemon's own log."
            ),
            KeyDescriptor(
                "access",
                .logTarget,
                default: "stdout",
                "Where access log lines go: stdout, stderr, off or a path."
            ),
            KeyDescriptor(
                "format",
                .choice(LogConfiguration.Format.allCases.map(\.rawValue)),
                default: "json",
                "How an access log line looks."
            ),
        ]
    )

    static let root = SectionDescriptor(
        name: "the file",
        keys: [
            KeyDescriptor(
                "listen",
                .oneOrMore(.address),
                default: "localhost:8080",
                "Where clients connect: ADDRESS:PORT, localhost:PORT (127.0.0.1 and ::1) or unix:/PATH; a change needs a restart."
            ),
            KeyDescriptor(
                "admin",
                .shorthand(admin, key: "listen"),
                "The admin socket; or just its address; a change needs a restart."
            ),
            KeyDescriptor(
                "loops",
                .word("auto", or: .integer(1...1024)),
                default: "auto",
                "Event loops; auto is one per core; a change needs a restart."
            ),
            KeyDescriptor(
                "name",
                .text(.token),
                default: "drydock",
                "The name in Via and Cache-Status; a change needs a restart."
            ),
            KeyDescriptor(
                "clients",
                .list(.client),
                default: "[loopback]",
                "Who may connect: loopback, any, an address or a network such as 192.168.0.0/16."
            ),
            KeyDescriptor("cache", .section(tiers), "The memory tier and the disk tier."),
            KeyDescriptor("forward", .section(forward), "Forward mode: export http_proxy=http://127.0.0.1:8080."),
            KeyDescriptor("limits", .section(limits), "Bounds on what one client may cost."),
            KeyDescriptor("shutdown", .duration, default: "30s", "How long requests under way may take after SIGTERM."),
            KeyDescriptor("defaults", .section(defaults), "What every service inherits."),
            KeyDescriptor("services", .sections(service), "The services."),
            KeyDescriptor("demo", .section(daemonDemo), "Demo mode for the whole daemon."),
            KeyDescriptor(
                "offline",
                .boolean,
                default: "false",
                "Whether origins are left alone: what is stored answers whatever its age, everything else is 504."
            ),
            KeyDescriptor("clock", .section(clock), "The clock of lifetimes."),
            KeyDescriptor("log", .section(log), "The daemon's own log and the access log."),
            KeyDescriptor("prefetch", .sections(prefetch), "Batches that the daemon downloads on a schedule."),
            KeyDescriptor("purge", .sections(purge), "What the daemon purges on a schedule."),
            KeyDescriptor("include", .list(.path), "Files with more services; * and ? match names."),
        ]
    )

    /// What an included file may hold.
    static let included = SectionDescriptor(
        name: "an included file",
        keys: [KeyDescriptor("services", .sections(service), "More services.")]
    )
}
