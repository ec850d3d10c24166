// The output of `drydock config show` and `drydock config default`.

import Content
import Mapping

extension Configuration {
    /// The configuration in force in the form of a file: every key with its value, inheritance resolved, secrets
    /// hidden.
    package func shown() -> String { text(hidingSecrets: true) }

    /// The configuration in the form of a file, with or without its secrets; with them it can be read back.
    func text(hidingSecrets: Bool) -> String {
        var writer = ConfigurationWriter(hidingSecrets: hidingSecrets)
        let entries = origin.followed.reduce(origin.root) { $0.filled($1.key, with: $1.leaf) }
        let hidden: Set<String> = ["defaults", "include", "services"]
        let keys = KeyTable.root.keys.filter { !hidden.contains($0.name) }
        writer.section(SectionDescriptor(name: KeyTable.root.name, keys: keys), entries)
        let trees = origin.services.map { entries in
            Value(position: SourcePosition(file: "", line: 1, column: 1), content: .section(entries))
        }
        writer.sections("services", KeyTable.service, trees)
        return writer.lines.joined(separator: "\n") + "\n"
    }

    /// The output of `drydock config default`: every key with its default and description; settings that are off by
    /// default are comments.
    package static var defaultText: String {
        var lines = ["# yaml-language-server: $schema=drydock.schema.json"]
        describe(KeyTable.root, indent: "", commented: false, into: &lines)
        return lines.joined(separator: "\n") + "\n"
    }

    /// The sections that switch something on, or that need another key beside them.
    private static let offWithoutOthers: Set = [
        "admin", "tls", "disk", "defaults", "services", "max_queue", "faults", "misbehave", "events",
    ]

    private static func describe(
        _ section: SectionDescriptor,
        indent: String,
        commented: Bool,
        into lines: inout [String]
    ) {
        for key in section.keys {
            // A key without a default has no effect until it is set.
            let below = key.kind.section
            let isOptional = below?.keys.contains { $0.required } ?? false
            let starts = isOptional || below != nil && Self.offWithoutOthers.contains(key.name)
            let off = commented || starts || (below == nil && key.defaultText == nil)
            let lead = (off ? "# " : "") + indent
            guard let below else {
                lines.append("\(lead)\(key.name): \(key.defaultText ?? "…")    # \(key.doc)")
                continue
            }
            lines.append("\(lead)\(key.name):    # \(key.doc)")
            if key.kind.isList {
                lines.append("\(lead)  -")
                describe(below, indent: indent + "    ", commented: off, into: &lines)
            } else if key.name == "defaults" {
                lines.append("\(lead)  … as in services, without name, match, base_url and endpoints")
            } else {
                describe(below, indent: indent + "  ", commented: off, into: &lines)
            }
        }
    }
}

/// Writes decoded entries as YAML.
struct ConfigurationWriter {
    let hidingSecrets: Bool
    private(set) var lines: [String] = []

    init(hidingSecrets: Bool) { self.hidingSecrets = hidingSecrets }

    /// Writes every key of the section with its given value, or else with its default.
    mutating func section(_ section: SectionDescriptor, _ entries: [Entry], indent: String = "") {
        let reader = SectionReader(entries: entries, section: section)
        for key in section.keys {
            switch key.kind {
            case .section(let below), .shorthand(let below, key: _):
                // An absent section is either off, or has all defaults; only the latter is shown.
                let given = reader.entry(key.name) != nil
                guard given || !(below.keys.contains(where: \.required) || below.replaces || Self.isSwitch(key.name))
                else { continue }
                let mark = lines.count
                lines.append("\(indent)\(key.name):")
                self.section(below, reader.section(key.name).entries, indent: indent + "  ")
                if lines.count == mark + 1 { lines.removeLast() }
            case .word(_, or: .mappingRule):
                guard let value = reader.value(key.name) else { continue }
                lines.append("\(indent)\(key.name): \(rule(value))")
            case .sections(let below), .rules(let below, key: _):
                sections(key.name, below, reader.items(key.name), indent: indent)
            default:
                guard let value = reader.value(key.name) else { continue }
                lines.append("\(indent)\(key.name): \(inline(value, secret: key.secret))")
            }
        }
    }

    mutating func sections(_ name: String, _ section: SectionDescriptor, _ values: [Value], indent: String = "") {
        guard !values.isEmpty else { return }
        lines.append("\(indent)\(name):")
        for value in values {
            guard case .section(let entries) = value.content else { continue }
            let first = lines.count
            self.section(section, entries, indent: indent + "    ")
            guard first < lines.count else { continue }
            lines[first] = indent + "  - " + lines[first].dropFirst(indent.count + 4)
        }
    }

