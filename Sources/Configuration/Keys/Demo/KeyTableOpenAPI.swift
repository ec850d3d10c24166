// The table of keys: the document that requests are checked by.

import Policies

extension KeyTable {
    private static let openAPI = SectionDescriptor(
        name: "openapi",
        keys: [
            KeyDescriptor("file", .path, "The document of OpenAPI 3.0 or 3.1, in YAML or JSON.", required: true),
            KeyDescriptor(
                "validate",
                .choice(ExaminationPolicy.allCases.map(\.rawValue)),
                default: "report",
                "What becomes of a request that is not as the document says: report answers it and says what is wrong, refuse gives it a 400."
            ),
            KeyDescriptor(
                "body_limit",
                .size,
                default: "1MiB",
                "How much of a body is read to be checked; a longer one that has to be checked is not as the document says."
            ),
        ],
        replaces: true
    )

    /// Among the keys of services.
    static let openAPIKey = KeyDescriptor(
        "openapi",
        .shorthand(openAPI, key: "file"),
        "The document that says which requests are right, and what becomes of others."
    )
}
