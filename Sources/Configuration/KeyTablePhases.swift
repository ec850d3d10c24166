// The table of keys: what answers while there is nothing yet or nothing at all, what a body must be, and who may leave.

extension KeyTable {
    static let placeholder = SectionDescriptor(
        name: "placeholder",
        keys: [
            KeyDescriptor(
                "file",
                .word("none", or: .path),
                "The file that answers; none for no placeholder where one is inherited.",
                inherited: .endpoints,
                required: true
            ),
            KeyDescriptor(
                "after",
                .duration,
                default: "300ms",
                "How long a request waits for the head of the response before the file answers.",
                inherited: .endpoints
            ),
            KeyDescriptor(
                "status",
                .integer(200...599),
                default: "200",
                "The status of the answer.",
                inherited: .endpoints
            ),
        ],
        replaces: true
    )

    static let fallback = SectionDescriptor(
        name: "fallback",
        keys: [
            KeyDescriptor(
                "file",
                .word("none", or: .path),
                "The file that answers; none for no fallback where one is inherited.",
                inherited: .endpoints,
                required: true
            ),
            KeyDescriptor(
                "status",
                .integer(200...599),
                default: "200",
                "The status of the answer.",
                inherited: .endpoints
            ),
        ],
        replaces: true
    )

    /// Part of `cache` in services, endpoints and forward mode.
    static let phases: [KeyDescriptor] = [
        KeyDescriptor(
            "on_client_abort",
            .text(.clientAbort),
            default: "finish",
            "What becomes of a fetch when everybody who waited for it has left: finish, abort, or finish-if N% (of the body has come).",
            inherited: .endpoints
        ),
        KeyDescriptor(
            "placeholder",
            .section(placeholder),
            "A file that answers while nothing is stored and the origin takes its time; nobody may keep it.",
            inherited: .endpoints
        ),
        KeyDescriptor(
            "fallback",
            .section(fallback),
            "A file that answers when the fetch fails and nothing stored may serve; nobody may keep it.",
            inherited: .endpoints
        ),
    ]

    static let response = SectionDescriptor(
        name: "response",
        keys: [
            KeyDescriptor(
                "expect",
                .choice(ExpectedContent.allCases.map(\.rawValue)),
                default: "any",
                "What bodies must be to be stored; what is something else is passed on and counted.",
                inherited: .endpoints
            )
        ]
    )
}
