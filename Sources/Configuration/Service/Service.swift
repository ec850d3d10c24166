// The table of keys, second part: services and endpoints.

extension KeyTable {
    static let headers = SectionDescriptor(
        name: "headers",
        keys: [
            KeyDescriptor(
                "set",
                .map(.fieldName, .text(.fieldValue)),
                "Fields that replace the request's own.",
                inherited: .endpoints
            ),
            KeyDescriptor(
                "add",
                .map(.fieldName, .text(.fieldValue)),
                "Field lines that are added to the request.",
                inherited: .endpoints
            ),
            KeyDescriptor(
                "remove",
                .list(.text(.token)),
                "Fields that are removed from the request.",
                inherited: .endpoints
            ),
            KeyDescriptor(
                "underscore",
                .choice(UnderscorePolicy.allCases.map(\.rawValue)),
                default: "pass",
                "What happens to the client's fields with an underscore in their name, which CGI, WSGI and Rack read as a hyphen: pass removes only those that could change what is stored for others, drop removes all.",
                inherited: .endpoints
            ),
        ]
    )

    static let basic = SectionDescriptor(
        name: "basic",
        keys: [
            KeyDescriptor("user", .text(.userName), "The user name, without a colon.", required: true),
            KeyDescriptor("password", .text(.fieldValue), "The password.", secret: true, required: true),
        ],
        replaces: true
    )

    static let auth = SectionDescriptor(
        name: "auth",
        keys: [
            KeyDescriptor("bearer", .text(.bearerToken), "A bearer token.", inherited: .services, secret: true),
            KeyDescriptor("basic", .section(basic), "A user and a password.", inherited: .services),
        ],
        replaces: true
    )

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
                "The time for the whole fetch.",
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

    static let maxQueue = SectionDescriptor(
        name: "max_queue",
        keys: [
            KeyDescriptor(
                "length",
                .integer(0...1_000_000),
                default: "100",
                "How many fetches may wait for max_concurrent.",
                inherited: .services
            ),
            KeyDescriptor("wait", .duration, default: "5s", "How long a fetch may wait.", inherited: .services),
        ]
    )

    static let tls = SectionDescriptor(
        name: "tls",
        keys: [
            KeyDescriptor(
                "verify",
                .boolean,
                default: "true",
                "Whether the origin's certificate is checked.",
                inherited: .services
            ),
            KeyDescriptor(
                "ca",
                .path,
                "A file of certificate authorities (PEM) that replaces the system's.",
                inherited: .services
            ),
            KeyDescriptor(
                "client_cert",
                .path,
                "The client certificate (PEM); it needs client_key.",
                inherited: .services
            ),
            KeyDescriptor(
                "client_key",
                .path,
                "The key of the client certificate (PEM); it needs client_cert.",
                inherited: .services
            ),
            KeyDescriptor(
                "pin",
                .oneOrMore(.text(.publicKeyPin)),
                "The public key that the origin must have, or a list of which it must have one: sha256//BASE64, as for curl --pinnedpubkey.",
                inherited: .services
            ),
        ]
    )

    static let queryItem = SectionDescriptor(
        name: "query",
        keys: [
            KeyDescriptor("value", .oneOrMore(.text(.any)), "The value, or a list of values.", required: true),
            KeyDescriptor(
                "secret",
                .boolean,
                "Whether the item carries credentials: the service then refuses foreign web pages, and the item is shown nowhere. If this is not set, the name decides."
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
                "Where requests go: an http or https URL, or service:NAME; optional if every answer is a demo answer."
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
                "What happens to paths that match no endpoint; 404 if there is no base_url.",
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
            KeyDescriptor("host", .text(.hostName), "A Host value such as api.localhost, without a port."),
        ]
    )

    /// Everything of a service that may be given once for all.
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
