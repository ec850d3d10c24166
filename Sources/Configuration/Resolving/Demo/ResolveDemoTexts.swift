// Texts of demo answers and rules that look like something which they are not: templates, and patterns of paths.

import Matching

extension Resolver {
    /// Fields of an answer are sent as they stand.
    /// - Parameters:
    ///   - reader: of a section with `headers`.
    ///   - label: of that section.
    mutating func checkFields(_ reader: SectionReader, of label: String) {
        for entry in reader.map("headers") {
            let values: [Value] = if case .list(let values) = entry.value.content { values } else { [entry.value] }
            for value in values {
                guard case .leaf(let leaf) = value.content, case .text(let text) = leaf.scalar,
                    let begin = text.firstRange(of: "{{"), text[begin.upperBound...].contains("}}")
                else { continue }
                fail(
                    value.place,
                    "'\(label).headers.\(entry.key)' looks like a template, and fields are sent as they stand;"
                        + " write the value itself, or a rule for each value"
                )
            }
        }
    }

    /// A path is compared as it stands.
    /// - Parameter condition: of a section `when`.
    mutating func checkPath(_ condition: SectionReader) {
        guard let value = condition.entry("path")?.value else { return }
        checkPath(value, section: KeyTable.textTest)
    }

    private mutating func checkPath(_ value: Value, section: SectionDescriptor) {
        guard case .section(let entries) = value.content else { return }
        let reader = SectionReader(entries: entries, section: section)
        for key in ["is", "one_of"] {
            guard let place = reader.place(key) else { continue }
            let texts = key == "is" ? reader.text(key).map { [$0] } ?? [] : reader.texts(key)
            guard let path = texts.first(where: PathShape.looksLikePattern) else { continue }
            fail(
                place,
                "'demo.rules[].when.path' '\(path)' looks like a pattern, and is compared as it stands;"
                    + " write { matches: '\(PathShape.expression(path))' }, or an endpoint with a path of parameters"
            )
        }
        if let value = reader.entry("not")?.value { checkPath(value, section: KeyTable.textTest) }
    }
}
