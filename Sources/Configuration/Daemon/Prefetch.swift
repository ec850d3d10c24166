// The table of keys, fifth part: downloads on a schedule.

import Policies

extension KeyTable {
    /// The keys of everything that has a schedule.
    static let schedule: [KeyDescriptor] = [
        KeyDescriptor(
            "every",
            .duration,
            "The time from one run to the next; a run that is due while the previous one is still running is skipped.",
            required: true
        ),
        KeyDescriptor(
            "at_start",
            .boolean,
            default: "false",
            "Whether the first run begins as soon as the configuration is in force."
        ),
    ]

    static let prefetch = SectionDescriptor(
        name: "prefetch[]",
        keys: [
            KeyDescriptor("name", .text(.word), "The name in logs and in 'drydock jobs'.", required: true),
            KeyDescriptor(
                "urls",
                .list(.text(.batchURL)),
                "What is downloaded: paths, or URLs, as clients ask for them."
            ),
            KeyDescriptor(
                "file",
                .path,
                "A list of what is downloaded, read at every run; each line has a URL or a JSON object."
            ),
        ] + schedule + [
            KeyDescriptor(
                "concurrency",
                .integer(1...1000),
                default: "10",
                "The number of items under way at the same time."
            ),
            KeyDescriptor(
                "on_error",
                .choice(BatchFailurePolicy.allCases.map(\.rawValue)),
                default: "continue",
                "What happens to the other items when an item fails."
            ),
            KeyDescriptor(
                "force",
                .boolean,
                default: "false",
                "Whether origins are asked even if a fresh response is stored."
            ),
        ]
    )
}
