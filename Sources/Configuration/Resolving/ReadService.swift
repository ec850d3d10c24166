// Reads services, endpoints and their shared parts from their keys. Defaults come from the table of keys alone.

import Content
import HTTPCaching
import Policies
import Upstream

extension ServiceConfiguration {
    package init(name: String, match: ServiceMatch, baseURL: BaseURL?) {
        self.init(name: name, match: match, baseURL: baseURL, SectionReader(nothingOf: KeyTable.service))
    }

    init(name: String, match: ServiceMatch, baseURL: BaseURL?, _ reader: SectionReader) {
        self.name = name
        self.match = match
        self.baseURL = baseURL
        host = reader.choice(always: "host")
        settings = RouteSettings(reader)
        maxConcurrent = reader.int("max_concurrent")
        maxQueue = QueueConfiguration(reader.section("max_queue"))
        breaker = BreakerPolicy(reader.section("breaker"))
        park = ParkPolicy(reader.section("park"))
        upstreamProxy = reader.always { $0.proxies("upstream_proxy") }
        lenient = reader.bool("lenient")
        cors = CORSConfiguration(reader.section("cors"))
        unlisted = reader.choice(always: "unlisted")
    }
}

extension RouteSettings {
    package init() { self.init(SectionReader(nothingOf: KeyTable.endpoint)) }

    /// - Parameter reader: of a service or an endpoint.
    init(_ reader: SectionReader) {
        policies = RoutePolicies()
        timeout = Timeouts(reader.section("timeout"))
        expect = reader.section("response").choice(always: "expect")
        types = ExpectedTypes(reader.section("response").texts("type"))
        success = StatusSet(reader.section("response"))
        policies.retry = RetryPolicy(reader.section("retry"))
        policies.redirects = RedirectPolicy(reader.section("redirects"))
        policies.logBodies = reader.section("log").bytes("bodies")
    }
}

extension QueueConfiguration {
    package init() { self.init(SectionReader(nothingOf: KeyTable.maxQueue)) }

    init(_ reader: SectionReader) {
        length = reader.int(always: "length")
        wait = reader.nanoseconds(always: "wait")
    }
}

extension RetryPolicy {
    /// What the file says, then what its preset says, and then the table of keys.
    /// - Parameter own: the section without what it inherited: a preset wins over what it inherits.
    init(_ reader: SectionReader, own: SectionReader? = nil) {
        self.init(
            count: reader.int(always: "count"),
            delay: reader.nanoseconds(always: "delay"),
            backoff: reader.int(always: "backoff"),
            jitter: reader.always { $0.share("jitter") },
            causes: Set(reader.texts("when").compactMap { RetryCause($0) }),
            maxRetryAfter: reader.nanoseconds(always: "retry_after"),
            methods: reader.choice(always: "methods"),
            budget: reader.always { $0.share("budget") }
        )
        guard let preset = reader.text("preset").flatMap({ RetryPreset(rawValue: $0) })?.policy else { return }
        let beside = own.flatMap { $0.entry("preset") == nil ? nil : $0 } ?? reader
        if beside.entry("delay") == nil { delay = preset.delay }
        if beside.entry("backoff") == nil { backoff = preset.backoff }
        if beside.entry("jitter") == nil { jitter = preset.jitter }
        if beside.entry("when") == nil { causes = preset.causes }
        if beside.entry("methods") == nil { methods = preset.methods }
        if beside.entry("budget") == nil { budget = preset.budget }
    }
}

extension StatusSet {
    /// Nil where it has what the table of keys says.
    fileprivate init?(_ reader: SectionReader) {
        let usual = SectionReader(nothingOf: KeyTable.response).texts("success").compactMap(Self.range)
        let ranges = reader.texts("success").compactMap(Self.range)
        if ranges == usual { return nil }
        self.init(ranges)
    }
}

extension BreakerPolicy {
    /// Nil where no number of failures opens it.
    init?(_ reader: SectionReader) {
        guard let failures = reader.int("failures") else { return nil }
        self.init(
            failures: failures,
            window: reader.nanoseconds(always: "window"),
            open: reader.nanoseconds(always: "open")
        )
    }
}

extension HeaderRules {
    private static let defaults = HeaderRules(SectionReader(nothingOf: KeyTable.headers))

