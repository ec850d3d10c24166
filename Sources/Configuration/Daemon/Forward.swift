// Forward mode: which targets it reaches, and what it does about origins that fail.

package import Policies
package import Upstream

extension KeyTable {
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
                "intercept",
                .section(intercept),
                "Which tunnels the daemon reads, so that what is asked in them is cached, explained and mocked like everything else."
            ),
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
}

/// The settings of forward mode.
package struct ForwardConfiguration: Sendable, Equatable {
    package var enabled: Bool
    /// Patterns of the hosts that clients may reach, in lower case: `*`, `*.example.com`, `example.com` or an address.
    /// Loopback, private and link-local targets need a pattern that names them. Default: `*`.
    package var allow: [String]
    /// The `HOST:PORT` patterns for CONNECT and for `https` URLs in absolute form; either side may be `*`. Default:
    /// `*:443`.
    package var connectAllow: [String]
    /// Which tunnels are read. Default: none.
    package var interception: InterceptionConfiguration
    /// Whether a response is accepted that breaks a rule of HTTP/1.1, but can be read in one way only. Default: true.
    package var lenient: Bool
    /// The absolute path of a PEM bundle that replaces the system's for `https` URLs in absolute form; nil for the
    /// system's.
    package var ca: String?
    /// The longest time without a byte in either direction of a tunnel, in nanoseconds; nil for no limit. Default: 60
    /// minutes.
    package var tunnelTimeout: UInt64?
    /// The proxies that targets are reached through. Default: none.
    package var upstreamProxy: UpstreamProxies
    /// The policy for repeating a fetch that failed.
    package var retry: RetryPolicy
    /// The conditions for leaving an origin alone; nil if no origin is left alone.
    package var breaker: BreakerPolicy?
    /// The most fetches at the same time, of all origins together; nil for no limit.
    package var maxConcurrent: Int?
    package var maxQueue: QueueConfiguration
    package var cache = CacheConfiguration()
    /// The rules of deliberate faults, in order.
    package var faults: [FaultPolicy] = []
}

extension ForwardConfiguration {
    package init() { self.init(SectionReader(nothingOf: KeyTable.forward)) }

    init(_ reader: SectionReader) {
        enabled = reader.bool("enabled")
        allow = reader.texts("allow")
        connectAllow = reader.section("connect").texts("allow")
        interception = InterceptionConfiguration(reader.section("intercept"))
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

extension Resolver {
    mutating func forward(_ reader: SectionReader) -> ForwardConfiguration {
        var result = ForwardConfiguration(reader)
        let tls = reader.section("tls")
        if let ca = result.ca, let problem = FileChecks.readable(ca) {
            fail(position(tls, "ca"), file: "'forward.tls.ca' \(problem)")
        }
        // Without forward mode there are no tunnels to read.
        if !result.enabled { result.interception.hosts = [] }
        check(interception: reader, result)
        let timeout = reader.section("timeout")
        if let position = timeout.position("tunnel"), timeout.nanoseconds("tunnel") == 0 {
            fail(position, "'forward.timeout.tunnel' is zero; write none for no timeout")
        }
        let cacheReader = reader.section("cache")
        result.cache = cache(cacheReader, own: cacheReader)
        result.faults = faults(reader)
        followed += Self.followed(result.cache).map { ("forward.cache.\($0.key)", $0.leaf) }
        return result
    }

    /// Checks the keys for origins that fail.
    /// - Parameter reader: the section `forward`.
    mutating func check(resilience reader: SectionReader, _ forward: ForwardConfiguration) {
        check(maxDelay: reader.section("retry"), forward.retry, label: "forward.retry")
        if reader.section("retry").texts("when").contains("content") {
            fail(
                position(reader.section("retry"), "when"),
                "'forward.retry.when' has content, but forward mode takes every body; remove content"
            )
        }
    }
}
