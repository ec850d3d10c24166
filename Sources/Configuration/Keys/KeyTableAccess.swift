// The table of keys: which requests a service answers at all, and which web pages may call it.

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
