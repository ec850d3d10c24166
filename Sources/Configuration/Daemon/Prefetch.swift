// Prefetches: lists of URLs that the daemon downloads on a schedule; and what every schedule has.

package import Policies

extension KeyTable {
    /// The keys that every scheduled feature has.
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

/// The schedule of a repeated piece of work.
package struct ScheduleConfiguration: Sendable, Equatable {
    /// The nanoseconds from one run to the next, at least 1 s.
    package var every: UInt64
    /// Whether the first run begins as soon as the configuration is in force; otherwise after `every`. Default: false.
    package var atStart: Bool
}

/// A batch that is downloaded on a schedule.
package struct PrefetchConfiguration: Sendable, Equatable {
    /// The name in logs and in `drydock jobs`, unique among the prefetches.
    package var name: String
    /// The items as clients would request them: paths, or absolute URLs.
    package var urls: [String]
    /// The absolute path of a list that is read at every run, whose items follow `urls`; nil for none.
    package var file: String?
    package var schedule: ScheduleConfiguration
    /// The most items under way at the same time. Default: 10.
    package var concurrency: Int
    /// The consequence of a failed item for the others. Default: they continue.
    package var onError: BatchFailurePolicy
    /// Whether origins are asked even if a fresh response is stored. Default: false.
    package var force: Bool
}

extension ScheduleConfiguration {
    package init(every: UInt64) { self.init(every: every, SectionReader(nothingOf: KeyTable.prefetch)) }

    /// Reads a schedule.
    /// - Parameter reader: the section of the scheduled feature.
    init(every: UInt64, _ reader: SectionReader) {
        self.every = every
        atStart = reader.bool("at_start")
    }
}

extension PrefetchConfiguration {
    init(name: String, schedule: ScheduleConfiguration, _ reader: SectionReader) {
        self.name = name
        self.schedule = schedule
        urls = reader.texts("urls")
        file = reader.text("file")
        concurrency = reader.int(always: "concurrency")
        onError = reader.choice(always: "on_error")
        force = reader.bool("force")
    }
}

extension Resolver {
    mutating func prefetches(_ root: SectionReader) -> [PrefetchConfiguration] {
        var names: Set<String> = []
        return root.items("prefetch").compactMap { value in
            guard case .section(let entries) = value.content, !broken.contains(value.position) else { return nil }
            let reader = SectionReader(entries: entries, section: KeyTable.prefetch)
            guard let name = reader.text("name"), let schedule = schedule(reader, "prefetch[]") else { return nil }
            if !names.insert(name).inserted {
                fail(
                    position(reader, "name"),
                    "'\(name)' is the name of an earlier entry of 'prefetch'; choose another name"
                )
            }
            let result = PrefetchConfiguration(name: name, schedule: schedule, reader)
            if let file = result.file, let problem = FileChecks.readable(file) {
                fail(position(reader, "file"), file: "'prefetch[].file' \(problem)")
            }
            if result.urls.isEmpty, result.file == nil {
                fail(value.position, "prefetch '\(name)' downloads nothing; give 'urls' or 'file'")
            }
            return result
        }
    }

    /// Reads and checks the schedule of a section; nil if it has none.
    /// - Parameter section: the name of the section in messages.
    mutating func schedule(_ reader: SectionReader, _ section: String) -> ScheduleConfiguration? {
        guard let every = reader.nanoseconds("every") else { return nil }
        if every < 1_000_000_000 {
            fail(position(reader, "every"), "'\(section).every' leaves no time between two runs; write 1s or more")
        }
        return ScheduleConfiguration(every: every, reader)
    }
}
