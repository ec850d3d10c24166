// The table of keys: the journal of requests.

extension KeyTable {
    static let journal = SectionDescriptor(
        name: "journal",
        keys: [
            KeyDescriptor(
                "size",
                .word("off", or: .size),
                default: "off",
                "How large the journal may be: the oldest entries make room; off keeps none, and then no request pays for it."
            ),
            KeyDescriptor(
                "bodies",
                .word("off", or: .size),
                default: "4KiB",
                "How much of the body of each request it has; off: nothing."
            ),
            KeyDescriptor(
                "redact",
                .list(.text(.token)),
                default: "[Authorization, Proxy-Authorization, Cookie, Set-Cookie, X-Api-Key]",
                "The request fields whose values it does not have."
            ),
        ]
    )
}
