// The requests that a service accepts, and the web pages that may call it.

extension KeyTable {
    static let allow = SectionDescriptor(name: "allow[]", keys: accessRule)
    static let deny = SectionDescriptor(name: "deny[]", keys: accessRule)

    private static let accessRule = [
        KeyDescriptor("name", .text(.word), "What a refusal calls the rule."),
        KeyDescriptor(
            "method",
            .oneOrMore(.text(.token)),
            "One of these request methods, in upper case; GET stands for HEAD, too."
        ),
        KeyDescriptor("path", .endpointPath, "A path such as /users/:id or /files/*, below the service's prefix."),
        KeyDescriptor(
            "fields",
            .map(.fieldName, .text(.fieldValue)),
            "Fields that the request has, each with this value, or with any (*).",
            secret: true
        ),
    ]

    static let cors = SectionDescriptor(
        name: "cors",
        keys: [
            KeyDescriptor(
                "origins",
                .list(.text(.webOrigin)),
                default: "[]",
                "The origins of web pages that may call the service, as scheme://host[:port].",
                inherited: .services
            ),
            KeyDescriptor(
                "expose",
                .list(.text(.token)),
                default: "[]",
                "The fields of answers that these pages may read, besides those that every page may.",
                inherited: .services
            ),
            KeyDescriptor(
                "credentials",
                .boolean,
                default: "false",
                "Whether browsers send cookies and credentials of the user along, and show these pages the answers.",
                inherited: .services
            ),
            KeyDescriptor(
                "private_network",
                .boolean,
                default: "false",
                "Whether these pages may come from a public network, if this daemon is in a private one.",
                inherited: .services
            ),
        ]
    )
}

/// A rule under `allow` or `deny`. A request matches it if all its conditions hold; it has at least one.
package struct AccessConfiguration: Sendable, Equatable {
    /// The name of the rule in refusals; nil if only its number is used.
    package var name: String?
    /// The request methods that match; empty for any.
    package var methods: [String]
    /// The pattern of paths that match, below the service's prefix; nil for any.
    package var path: EndpointPath?
    /// The fields that a matching request has; `*` stands for any value.
    package var fields: [HeaderValue]
}

/// The web pages that may call a service, and their rights.
package struct CORSConfiguration: Sendable, Equatable {
    /// The origins of these pages, as `scheme://host[:port]`, or `*`.
    package var origins: [String]
    /// The names of the response fields that these pages may read.
    package var expose: [String]
    /// Whether browsers send credentials of the user. Default: false.
    package var credentials: Bool
    /// Whether these pages may come from a public network if the daemon is in a private one. Default: false.
    package var privateNetwork: Bool
}

extension CORSConfiguration {
    init(_ reader: SectionReader) {
        origins = reader.texts("origins")
        expose = reader.texts("expose")
        credentials = reader.bool("credentials")
        privateNetwork = reader.bool("private_network")
    }
}

extension Resolver {
    /// Reads and checks the rules under `allow` or `deny` of a service.
    mutating func access(_ service: SectionReader, _ key: String) -> [AccessConfiguration] {
        let section = service.section.key(key)?.kind.section ?? SectionDescriptor(name: key, keys: [])
        return service.items(key).compactMap { value in
            guard case .section(let entries) = value.content, !broken.contains(value.position) else { return nil }
            let reader = SectionReader(entries: entries, section: section)
            var path: EndpointPath?
            if case .endpointPath(let given)? = reader.leaf("path")?.scalar { path = given }
            let rule = AccessConfiguration(
                name: reader.text("name"),
                methods: reader.texts("method"),
                path: path,
                fields: reader.headerValues("fields")
            )
            for method in rule.methods where method != method.uppercased() {
                fail(position(reader, "method"), "methods are in upper case; write \(method.uppercased())")
            }
            if rule.methods.isEmpty, rule.path == nil, rule.fields.isEmpty {
                fail(value.position, "this rule of '\(key)' matches every request; give 'method', 'path' or 'fields'")
            }
            return rule
        }
    }

    /// Checks the rules for web pages against the credentials of a service.
    /// - Parameter own: the service without inherited keys.
    mutating func check(cors service: ServiceConfiguration, _ own: SectionReader) {
        let cors = service.cors
        let isAuthorized = service.auth != nil || service.endpoints.contains { $0.auth?.addsCredentials == true }
        let position = own.position("cors") ?? (isAuthorized ? own.position("auth") ?? own.position("endpoints") : nil)
        guard let position else { return }
        let isForAll = cors.origins.contains("*")
        if isForAll, isAuthorized {
            fail(
                position,
                "'cors: { origins: [\"*\"] }' would let every web page use the credentials under 'auth'; name the origins"
            )
        }
        if isForAll, cors.credentials {
            fail(
                position,
                "'cors.credentials' with origins [\"*\"] would let every web page act for the user; name the origins"
            )
        }
    }
}
