// Resolves purges on a schedule from decoded entries.

import Matching

extension Resolver {
    /// - Parameter services: the names of all services.
    mutating func purges(_ root: SectionReader, services: [String]) -> [PurgeConfiguration] {
        root.items("purge").compactMap { value in
            guard case .section(let entries) = value.content, !broken.contains(value.place) else { return nil }
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
                    place(reader, "service"),
                    "'purge[].service' names a service that does not exist: '\(name)'\(nearest)"
                )
            }
            if ["older_than", "tag", "prefix", "glob"].allSatisfy({ reader.entry($0) == nil }) {
                fail(value.place, "this entry of 'purge' purges nothing; give 'older_than', 'tag', 'prefix' or 'glob'")
            }
            return result
        }
    }

    private mutating func text(_ reader: SectionReader, _ key: String) -> String? {
        guard let text = reader.text(key) else { return nil }
        if text.isEmpty {
            fail(place(reader, key), "'purge[].\(key)' is empty and would match everything; leave it out")
        }
        return text
    }
}
