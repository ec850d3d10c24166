// The table of keys, fifth part: what is done on a schedule.

extension KeyTable {
    /// The keys of whatever is done again and again.
    static let schedule: [KeyDescriptor] = [
        KeyDescriptor("every", .duration, "From turn to turn; one that comes too early is left out.", required: true),
        KeyDescriptor(
            "at_start",
            .boolean,
            default: "false",
            "Whether the first turn comes as soon as the configuration is in force."
        ),
    ]

    static let prefetch = SectionDescriptor(
        name: "prefetch[]",
        keys: [
            KeyDescriptor("name", .text(.word), "What logs and 'drydock jobs' call it.", required: true),
            KeyDescriptor(
                "urls",
                .list(.text(.batchURL)),
                "What is downloaded: paths, or URLs, as clients ask for them."
            ),
            KeyDescriptor(
                "file",
                .path,
                "A list of what is downloaded, read at every turn: a URL or a JSON object a line."
            ),
        ] + schedule + [
            KeyDescriptor("concurrency", .integer(1...1000), default: "10", "Items under way at a time."),
            KeyDescriptor(
                "on_error",
                .choice(PrefetchConfiguration.OnError.allCases.map(\.rawValue)),
                default: "continue",
                "What the failure of an item means for the others."
            ),
            KeyDescriptor("force", .boolean, default: "false", "Whether origins are asked whatever is stored."),
        ]
    )
}