    /// Whether the presence of the section alone switches something on.
    private static func isSwitch(_ name: String) -> Bool {
        ["disk", "failure", "max_queue", "outage", "params_as", "body", "events"].contains(name)
    }

    private func inline(_ value: Value, secret: Bool) -> String {
        switch value.content {
        case .leaf(let leaf):
            // A boolean beside a secret reveals nothing of it.
            if case .bool = leaf.scalar { return Self.scalar(leaf) }
            // The host and the port of a proxy are no secrets.
            if case .proxies = leaf.scalar, hidingSecrets {
                return Self.quotedIfNeeded(ProxyReading.masked(leaf.text))
            }
            return hidingSecrets && secret ? Self.hidden : Self.scalar(leaf)
        case .list(let values):
            // One value that is written without brackets is shown without them.
            if values.count == 1, values[0].position == value.position { return inline(values[0], secret: secret) }
            return "[" + values.map { inline($0, secret: secret) }.joined(separator: ", ") + "]"
        case .map(let entries), .section(let entries):
            if entries.isEmpty { return "{}" }
            // A section that is written as the value of one of its keys is shown so.
            if case .section = value.content, entries.count == 1, entries[0].position == value.position {
                return inline(entries[0].value, secret: secret)
            }
            let members = entries.map { entry in
                "\(Self.quotedIfNeeded(entry.key)): \(inline(entry.value, secret: secret || isSecret(entry)))"
            }
            return "{ " + members.joined(separator: ", ") + " }"
        }
    }

    /// A rule of a mapping as text. Its names are members of documents, and reveal no secrets; a text that looks like a
    /// number stays a text.
    private func rule(_ value: Value) -> String {
        switch value.content {
        case .leaf(let leaf):
            if hidingSecrets, leaf.fromEnvironment { return Self.hidden }
            if case .text = leaf.scalar, MappingRule.isNumber(leaf.text) { return "\"\(leaf.text)\"" }
            return Self.scalar(leaf)
        case .list(let values): return "[" + values.map { rule($0) }.joined(separator: ", ") + "]"
        case .map(let entries), .section(let entries):
            let members = entries.map { "\(Self.quotedIfNeeded($0.key)): \(rule($0.value))" }
            return members.isEmpty ? "{}" : "{ " + members.joined(separator: ", ") + " }"
        }
    }

    static let hidden = "\"(hidden)\""

    /// Whether a field or a query item carries credentials by its name, or comes from the environment, as secrets do.
    private func isSecret(_ entry: Entry) -> Bool {
        var content = entry.value.content
        var said: Bool?
        if case .section(let entries) = content {
            let item = SectionReader(entries: entries, section: KeyTable.queryItem)
            if item.entry("secret") != nil { said = item.bool("secret") }
            content = item.entry("value")?.value.content ?? content
        }
        let name = entry.key.lowercased()
        let telling = ["authorization", "cookie", "token", "secret", "password", "api-key", "api_key", "apikey"]
        if said ?? (SecretNames.contains(entry.key) || telling.contains(where: name.contains)) { return true }
        switch content {
        case .leaf(let leaf):
            if case .tree(let tree) = leaf.scalar, tree.hasSecretNames { return true }
            return leaf.fromEnvironment
        case .list(let values):
            return values.contains { value in
                if case .leaf(let leaf) = value.content { leaf.fromEnvironment } else { false }
            }
        default: return false
        }
    }

    private static func scalar(_ leaf: Leaf) -> String {
        switch leaf.scalar {
        case .bool(let bool): String(bool)
        case .int: leaf.text
        case .tree: leaf.text.replacing("${", with: "$${")
        default: quotedIfNeeded(leaf.text)
        }
    }

    /// The text without quotes if YAML reads it back as the same text in every position, otherwise with quotes.
    private static func quotedIfNeeded(_ text: String) -> String {
        let plain = text.utf8.allSatisfy { TextRule.isAlphanumeric($0) || "/_.%+-:".utf8.contains($0) }
        let words = ["null", "true", "false", "on", "off", "yes", "no"]
        guard plain, let first = text.utf8.first, let last = text.utf8.last, first != 45, first != 37, first != 58,
            last != 58,
            !words.contains(text.lowercased())
        else { return JSONText.quoted(text.replacing("${", with: "$${")) }
        return text
    }
}
