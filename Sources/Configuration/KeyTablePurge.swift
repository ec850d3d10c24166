// The table of keys: what is purged on a schedule.

extension KeyTable {
    static let purge = SectionDescriptor(
        name: "purge[]",
        keys: [
            KeyDescriptor(
                "older_than",
                .lifetime,
                "What arrived, or was last found current, longer ago; not what is pinned."
            ),
            KeyDescriptor("tag", .text(.any), "What has this tag in Cache-Tag, Surrogate-Key or Cache-Groups."),
            KeyDescriptor("prefix", .text(.any), "What is stored for URLs of origins that begin like this."),
            KeyDescriptor(
                "glob",
                .text(.any),
                "What is stored for URLs of origins of this form; * stands for anything."
            ),
            KeyDescriptor("service", .text(.any), "Only what is stored for this service."),
            KeyDescriptor("soft", .boolean, default: "false", "Whether it becomes stale rather than being removed."),
        ] + schedule
    )
}
