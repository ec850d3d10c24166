// The table of keys: purges on a schedule.

extension KeyTable {
    static let purge = SectionDescriptor(
        name: "purge[]",
        keys: [
            KeyDescriptor(
                "older_than",
                .lifetime,
                "Responses that arrived, or were last validated, longer ago than this, except pinned ones."
            ),
            KeyDescriptor("tag", .text(.any), "Responses with this tag in Cache-Tag, Surrogate-Key or Cache-Groups."),
            KeyDescriptor("prefix", .text(.any), "Responses whose URL at the origin begins with this text."),
            KeyDescriptor(
                "glob",
                .text(.any),
                "Responses whose URL at the origin matches this pattern; * matches anything."
            ),
            KeyDescriptor("service", .text(.any), "Only the stored responses of this service."),
            KeyDescriptor(
                "soft",
                .boolean,
                default: "false",
                "Whether the responses become stale instead of being removed."
            ),
        ] + schedule
    )
}
