// A service and its endpoints, with what they inherit.

package import Policies
package import Upstream

extension KeyTable {
    static let service = SectionDescriptor(
        name: "services[]",
        keys: [
            KeyDescriptor("name", .text(.word), "The service's own name.", required: true),
            KeyDescriptor(
                "match",
                .section(match),
                "Which requests are the service's: a prefix, a host, or both.",
                required: true
            ),
            KeyDescriptor(
                "hosts",
                .list(.text(.servedHost)),
                "Host names under which this service answers, in place of the daemon's hosts; not with match.host."
            ),
            KeyDescriptor(
                "base_url",
                .baseURL,
                "Where requests go: an http or https URL, or service:NAME; optional if every answer is a demo answer, and with match.host: the origin is then the one that a proxied request names."
            ),
            KeyDescriptor(
                "host",
                .choice(HostPolicy.allCases.map(\.rawValue)),
                default: "base_url",
                "Which Host the origin gets: that of base_url, or the client's.",
                inherited: .services
            ),
            KeyDescriptor(
                "auth",
                .section(auth),
                "Credentials that are added to requests; the service then refuses foreign web pages.",
                inherited: .services
            ),
            KeyDescriptor(
                "max_concurrent",
                .word("none", or: .integer(1...1_000_000)),
                default: "none",
                "How many fetches may be under way at the same time.",
                inherited: .services
            ),
            KeyDescriptor(
                "max_queue",
                .section(maxQueue),
                "The queue of fetches that wait for max_concurrent.",
                inherited: .services
            ),
            KeyDescriptor(
                "breaker",
                .section(breaker),
                "When an origin that fails is left alone.",
                inherited: .services
            ),
            KeyDescriptor(
                "park",
                .shorthand(park, key: "time"),
                "How long a call waits for an origin that is away, where nothing stored may serve.",
                inherited: .services
            ),
            KeyDescriptor(
                "upstream_proxy",
                .upstreamProxy,
                default: "none",
                "The HTTP proxy that the origin is reached through: none, http://[USER:PASSWORD@]HOST:PORT, or env for what http_proxy, https_proxy, all_proxy and no_proxy say.",
                inherited: .services
            ),
            KeyDescriptor("tls", .section(tls), "TLS to the origin.", inherited: .services),
            KeyDescriptor(
                "lenient",
                .boolean,
                default: "true",
                "Whether responses that break a rule of HTTP/1.1, but have only one possible meaning, are accepted.",
                inherited: .services
            ),
            KeyDescriptor("cors", .section(cors), "Which web pages may call the service.", inherited: .services),
            KeyDescriptor(
                "allow",
                .sections(allow),
                "Rules that allow requests: if there are any, a request must match one of them."
            ),
            KeyDescriptor("deny", .sections(deny), "Rules that deny requests, also those that 'allow' allows."),
            KeyDescriptor(
                "unlisted",
                .choice(UnlistedPolicy.allCases.map(\.rawValue)),
                default: "pass",
                "What happens to paths that match no endpoint; 404 if there is no origin to pass them to.",
                inherited: .services
            ),
            openAPIKey,
            KeyDescriptor("endpoints", .sections(endpoint), "Paths with their own settings."),
        ] + shared,
        hasOwnKeys: true
    )

    static let match = SectionDescriptor(
        name: "match",
        keys: [
            KeyDescriptor(
                "prefix",
                .text(.prefix),
                "A path prefix such as /github; the longest matching prefix wins, and is removed from the path."
            ),
            KeyDescriptor(
                "host",
                .text(.hostName),
                "A host such as api.localhost or api.example.com, without a port: of requests to the daemon, and of proxied ones."
            ),
        ]
    )

    /// The section `defaults`: the keys of a service that can be set once for all services.
    static let defaults = SectionDescriptor(name: "defaults", keys: service.keys.filter { $0.inheritance != .none })

    static let endpoint = SectionDescriptor(
        name: "endpoints[]",
        keys: [
            KeyDescriptor("name", .text(.word), "The endpoint's name, unique in its service.", required: true),
            KeyDescriptor("method", .text(.token), default: "GET", "The request method, in upper case."),
            KeyDescriptor(
                "path",
                .endpointPath,
                "A path such as /users/:id or /files/*, below the service's prefix.",
                required: true
            ),
        ] + requests + endpointShared,
        hasOwnKeys: true
    )
}

extension KeyTable {
    /// The section `cache` of an endpoint, which may also store one resource as a file.
    static let endpointCache = SectionDescriptor(
        name: "cache",
        keys: serviceCache.keys + [
            KeyDescriptor(
                "store_as",
                .text(.storedPath),
                "A path under files/ of the disk tier, where the latest stored response is also kept as a plain file."
            )
        ]
    )

    /// The keys that endpoints inherit from their service, in the form that endpoints have.
    static let endpointShared: [KeyDescriptor] = shared.map { key in
        let ofEndpoints = ["cache": endpointCache, "demo": endpointDemo]
        guard let section = ofEndpoints[key.name] else { return key }
        return KeyDescriptor(key.name, .section(section), key.doc, inherited: key.inheritance)
    }
}