    package init() { self = .defaults }

    init(_ reader: SectionReader) {
        set = reader.headerValues("set")
        add = reader.headerValues("add")
        remove = reader.texts("remove")
        underscore = reader.choice(always: "underscore")
    }
}

extension Timeouts {
    init(_ reader: SectionReader) {
        self.init(
            connect: reader.nanoseconds("connect"),
            firstByte: reader.nanoseconds("first_byte"),
            idle: reader.nanoseconds("idle"),
            total: reader.nanoseconds("total"),
            tunnel: reader.nanoseconds("tunnel")
        )
    }
}

extension TLSConfiguration {
    package init() { self.init(SectionReader(nothingOf: KeyTable.tls)) }

    init(_ reader: SectionReader) {
        verify = reader.bool("verify")
        ca = reader.text("ca")
        clientCert = reader.text("client_cert")
        clientKey = reader.text("client_key")
        pins = reader.texts("pin")
    }
}

extension EndpointConfiguration {
    package init(name: String, path: EndpointPath) {
        self.init(name: name, path: path, SectionReader(nothingOf: KeyTable.endpoint))
    }

    init(name: String, path: EndpointPath, _ reader: SectionReader) {
        self.name = name
        self.path = path
        method = reader.text(always: "method")
        settings = RouteSettings(reader)
    }
}

extension CacheConfiguration {
    private static let defaults = CacheConfiguration(SectionReader(nothingOf: KeyTable.serviceCache))

    package init() { self = .defaults }

    init(_ reader: SectionReader) {
        mode = reader.choice(always: "mode")
        ttl = reader.seconds("ttl")
        for entry in reader.map("ttl_by_status") {
            guard let status = Int(entry.key), case .leaf(let leaf) = entry.value.content,
                case .nanoseconds(let nanoseconds) = leaf.scalar
            else { continue }
            ttlByStatus[status] = Int64(nanoseconds / 1_000_000_000)
        }
        overrideOrigin = reader.bool("override_origin")
        revalidate = reader.choice(always: "revalidate")
        compare = reader.texts("compare").compactMap(CompareRule.init)
        checkPause = reader.seconds(always: "check_pause")
        gone = reader.choice(always: "gone")
        staleWhileRevalidate = reader.seconds(always: "stale_while_revalidate")
        staleIfError = reader.seconds(always: "stale_if_error")
        otherVariant = reader.choice(always: "other_variant")
        maxVariants = reader.int(always: "max_variants")
        memory = reader.bool("memory")
        disk = reader.bool("disk")
        methods = reader.texts("methods").compactMap(StoredMethod.init)
        ignoreQuery = reader.section("key").texts("ignore_query")
        keyFields = reader.section("key").texts("fields")
        setCookie = reader.choice(always: "set_cookie")
        cookies = reader.choice(always: "cookies")
        minLength = reader.bytes(always: "min_length")
        collapse = CollapseLimits(reader.section("collapse"))
        storeAs = reader.text("store_as")
        onClientAbort = reader.always { $0.text("on_client_abort").flatMap(ClientAbort.init(words:)) }
    }
}

extension CollapseLimits {
    fileprivate init(_ reader: SectionReader) {
        self.init(wait: reader.nanoseconds(always: "wait"), waiters: reader.int(always: "waiters"))
    }
}

extension SeedConfiguration {
    package init(path: String) { self.init(path: path, SectionReader(nothingOf: KeyTable.serviceCache)) }

    /// - Parameter reader: of the section `cache`.
    init(path: String, _ reader: SectionReader) {
        self.path = path
        mode = reader.choice(always: "seed_mode")
        layout = reader.choice(always: "seed_layout")
    }
}

extension StandInConfiguration {
    package init(file: String) { self.init(file: file, SectionReader(nothingOf: KeyTable.fallback)) }

    init(file: String, _ reader: SectionReader) {
        self.file = file
        status = reader.int(always: "status")
    }
}

extension PlaceholderConfiguration {
    package init(answer: StandInConfiguration) {
        self.init(answer: answer, SectionReader(nothingOf: KeyTable.placeholder))
    }

    init(answer: StandInConfiguration, _ reader: SectionReader) {
        self.answer = answer
        after = reader.nanoseconds(always: "after")
    }
}
