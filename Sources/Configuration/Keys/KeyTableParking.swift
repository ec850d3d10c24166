// The table of keys: calls that wait for an origin that is away.

extension KeyTable {
    static let park = SectionDescriptor(
        name: "park",
        keys: [
            KeyDescriptor(
                "time",
                .word("none", or: .duration),
                default: "none",
                "How long a call may wait.",
                inherited: .services
            ),
            KeyDescriptor(
                "calls",
                .integer(1...100_000),
                default: "1000",
                "How many calls may wait at the same time.",
                inherited: .services
            ),
            KeyDescriptor(
                "size",
                .size,
                default: "64MiB",
                "How large they may be together: their heads and their contents.",
                inherited: .services
            ),
        ]
    )
}
