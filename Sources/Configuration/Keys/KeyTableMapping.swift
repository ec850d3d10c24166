// The table of keys: how answers are mapped.

extension KeyTable {
    /// Part of `response` in services and endpoints.
    static let mapping: [KeyDescriptor] = [
        KeyDescriptor(
            "map",
            .word("none", or: .mappingRule),
            default: "none",
            "The document that clients get in the place of the origin's: names, and the key paths of their values; none switches an inherited mapping off.",
            inherited: .endpoints
        ),
        KeyDescriptor(
            "map_buffer",
            .size,
            default: "1MiB",
            "Up to this length a document is mapped before its head is sent; a longer one streams, and no element of it may be longer. Of an error as much is read at most.",
            inherited: .endpoints
        ),
    ]

    static let error = SectionDescriptor(
        name: "error",
        keys: [
            KeyDescriptor(
                "map",
                .word("none", or: .mappingRule),
                "The document that clients get in the place of a failed answer: names, and the key paths of their values; none switches an inherited mapping off.",
                inherited: .endpoints
            )
        ]
    )
}
