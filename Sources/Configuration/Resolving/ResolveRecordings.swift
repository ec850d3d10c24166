// Resolves where answers come from, and the recordings that this needs.

import Policies

extension RecordingConfiguration {
    package init() { self.init(SectionReader(nothingOf: KeyTable.service)) }

    /// - Parameter reader: of a service or an endpoint.
    init(_ reader: SectionReader) {
        let section = reader.section("recordings")
        let (match, redact) = (section.section("match"), section.section("redact"))
        // Demo answers come before the origin, where they are switched on.
        source = Self.isDemo(reader) ? .live : reader.choice(always: "source")
        from = reader.texts("from").compactMap(AnswerRung.init)
        folder = section.text("dir")
        rules = RecordingRules(
            fields: match.texts("fields"),
            matchesBody: match.bool("body"),
            ignoredQuery: match.texts("ignore_query"),
            redactedFields: redact.texts("fields"),
            redactedQuery: redact.texts("query"),
            redactedMembers: redact.texts("json").compactMap(MemberPath.read),
            maximumSize: section.bytes(always: "max_size"),
            onFailure: section.choice(always: "on_failure")
        )
        rules.matchesCredentials = match.bool("credentials")
        rules.matchesVary = match.bool("vary")
    }
}

/// The path of a member in a JSON document.
enum MemberPath {
    /// `user.token`, and as other tools write it: `$.user.token`, `$.items[*].token`.
    /// - Returns: nil where it is none.
    static func read(_ text: String) -> [String]? {
        var text = text[...]
        if text == "$" || text.hasPrefix("$.") { text = text.dropFirst(2) }
        let names = text.replacing("[*]", with: "").split(separator: ".", omittingEmptySubsequences: false)
        let isPath = names.allSatisfy { !$0.isEmpty && $0 != "*" && !$0.contains { "[]$".contains($0) } }
        return isPath && !text.hasPrefix("/") ? names.map(String.init) : nil
    }
}

extension RecordingConfiguration {
    /// Whether `source` is the word for demo answers, which `demo.enabled` switches on, too.
    static let demoSource = "demo"

    static func isDemo(_ reader: SectionReader) -> Bool { reader.text("source") == demoSource }
}

extension Resolver {
    /// - Parameters:
    ///   - reader: of a service or an endpoint, with what it inherited.
    ///   - own: the same without that.
    mutating func recording(_ reader: SectionReader, own: SectionReader) -> RecordingConfiguration {
        let result = RecordingConfiguration(reader)
        let section = own.section("recordings")
        for value in section.section("redact").items("json") {
            guard case .leaf(let leaf) = value.content, MemberPath.read(leaf.text) == nil else { continue }
            fail(
                value.place,
                "'recordings.redact.json' names members by their path, such as user.token or items.token for one in each of a list; '\(leaf.text)' is no such path"
            )
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
