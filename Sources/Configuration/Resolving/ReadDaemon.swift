// Reads the daemon's part of the model from its keys. Defaults come from the table of keys alone.

import Policies

extension Configuration {
    private static let defaults = Configuration(SectionReader(nothingOf: KeyTable.root))

    /// The configuration of an empty file.
    package init() { self = .defaults }

    /// The keys of the daemon itself; its sections are read with their checks.
    init(_ reader: SectionReader) {
        listen = reader.scalars("listen").compactMap { if case .address(let address) = $0 { address } else { nil } }
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

extension AdminConfiguration {
    package init(listen: [ListenAddress]) { self.init(listen: listen, SectionReader(nothingOf: KeyTable.admin)) }

    init(listen: [ListenAddress], _ reader: SectionReader) {
        self.listen = listen
        mode = UInt32(reader.int(always: "mode"))
        group = reader.text("group")
    }
}

extension MemoryTierConfiguration {
    package init() { self.init(SectionReader(nothingOf: KeyTable.memoryTier)) }

    init(_ reader: SectionReader) {
        size = reader.bytes(always: "size")
        objects = reader.int(always: "objects")
        maxObject = reader.bytes(always: "max_object")
        pressure = reader.choice(always: "pressure")
    }
}

extension DiskTierConfiguration {
    package init(path: String) { self.init(path: path, SectionReader(nothingOf: KeyTable.diskTier)) }

    init(path: String, _ reader: SectionReader) {
        self.path = path
        size = reader.bytes(always: "size")
        maxObject = reader.bytes(always: "max_object")
        minFree = reader.bytes(always: "min_free")
    }
}

extension ForwardConfiguration {
    package init() { self.init(SectionReader(nothingOf: KeyTable.forward)) }

    init(_ reader: SectionReader) {
        enabled = reader.bool("enabled")
        allow = reader.texts("allow")
        connectAllow = reader.section("connect").texts("allow")
        lenient = reader.bool("lenient")
        ca = reader.section("tls").text("ca")
        tunnelTimeout = reader.section("timeout").nanoseconds("tunnel")
        upstreamProxy = reader.always { $0.proxies("upstream_proxy") }
        retry = RetryPolicy(reader.section("retry"), own: reader.section("retry"))
        breaker = BreakerPolicy(reader.section("breaker"))
        maxConcurrent = reader.int("max_concurrent")
        maxQueue = QueueConfiguration(reader.section("max_queue"))
    }
}

extension LimitsConfiguration {
    package init() { self.init(SectionReader(nothingOf: KeyTable.limits)) }

    init(_ reader: SectionReader) {
        head = reader.bytes(always: "head")
        fields = reader.int(always: "fields")
        field = reader.bytes(always: "field")
        target = reader.bytes(always: "target")
        responseHead = reader.bytes(always: "response_head")
        responseFields = reader.int(always: "response_fields")
        responseLine = reader.bytes(always: "response_line")
        headTimeout = reader.nanoseconds(always: "head_timeout")
        idle = reader.nanoseconds(always: "idle")
        bodyRate = reader.bytes(always: "body_rate")
        connections = reader.int(always: "connections")
        perClient = reader.int(always: "per_client")
    }
}

extension LogConfiguration {
    package init() { self.init(SectionReader(nothingOf: KeyTable.log)) }

    init(_ reader: SectionReader) {
        level = reader.choice(always: "level")
        format = reader.choice(always: "format")
        requestID = reader.bool("request_id")
        access =
            switch reader.text(always: "access") {
            case "stderr": .stderr
            case "off": .off
            case let path where path.hasPrefix("/"): .file(path: path)
            default: .stdout
            }
    }
}

extension JournalConfiguration {
    package init() { self.init(SectionReader(nothingOf: KeyTable.journal)) }

    init(_ reader: SectionReader) {
        size = reader.bytes("size")
        bodies = reader.bytes("bodies")
        redact = reader.texts("redact")
    }
}

extension ScheduleConfiguration {
    package init(every: UInt64) { self.init(every: every, SectionReader(nothingOf: KeyTable.prefetch)) }

    /// - Parameter reader: of whatever is done again and again.
    init(every: UInt64, _ reader: SectionReader) {
        self.every = every
        atStart = reader.bool("at_start")
    }
}

extension PrefetchConfiguration {
    init(name: String, schedule: ScheduleConfiguration, _ reader: SectionReader) {
        self.name = name
        self.schedule = schedule
        urls = reader.texts("urls")
        file = reader.text("file")
        concurrency = reader.int(always: "concurrency")
        onError = reader.choice(always: "on_error")
        force = reader.bool("force")
    }
}

extension PurgeConfiguration {
    package init(schedule: ScheduleConfiguration) {
        self.init(schedule: schedule, SectionReader(nothingOf: KeyTable.purge))
    }

    init(schedule: ScheduleConfiguration, _ reader: SectionReader) {
        self.schedule = schedule
        isSoft = reader.bool("soft")
    }
}
