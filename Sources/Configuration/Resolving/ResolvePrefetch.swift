// Resolves downloads on a schedule from decoded entries.

extension Resolver {
    mutating func prefetches(_ root: SectionReader) -> [PrefetchConfiguration] {
        var names: Set<String> = []
        return root.items("prefetch").compactMap { value in
            guard case .section(let entries) = value.content, !broken.contains(value.place) else { return nil }
            let reader = SectionReader(entries: entries, section: KeyTable.prefetch)
            guard let name = reader.text("name"), let schedule = schedule(reader, "prefetch[]") else { return nil }
            if !names.insert(name).inserted {
                fail(
                    place(reader, "name"),
                    "'\(name)' is the name of an earlier entry of 'prefetch'; choose another name"
                )
            }
            let result = PrefetchConfiguration(name: name, schedule: schedule, reader)
            if let file = result.file, let problem = FileChecks.readable(file) {
                fail(place(reader, "file"), file: "'prefetch[].file' \(problem)")
            }
            if result.urls.isEmpty, result.file == nil {
                fail(value.place, "prefetch '\(name)' downloads nothing; give 'urls' or 'file'")
            }
            return result
        }
    }

    /// - Parameter section: what messages call it.
    mutating func schedule(_ reader: SectionReader, _ section: String) -> ScheduleConfiguration? {
        guard let every = reader.nanoseconds("every") else { return nil }
        if every < 1_000_000_000 {
            fail(place(reader, "every"), "'\(section).every' leaves no time between two runs; write 1s or more")
        }
        return ScheduleConfiguration(every: every, reader)
    }
}
