// The table of keys: placeholders, fallbacks, expected content, and clients that leave.

import Content

extension KeyTable {
    static let placeholder = SectionDescriptor(
        name: "placeholder",
        keys: [
            KeyDescriptor(
                "file",
                .word("none", or: .path),
                "The file that is served; none switches an inherited placeholder off.",
                inherited: .endpoints,
                required: true
            ),
            KeyDescriptor(
                "after",
                .duration,
                default: "300ms",
                "How long a request waits for the head of the response before the file is served.",
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
                "The file that is served; none switches an inherited fallback off.",
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
            "What happens to a fetch when all clients that waited for it have left: finish, abort, or finish-if N% (if so much of the body has arrived).",
            inherited: .endpoints
        ),
        KeyDescriptor(
            "placeholder",
            .section(placeholder),
            "A file that is served while nothing is stored and the origin is slow; it is sent with no-store.",
            inherited: .endpoints
        ),
        KeyDescriptor(
            "fallback",
            .section(fallback),
            "A file that is served when the fetch fails and no stored response may be used; it is sent with no-store.",
            inherited: .endpoints
        ),
    ]

    static let response = SectionDescriptor(
        name: "response",
        keys: [
            KeyDescriptor(
                "expect",
                .choice(ContentExpectation.allCases.map(\.rawValue)),
                default: "any",
                "Which bodies may be stored; other bodies are passed on and counted.",
                inherited: .endpoints
            ),
            KeyDescriptor(
                "type",
                .word("any", or: .oneOrMore(.text(.mediaRange))),
                default: "any",
                "Which media types answers may have, such as application/json or text/*; another type is a 502, and is not stored.",
                inherited: .endpoints
            ),
            KeyDescriptor(
                "success",
                .list(.text(.statuses)),
                default: "[2xx, 3xx]",
                "Which statuses of the origin are successes: 200, 2xx or 200..206; others are not stored, and are what error.map is for.",
                inherited: .endpoints
            ),
        ] + mapping
    )
}
