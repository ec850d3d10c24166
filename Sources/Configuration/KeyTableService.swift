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
                "Field lines that are added.",
                inherited: .endpoints
            ),
            KeyDescriptor("remove", .list(.text(.token)), "Fields that are dropped.", inherited: .endpoints),
        ]
    )

    static let basic = SectionDescriptor(
        name: "basic",
        keys: [
            KeyDescriptor("user", .text(.userName), "The user name; no colon.", required: true),
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
                "Until the connection stands, TLS included.",
                inherited: .endpoints
            ),
            KeyDescriptor(
                "first_byte",
                .word("none", or: .duration),
                default: "30s",
                "From the request's end to the response's first byte.",
                inherited: .endpoints
            ),
            KeyDescriptor(
                "idle",
                .word("none", or: .duration),
                default: "120s",
                "Between two reads of a response.",
                inherited: .endpoints
            ),
            KeyDescriptor(
                "total",
                .word("none", or: .duration),
                default: "none",
                "For the whole fetch.",
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
                "Fetches that may wait for max_concurrent.",
                inherited: .services
            ),
            KeyDescriptor("wait", .duration, default: "5s", "How long one may wait.", inherited: .services),
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
            KeyDescriptor("ca", .path, "A PEM bundle in place of the system's.", inherited: .services),
            KeyDescriptor("client_cert", .path, "A PEM certificate; comes with client_key.", inherited: .services),
            KeyDescriptor("client_key", .path, "A PEM key; comes with client_cert.", inherited: .services),
        ]
    )

    static let cors = SectionDescriptor(
        name: "cors",
        keys: [
            KeyDescriptor(
                "origins",
                .list(.text(.webOrigin)),
                default: "[]",
                "Origins of web pages that may call the service, as scheme://host[:port].",
                inherited: .services
            )
        ]
    )

    /// What a service hands on to its endpoints.
    static let shared: [KeyDescriptor] = [
        KeyDescriptor("headers", .section(headers), "What is done to a request's fields.", inherited: .endpoints),
        KeyDescriptor(
            "query",
            .map(.queryName, .oneOrMore(.text(.any))),
            "Query items for requests that do not bring the name themselves.",
            inherited: .endpoints
        ),
        KeyDescriptor(
            "timeout",
            .section(timeout),
            "Deadlines, none of which runs while the client holds back.",
            inherited: .endpoints
        ),
        KeyDescriptor("cache", .section(serviceCache), "How responses are stored and reused.", inherited: .endpoints),
        KeyDescriptor("response", .section(response), "What responses must be.", inherited: .endpoints),
        KeyDescriptor("demo", .section(demo), "Demo answers.", inherited: .endpoints),
    ]

    static let service = SectionDescriptor(
        name: "services[]",
        keys: [
            KeyDescriptor("name", .text(.word), "The service's own name.", required: true),
            KeyDescriptor(
                "match",
                .section(match),
                "Which requests are the service's: a prefix or a host.",
                required: true
            ),
            KeyDescriptor(
                "base_url",
                .baseURL,
                "Where requests go: an http or https URL, or service:NAME; optional where every answer is a demo."
            ),
            KeyDescriptor(
                "host",
                .choice(HostPolicy.allCases.map(\.rawValue)),
                default: "base_url",
                "Which Host the origin sees: that of base_url, or the client's.",
                inherited: .services
            ),
            KeyDescriptor(
                "auth",
                .section(auth),
                "Credentials that are added; the service then refuses requests from foreign web origins.",
                inherited: .services
            ),
            KeyDescriptor(
                "max_concurrent",
                .word("none", or: .integer(1...1_000_000)),
                default: "none",
                "Fetches in flight at once.",
                inherited: .services
            ),
            KeyDescriptor(
                "max_queue",
                .section(maxQueue),
                "The queue in front of max_concurrent.",
                inherited: .services
            ),
            KeyDescriptor("tls", .section(tls), "TLS towards the origin.", inherited: .services),
            KeyDescriptor("cors", .section(cors), "Which web pages may call the service.", inherited: .services),
            KeyDescriptor(
                "unlisted",
                .choice(UnlistedPolicy.allCases.map(\.rawValue)),
                default: "pass",
                "What happens to paths that no endpoint names; 404 where there is no base_url.",
                inherited: .services
            ),
            KeyDescriptor("endpoints", .sections(endpoint), "Paths with settings of their own."),
        ] + shared
    )

    static let match = SectionDescriptor(
        name: "match",
        keys: [
            KeyDescriptor(
                "prefix",
                .text(.prefix),
                "A path prefix such as /github; the longest wins, and it is removed."
            ),
            KeyDescriptor("host", .text(.hostName), "A Host value such as api.localhost, without a port."),
        ],
        replaces: true
    )

    /// Everything of a service that may be given once for all.
    static let defaults = SectionDescriptor(name: "defaults", keys: service.keys.filter { $0.inheritance != .none })

    static let endpoint = SectionDescriptor(
        name: "endpoints[]",
        keys: [
            KeyDescriptor("name", .text(.word), "The endpoint's name, unique in its service.", required: true),
            KeyDescriptor("method", .text(.token), default: "GET", "The request method; methods are in upper case."),
            KeyDescriptor(
                "path",
                .endpointPath,
                "A path such as /users/:id or /files/*, below the service's prefix.",
                required: true
            ),
        ] + endpointShared
    )
}
