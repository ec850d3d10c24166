// The settings that services and endpoints share: their keys, model and checks.

package import Content
package import HTTPCaching
package import Policies
package import Upstream

extension KeyTable {
    static let timeout = SectionDescriptor(
        name: "timeout",
        keys: [
            KeyDescriptor(
                "connect",
                .word("none", or: .duration),
                default: "5s",
                "The time until the connection is open, including TLS.",
                inherited: .endpoints
            ),
            KeyDescriptor(
                "first_byte",
                .word("none", or: .duration),
                default: "30s",
                "The time from the end of the request to the first byte of the response.",
                inherited: .endpoints
            ),
            KeyDescriptor(
                "idle",
                .word("none", or: .duration),
                default: "120s",
                "The time between two reads of a response.",
                inherited: .endpoints
            ),
            KeyDescriptor(
                "total",
                .word("none", or: .duration),
                default: "none",
                "The time for each attempt, from its start to the end of the response.",
                inherited: .endpoints
            ),
            KeyDescriptor(
                "tunnel",
                .word("none", or: .duration),
                default: "60m",
                "The time without a byte in either direction of a tunnel, such as a WebSocket.",
                inherited: .endpoints
            ),
        ]
    )

    /// The keys that endpoints inherit from their service.
    static let shared: [KeyDescriptor] =
        [
            KeyDescriptor(
                "headers",
                .section(headers),
                "Changes to the fields of requests, in this order: underscore, remove, set, add.",
                inherited: .endpoints
            ),
            KeyDescriptor(
                "query",
                .map(.queryName, .shorthand(queryItem, key: "value")),
                "Query items that are added if the request does not have an item of that name; { value: X, secret: true } for one that carries credentials.",
                inherited: .endpoints
            ),
            KeyDescriptor(
                "timeout",
                .section(timeout),
                "Timeouts; they pause while the client is not reading.",
                inherited: .endpoints
            ),
            KeyDescriptor(
                "cache",
                .section(serviceCache),
                "How responses are stored and reused.",
                inherited: .endpoints
            ),
            KeyDescriptor(
                "response",
                .section(response),
                "What answers must be, and what they become.",
                inherited: .endpoints
            ),
            KeyDescriptor("error", .section(error), "What failed answers become.", inherited: .endpoints),
            KeyDescriptor(
                "retry",
                .section(retry),
                "How a fetch that failed is made again.",
                inherited: .endpoints
            ),
            redirectsKey,
            KeyDescriptor("demo", .section(demo), "Demo answers.", inherited: .endpoints),
            KeyDescriptor("log", .section(bodyLog), "What the daemon's log has of requests.", inherited: .endpoints),
            faultsKey,
            rateLimitKey,
        ] + recordingKeys

    static let bodyLog = SectionDescriptor(
        name: "log",
        keys: [
            KeyDescriptor(
                "bodies",
                .word("none", or: .size),
                default: "none",
                "How much of the bodies of requests and answers is logged, with secrets hidden: a size up to 64KiB, or none.",
                inherited: .endpoints
            )
        ]
    )
}

/// The settings of a route: of an endpoint, with what it inherited, or of the requests that no endpoint of a service names.
@dynamicMemberLookup
package struct RouteSettings: Sendable, Equatable {
    /// The policies that the cores obey unchanged.
    package var policies: RoutePolicies
    package var headers = HeaderRules()
    /// The query items that are added to requests without an item of that name, in the order of the file.
    package var query: [QueryRule] = []
    /// The deadlines of one fetch, which pause while the client holds back. Default: 5 s to connect, 30 s to the head,
    /// 120 s without a byte, and no limit in total.
    package var timeout: Timeouts
    package var cache = CacheConfiguration()
    /// The kind of content that a stored body must have.
    package var expect: ContentExpectation
    /// The media types that answers may have; nil for any.
    package var types: ExpectedTypes?
    /// The statuses that are successes; nil for those below 400.
    package var success: StatusSet?
    package var mapping: MappingConfiguration?
    /// The mapping of failed answers.
    package var errorMapping: MappingConfiguration?
    package var recording = RecordingConfiguration()
    /// The demo mode of the route. That of a service answers the paths that no endpoint has, and provides the defaults
    /// of the endpoints.
    package var demo = DemoConfiguration()
    /// The rules of deliberate faults, in order.
    package var faults: [FaultPolicy] = []

    package subscript<Value>(dynamicMember path: WritableKeyPath<RoutePolicies, Value>) -> Value {
        get { policies[keyPath: path] }
        set { policies[keyPath: path] = newValue }
    }
}