/// A service: its requests, its target, and the changes to its requests and answers.
@dynamicMemberLookup
package struct ServiceConfiguration: Sendable, Equatable {
    /// The name, unique among the services.
    package var name: String
    package var match: ServiceMatch
    /// Host patterns under which a service that is matched by its prefix alone answers, besides localhost, the listen
    /// addresses and the machine's own names: a name, `*.DOMAIN` or an address, in lower case. Default: the daemon's.
    package var hosts: [String] = []
    /// The target of requests; nil if every answer is a demo answer, or if proxied requests name the origin.
    package var baseURL: BaseURL?
    /// The Host that the origin gets. Default: that of `base_url`.
    package var host: HostPolicy
    package var auth: AuthConfiguration?
    /// The settings that the service's endpoints inherit.
    package var settings: RouteSettings
    /// The most fetches at the same time; nil for no limit.
    package var maxConcurrent: Int?
    package var maxQueue: QueueConfiguration
    /// The conditions for leaving the origin alone; nil if it is never left alone.
    package var breaker: BreakerPolicy?
    /// The limits of calls that wait for an origin that is away; nil if none waits.
    package var park: ParkPolicy?
    /// The proxies that the origin is reached through. Default: none.
    package var upstreamProxy: UpstreamProxies
    package var tls = TLSConfiguration()
    /// Whether a response is accepted that breaks a rule of HTTP/1.1, but can be read in one way only. Default: true.
    package var lenient: Bool
    package var cors: CORSConfiguration
    /// The rules of which a request must match one, if there are any.
    package var allow: [AccessConfiguration] = []
    /// The rules that refuse a request, even if it matches ``allow``.
    package var deny: [AccessConfiguration] = []
    /// The document that requests are checked by; nil for none.
    package var openAPI: OpenAPIConfiguration?
    /// The treatment of paths that no endpoint has. Default: pass, or 404 without a `base_url`.
    package var unlisted: UnlistedPolicy
    package var endpoints: [EndpointConfiguration] = []

    /// Whether the origin is the one that a proxied request names: without a base URL, with a host.
    package var asksNamedOrigin: Bool { baseURL == nil && match.host != nil }
    /// Whether the service or one of its endpoints has demo answers, given at present or not.
    package var hasDemoAnswers: Bool { settings.demo.hasAnswer || endpoints.contains(where: \.settings.demo.hasAnswer) }

    /// Whether there are endpoints, and each of them has an answer of its own, which asks no origin.
    package var answersItself: Bool {
        !endpoints.isEmpty
            && endpoints.allSatisfy { $0.demo.answersAlone($0.recording) || !$0.recording.asksOrigin }
    }
}

/// The match of a service's requests: by a prefix of the path, by Host, or by both; at least one is present.
package struct ServiceMatch: Sendable, Hashable, CustomStringConvertible {
    /// A path that begins with `/` and does not end with one, or `/` itself; compared on segment boundaries. Nil for a
    /// service that has all paths of its host.
    package let prefix: String?
    /// A Host value in lower case, without a port; nil for a service that is matched by its prefix alone.
    package let host: String?

    private init(prefix: String?, host: String?) {
        self.prefix = prefix
        self.host = host
    }

    package static func prefix(_ prefix: String) -> ServiceMatch { ServiceMatch(prefix: prefix, host: nil) }

    /// A match by Host.
    /// - Parameter prefix: the prefix of the path; nil and `/` mean the same.
    package static func host(_ host: String, prefix: String? = nil) -> ServiceMatch {
        ServiceMatch(prefix: prefix == "/" ? nil : prefix, host: host)
    }

    /// The match as text: `/github`, `api.localhost` or `api.localhost/github`.
    package var description: String { (host ?? "") + (prefix ?? "") }
}

/// The Host that the origin gets.
package enum HostPolicy: String, Sendable, CaseIterable {
    case baseURL = "base_url"
    case preserve
}

/// The treatment of paths that no endpoint has.
package enum UnlistedPolicy: String, Sendable, CaseIterable {
    case pass
    case notFound = "404"
}

/// An endpoint: a method and a path pattern of a service, with everything that it inherits.
@dynamicMemberLookup
package struct EndpointConfiguration: Sendable, Equatable {
    /// The name, unique within the service.
    package var name: String
    /// The request method. Default: GET.
    package var method: String
    /// The pattern, below the service's prefix or host.
    package var path: EndpointPath
    package var settings: RouteSettings
    /// The changes to the target, parameters and content of a request; nil for none.
    package var request: RequestConfiguration?
    /// The credentials of the endpoint, instead of the service's; nil for the service's.
    package var auth: AuthConfiguration?
}

extension ServiceConfiguration {
    package subscript<Value>(dynamicMember path: WritableKeyPath<RouteSettings, Value>) -> Value {
        get { settings[keyPath: path] }
        set { settings[keyPath: path] = newValue }
    }
}

extension EndpointConfiguration {
    package subscript<Value>(dynamicMember path: WritableKeyPath<RouteSettings, Value>) -> Value {
        get { settings[keyPath: path] }
        set { settings[keyPath: path] = newValue }
    }
}

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
