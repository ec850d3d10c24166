// Resolves where answers come from, and the recordings that this needs.

import Policies

extension RecordingConfiguration {
    package init() { self.init(SectionReader(nothingOf: KeyTable.service)) }

    /// - Parameter reader: of a service or an endpoint.
    init(_ reader: SectionReader) {
        let section = reader.section("recordings")
        let (match, redact) = (section.section("match"), section.section("redact"))
        source = reader.choice(always: "source")
        from = reader.texts("from").compactMap(AnswerRung.init)
        folder = section.text("dir")
        rules = RecordingRules(
            fields: match.texts("fields"),
            matchesBody: match.bool("body"),
            ignoredQuery: match.texts("ignore_query"),
            redactedFields: redact.texts("fields"),
            redactedQuery: redact.texts("query"),
            redactedMembers: redact.texts("json").map { $0.split(separator: ".").map(String.init) },
            maximumSize: section.bytes(always: "max_size"),
            onFailure: section.choice(always: "on_failure")
        )
    }
}

extension Resolver {
    /// - Parameters:
    ///   - reader: of a service or an endpoint, with what it inherited.
    ///   - own: the same without that.
    mutating func recording(_ reader: SectionReader, own: SectionReader) -> RecordingConfiguration {
        let result = RecordingConfiguration(reader)
        let section = own.section("recordings")
        for value in section.section("redact").items("json") {
            guard case .leaf(let leaf) = value.content, leaf.text.split(separator: ".").isEmpty else { continue }
            fail(value.place, "'recordings.redact.json' names members, such as user.token; '\(leaf.text)' names none")
        }
        guard result.source != .live else { return result }
        guard let folder = result.folder else {
            if own.entry("source") != nil || own.entry("recordings") != nil {
                fail(
                    place(own, "source"),
                    "'source: \(result.source.rawValue)' needs a folder for recordings; add recordings: { dir: ./recordings }"
                )
            }
            return result
        }
        if result.source == .replay, let problem = FileChecks.isFolder(folder),
            let place = reader.section("recordings").place("dir")
        {
            fail(place, file: "'recordings.dir' \(problem)")
        }
        return result
    }
}