extension RouteSettings {
    package init() { self.init(SectionReader(nothingOf: KeyTable.endpoint)) }

    /// Reads the settings that need no check.
    /// - Parameter reader: a service or an endpoint.
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

/// The sections that the settings of a service or an endpoint are read from.
struct RouteReader {
    /// The section with inherited keys.
    let reader: SectionReader
    /// The section without inherited keys.
    let own: SectionReader
    let owner: DemoOwner
    /// The endpoint that a quota of this section counts for; empty for the service.
    let rateLimitScope: String
    /// Whether demo mode is on for the whole daemon.
    let daemonDemo: Bool
}

extension Resolver {
    /// Reads and checks the settings that depend on more than one key.
    mutating func read(_ settings: inout RouteSettings, _ route: RouteReader) {
        let (reader, own) = (route.reader, route.own)
        settings.headers = HeaderRules(reader.section("headers"))
        settings.query = query(reader)
        check(timeout: reader.section("timeout"))
        settings.cache = cache(reader.section("cache"), own: own.section("cache"))
        settings.retry = RetryPolicy(reader.section("retry"), own: own.section("retry"))
        settings.mapping = mapping(reader.section("response"), settings.cache)
        settings.errorMapping = errorMapping(reader.section("error"), reader.section("response"))
        check(success: own, settings.success)
        check(maxDelay: own.section("retry"), settings.retry, label: "retry")
        check(retry: own, looksInside: settings.expect != .anything || settings.types != nil || settings.mapping != nil)
        check(logBodies: own.section("log"))
        settings.recording = recording(reader, own: own)
        settings.faults = faults(reader)
        settings.rateLimit = rateLimit(reader, scope: route.rateLimitScope)
        settings.demo = demo(
            reader.section("demo"),
            own: own.section("demo"),
            answerOf: route.owner,
            isSource: RecordingConfiguration.isDemo(reader),
            daemonDemo: route.daemonDemo
        )
    }

    private mutating func check(timeout reader: SectionReader) {
        for key in ["connect", "first_byte", "idle", "total", "tunnel"] {
            if let position = reader.position(key), reader.nanoseconds(key) == 0 {
                fail(position, "'timeout.\(key)' is zero; write none for no timeout")
            }
        }
    }

    /// Checks the causes of retries.
    /// - Parameters:
    ///   - own: the service or the endpoint without inherited keys.
    ///   - looksInside: whether some bodies are not accepted.
    private mutating func check(retry own: SectionReader, looksInside: Bool) {
        let reader = own.section("retry")
        if reader.texts("when").contains("content"), !looksInside {
            fail(
                position(reader, "when"),
                "'retry.when' has content, but 'response.expect' and 'response.type' are any and nothing is mapped; say what bodies must be, or remove content"
            )
        }
    }

    /// Checks the successful statuses.
    /// - Parameter own: the service or the endpoint without inherited keys.
    private mutating func check(success own: SectionReader, _ success: StatusSet?) {
        let response = own.section("response")
        guard let position = response.position("success"), let success else { return }
        if success.ranges.isEmpty {
            fail(
                position,
                "'response.success' is empty, so that every answer would be a failure; name a status, such as 2xx"
            )
        }
        for entry in own.section("cache").map("ttl_by_status") {
            guard let status = Int(entry.key), !success.ranges.isEmpty, !success.contains(status) else { continue }
            fail(
                entry.position,
                "'cache.ttl_by_status' has \(status), which 'response.success' leaves out, so that it is not stored; add it there, or remove it here"
            )
        }
    }

    /// Checks the size of logged bodies.
    /// - Parameter reader: the section `log` of a service or an endpoint, without inherited keys.
    private mutating func check(logBodies reader: SectionReader) {
        guard let position = reader.position("bodies"), let size = reader.bytes("bodies"), size > 64 * 1024 || size == 0
        else {
            return
        }
        fail(position, "'log.bodies' takes a size from 1B to 64KiB, or none")
    }
}
