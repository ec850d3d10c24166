// Purges that the daemon makes on a schedule.

import Matching

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

/// A purge on a schedule.
package struct PurgeConfiguration: Sendable, Equatable {
    /// The age in seconds beyond which responses are purged; nil if the age does not count.
    package var olderThan: Int64?
    package var tag: String?
    /// The text with which the URLs of purged responses begin; nil for any.
    package var prefix: String?
    /// The pattern that the whole URLs of purged responses match; nil for any.
    package var glob: String?
    /// The service to whose stored responses the purge is limited; nil for all services.
    package var service: String?
    /// Whether responses become stale instead of being removed. Default: false.
    package var isSoft: Bool
    package var schedule: ScheduleConfiguration
}

extension PurgeConfiguration {
    package init(schedule: ScheduleConfiguration) {
        self.init(schedule: schedule, SectionReader(nothingOf: KeyTable.purge))
    }

    init(schedule: ScheduleConfiguration, _ reader: SectionReader) {
        self.schedule = schedule
        isSoft = reader.bool("soft")
    }
}

extension Resolver {
    /// Reads and checks the entries of `purge`.
    /// - Parameter services: the names of all services.
    mutating func purges(_ root: SectionReader, services: [String]) -> [PurgeConfiguration] {
        root.items("purge").compactMap { value in
            guard case .section(let entries) = value.content, !broken.contains(value.position) else { return nil }
            let reader = SectionReader(entries: entries, section: KeyTable.purge)
            guard let schedule = schedule(reader, "purge[]") else { return nil }
            var result = PurgeConfiguration(schedule: schedule, reader)
            result.olderThan = reader.seconds("older_than")
            result.tag = text(reader, "tag")
            result.prefix = text(reader, "prefix")
            result.glob = text(reader, "glob")
            result.service = reader.text("service")
            if let name = result.service, !services.contains(name) {
                let nearest = Suggestions.nearest(to: name, among: services).map { "; did you mean '\($0)'?" } ?? ""
                fail(
                    position(reader, "service"),
                    "'purge[].service' names a service that does not exist: '\(name)'\(nearest)"
                )
            }
            if ["older_than", "tag", "prefix", "glob"].allSatisfy({ reader.entry($0) == nil }) {
                fail(
                    value.position,
                    "this entry of 'purge' purges nothing; give 'older_than', 'tag', 'prefix' or 'glob'"
                )
            }
            return result
        }
    }

    private mutating func text(_ reader: SectionReader, _ key: String) -> String? {
        guard let text = reader.text(key) else { return nil }
        if text.isEmpty {
            fail(position(reader, key), "'purge[].\(key)' is empty and would match everything; leave it out")
        }
        return text
    }
}
