// The content of demo answers (a file, a body of the configuration, a template, a collection), and checks of texts that
// look like templates or patterns but are compared or sent unchanged.

import DemoMode
import Matching

extension Resolver {
    /// The statuses whose answers have no body.
    static let bodilessStatuses = [204, 205, 304]

    /// Reads the content of an answer.
    /// - Parameters:
    ///   - label: the name of the section in messages.
    ///   - answer: the answer, which has its status already, and the flag for a template.
    /// - Returns: whether the section names a content.
    mutating func content(
        _ reader: SectionReader,
        _ folder: DemoFolder,
        of label: String,
        into answer: inout DemoAnswerConfiguration
    ) -> Bool {
        let named = ["file", "body", "json", "crud", "events"].filter { reader.entry($0) != nil }
        if named.count > 1 {
            fail(
                position(reader, named[1]),
                "'\(label).\(named[0])' and '\(label).\(named[1])' exclude each other; keep one of them"
            )
            return true
        }
        answer.file = demoFile(reader, "file", folder)
        if let text = reader.text("body") { answer.inline = .text(text) }
        if case .tree(let tree)? = reader.leaf("json")?.scalar { answer.inline = .json(tree) }
        if reader.entry("crud") != nil { answer.collection = collection(reader.section("crud"), folder) }
        if reader.entry("events") != nil { answer.events = events(reader, folder) }
        guard let key = named.first else { return false }
        if Self.bodilessStatuses.contains(answer.status) {
            fail(
                position(reader, key),
                "an answer with status \(answer.status) has no body (RFC 9110); remove '\(label).\(key)', or change the status"
            )
        }
        checkTemplate(reader, answer, of: label)
        return true
    }

    private mutating func collection(_ reader: SectionReader, _ folder: DemoFolder) -> CollectionConfiguration? {
        guard let file = demoFile(reader, "file", folder) else { return nil }
        let result = CollectionConfiguration(
            file: file,
            id: reader.text(always: "id"),
            newIDs: reader.choice(always: "new_ids")
        )
        // A file that cannot be read has been reported already.
        guard let loaded = try? DemoFile.load(path: file) else { return result }
        do throws(CollectionFileError) {
            _ = try DemoCollection(loaded, idName: result.id)
        } catch {
            fail(position(reader, "file"), file: "the file \(file) is no collection: \(error)")
        }
        return result
    }

    /// Reports the first mistake of a template, with its position in the file if the template is one.
    mutating func checkTemplate(_ reader: SectionReader, _ answer: DemoAnswerConfiguration, of label: String) {
        guard let source = DemoTemplate.source(of: answer) else { return }
        do throws(TemplateError) {
            _ = try DemoTemplate(source, escaping: .none)
        } catch {
            if let file = answer.file {
                let position = SourcePosition(file: file, line: error.line, column: error.column)
                fail(position, file: "the template is wrong: \(error.message)")
                return
            }
            let key = reader.entry("json") == nil ? "body" : "json"
            fail(position(reader, key), "the template of '\(label).\(key)' is wrong at \(error)")
        }
    }
}

extension DemoTemplate {
    /// The source of an answer that is a template; nil for another answer, or if the file cannot be read.
    fileprivate static func source(of answer: DemoAnswerConfiguration) -> Source? {
        if let file = answer.file {
            guard answer.isTemplate || isTemplate(path: file), let loaded = try? DemoFile.load(path: file) else {
                return nil
            }
            return .text(String(decoding: loaded.bytes, as: UTF8.self))
        }
        guard answer.isTemplate else { return nil }
        switch answer.inline {
        case .text(let text)?: return .text(text)
        case .json(let tree)?: return .json(tree)
        case nil: return nil
        }
    }
}

extension Resolver {
    /// Reports fields that look like templates: fields of an answer are sent unchanged.
    /// - Parameters:
    ///   - reader: a section with `headers`.
    ///   - label: the name of the section in messages.
    mutating func checkFields(_ reader: SectionReader, of label: String) {
        for entry in reader.map("headers") {
            let values: [Value] = if case .list(let values) = entry.value.content { values } else { [entry.value] }
            for value in values {
                guard case .leaf(let leaf) = value.content, case .text(let text) = leaf.scalar,
                    let begin = text.firstRange(of: "{{"), text[begin.upperBound...].contains("}}")
                else { continue }
                fail(
                    value.position,
                    "'\(label).headers.\(entry.key)' looks like a template, and fields are sent as they stand;"
                        + " write the value itself, or a rule for each value"
                )
            }
        }
    }

    /// Reports paths that look like patterns: a path is compared literally.
    /// - Parameter condition: a section `when`.
    mutating func checkPath(_ condition: SectionReader) {
        guard let value = condition.entry("path")?.value else { return }
        checkPath(value, section: KeyTable.textTest)
    }

    private mutating func checkPath(_ value: Value, section: SectionDescriptor) {
        guard case .section(let entries) = value.content else { return }
        let reader = SectionReader(entries: entries, section: section)
        for key in ["is", "one_of"] {
            guard let position = reader.position(key) else { continue }
            let texts = key == "is" ? reader.text(key).map { [$0] } ?? [] : reader.texts(key)
            guard let path = texts.first(where: PathShape.looksLikePattern) else { continue }
            fail(
                position,
                "'demo.rules[].when.path' '\(path)' looks like a pattern, and is compared as it stands;"
                    + " write { matches: '\(PathShape.expression(path))' }, or an endpoint with a path of parameters"
            )
        }
        if let value = reader.entry("not")?.value { checkPath(value, section: KeyTable.textTest) }
    }
}
