// Checks a YAML tree against the table of keys and turns it into typed values, collecting every error.

import Matching
import Trees

/// Decodes the files of one configuration.
struct Decoder {
    let environment: [String: String]
    private(set) var errors: [ConfigurationError] = []
    /// The sections and lists with an error; a key that they lack is no further error.
    private(set) var broken: Set<SourcePosition> = []

    init(environment: [String: String]) { self.environment = environment }

    /// Decodes a mapping whose keys the table knows.
    /// - Parameter label: the name of the mapping in messages; empty for the file itself.
    mutating func section(_ node: SourceNode, _ section: SectionDescriptor, label: String) -> [Entry] {
        if node.isNull { return [] }
        let before = errors.count
        var entries: [Entry] = []
        if case .mapping(let pairs) = node.content {
            for (key, value) in unique(pairs, sameCase: true) { add(key, value, section, label, to: &entries) }
        } else {
            fail(
                node.position,
                label,
                "\(label.isEmpty ? "the file " : "")takes a mapping of keys (\(section.keys.map(\.name).joined(separator: ", "))), not \(Self.word(node))"
            )
        }
        if errors.count == before {
            for key in section.keys where key.required && !entries.contains(where: { $0.key == key.name }) {
                fail(
                    node.position,
                    label,
                    "needs '\(key.name)' (\(Self.phrase(key.doc))), which is not set; set it"
                )
            }
        }
        if errors.count > before { broken.insert(node.position) }
        return entries
    }

    private mutating func add(
        _ key: (text: String, position: SourcePosition),
        _ node: SourceNode,
        _ section: SectionDescriptor,
        _ label: String,
        to entries: inout [Entry]
    ) {
        guard let descriptor = section.key(key.text) else {
            if key.text.hasPrefix("x-") {
                if section.hasOwnKeys { return }
                fail(
                    key.position,
                    "",
                    "unknown key '\(key.text)'; keys of your own (x-...) stand at the top of a file, in a service or in an endpoint"
                )
            } else if key.text == "<<" {
                fail(
                    key.position,
                    "",
                    "merge keys are not supported; put settings that services share under 'defaults'"
                )
            } else if section.name == KeyTable.included.name, KeyTable.root.key(key.text) != nil {
                fail(
                    key.position,
                    "",
                    "'\(key.text)' belongs in the main file; an included file contains only 'services'"
                )
            } else {
                fail(key.position, "", "unknown key '\(key.text)'; \(Suggestions.help(forKey: key.text, in: section))")
            }
            return
        }
        let inner = label.isEmpty ? key.text : "\(label).\(key.text)"
        if node.isNull {
            switch descriptor.kind {
            case .section, .sections, .rules, .map, .list: return
            case _ where descriptor.kind.takesNull && node.isWrittenNull: break
            default:
                let position = node.isWrittenNull ? node.position : key.position
                fail(position, inner, "has no value; write one, or remove the key")
                return
            }
        }
        if let value = value(node, descriptor.kind, label: inner) {
            entries.append(Entry(key: key.text, position: key.position, value: value))
        }
    }

    private mutating func value(_ node: SourceNode, _ kind: ValueKind, label: String) -> Value? {
        switch kind {
        case .section(let section):
            return Value(position: node.position, content: .section(self.section(node, section, label: label)))
        case .shorthand(let section, let key):
            if case .mapping = node.content { return value(node, .section(section), label: label) }
            guard let descriptor = section.key(key), let only = value(node, descriptor.kind, label: label) else {
                return nil
            }
            let entry = Entry(key: key, position: node.position, value: only)
            return Value(position: node.position, content: .section([entry]))
        case .rules(let section, let key):
            let one = ValueKind.shorthand(section, key: key)
            if case .sequence = node.content { return list(node, one, label: label, kind.example) }
            guard let only = value(node, one, label: label) else { return nil }
            return Value(position: node.position, content: .list([only]))
        case .sections(let section):
            return list(node, .section(section), label: label, kind.example)
        case .list(let element):
            return list(node, element, label: label, kind.example)
        case .oneOrMore(let element):
            if case .sequence = node.content { return list(node, element, label: label, kind.example) }
            guard let only = value(node, element, label: label) else { return nil }
            return Value(position: node.position, content: .list([only]))
        case .word(let word, or: .oneOrMore(let element)):
            if case .sequence = node.content { return list(node, element, label: label, kind.example) }
            guard let only = scalar(node, .word(word, or: element), label: label) else { return nil }
            if case .leaf(let leaf) = only.content, leaf.scalar == Scalar.none { return only }
            return Value(position: node.position, content: .list([only]))
        case .weighted:
            if case .mapping = node.content { return map(node, .status, .share, label: label) }
            return scalar(node, kind, label: label)
        case .tree: return tree(node, label: label)
        case .map(let keys, let element):
            return map(node, keys, element, label: label)
        case .word(_, or: .mappingRule):
            if case .mapping = node.content { return rule(node, label: label) }
            return scalar(node, kind, label: label)
        default:
            return scalar(node, kind, label: label)
        }
    }

    private mutating func list(_ node: SourceNode, _ kind: ValueKind, label: String, _ what: String) -> Value? {
        guard case .sequence(let nodes) = node.content else {
            fail(
                node.position,
                label,
                "takes \(what), not \(Self.word(node)); write it in brackets, or one per line after '- '"
            )
            return nil
        }
        let before = errors.count
        let values = nodes.compactMap { element in
            if element.isNull, !kind.takesNull || !element.isWrittenNull {
                fail(element.position, label, "has an empty item; write a value, or remove it")
                return Value?.none
            }
            return value(element, kind, label: label)
        }
        if errors.count > before { broken.insert(node.position) }
        return Value(position: node.position, content: .list(values))
    }

    private mutating func map(_ node: SourceNode, _ keys: MapKey, _ kind: ValueKind, label: String) -> Value? {
        guard case .mapping(let pairs) = node.content else {
            fail(node.position, label, "takes a mapping such as \(keys.example), not \(Self.word(node))")
            return nil
        }
        var sameCase = true
        if case .fieldName = keys { sameCase = false }
        var entries: [Entry] = []
        for (key, node) in unique(pairs, sameCase: sameCase) {
            do { try keys.check(key.text) } catch {
                fail(key.position, label, error.message)
                continue
            }
            if node.isNull, !kind.takesNull || kind.isShorthand && !node.isWrittenNull {
                fail(
                    key.position,
                    "\(label).\(key.text)",
                    "has no value; write one (\"\" for an empty one), or remove the key"
                )
            } else if let value = value(node, kind, label: "\(label).\(key.text)") {
                entries.append(Entry(key: key.text, position: key.position, value: value))
            }
        }
        return Value(position: node.position, content: .map(entries))
    }

    private mutating func tree(_ node: SourceNode, label: String) -> Value? {
        do throws(ScalarProblem) {
            let (tree, found) = try node.tree(environment)
            // The tree is kept as JSON, which is YAML, too, so that `config show` prints a file that can be read.
            let text = String(decoding: JSONWriter.bytes(tree), as: UTF8.self)
            return Value(
                position: node.position,
                content: .leaf(Leaf(text: text, fromEnvironment: found, scalar: .tree(tree)))
            )
        } catch {
            fail(node.position, label, error.message, isOfProcess: error.isOfProcess)
            return nil
        }
    }

    /// Decodes a rule of a mapping without interpreting it.
    private mutating func rule(_ node: SourceNode, label: String) -> Value? {
        switch node.content {
        case .scalar: return scalar(node, .mappingRule, label: label)
        case .sequence(let nodes):
            return Value(position: node.position, content: .list(nodes.compactMap { rule($0, label: label) }))
        case .mapping(let pairs):
            let entries: [Entry] = unique(pairs, sameCase: true).compactMap { key, node in
                rule(node, label: "\(label).\(key.text)").map {
                    Entry(key: key.text, position: key.position, value: $0)
                }
            }
            return Value(position: node.position, content: .map(entries))
        }
    }

    private mutating func scalar(_ node: SourceNode, _ kind: ValueKind, label: String) -> Value? {
        guard case .scalar(let written, let plain) = node.content else {
            fail(node.position, label, "takes \(kind.example), not \(Self.word(node))")
            return nil
        }
        do {
            let (text, found) = try Expansion.expand(written, environment)
            let leaf = try ScalarDecoding.leaf(
                text,
                plain: plain || found,
                kind,
                file: node.position.file,
                environment: environment
            )
            return Value(
                position: node.position,
                content: .leaf(Leaf(text: leaf.text, fromEnvironment: found, scalar: leaf.scalar))
            )
        } catch {
            fail(node.position, label, error.message, isOfProcess: error.isOfProcess)
            return nil
        }
    }

    /// The pairs with the text and the position of their keys. Keys that occur twice and keys that are no text are
    /// reported.
    private mutating func unique(
        _ pairs: [(key: SourceNode, value: SourceNode)],
        sameCase: Bool
    ) -> [(key: (text: String, position: SourcePosition), value: SourceNode)] {
        var first: [String: SourcePosition] = [:]
        var result: [(key: (text: String, position: SourcePosition), value: SourceNode)] = []
        for (key, value) in pairs {
            guard case .scalar(let text, plain: _) = key.content else {
                fail(
                    key.position,
                    "",
                    "a key is a word, not \(Self.word(key)); put quotes around a text with brackets or braces"
                )
                continue
            }
            if let earlier = first.updateValue(key.position, forKey: sameCase ? text : text.lowercased()) {
                fail(key.position, "", "duplicate key '\(text)', first on line \(earlier.line); keep one")
                continue
            }
            result.append(((text, key.position), value))
        }
        return result
    }

    private mutating func fail(
        _ position: SourcePosition,
        _ label: String,
        _ message: String,
        isOfProcess: Bool = false
    ) {
        let text = label.isEmpty ? message : "'\(label)' \(message)"
        errors.append(ConfigurationError(position: position, message: text, isOfProcess: isOfProcess))
    }

    /// The first part of a sentence, for use inside another one.
    private static func phrase(_ sentence: String) -> String {
        let part = sentence.hasSuffix(".") ? sentence.dropLast() : sentence[...]
        return part.prefix(1).lowercased() + part.dropFirst().prefix { $0 != ";" }
    }

    private static func word(_ node: SourceNode) -> String {
        switch node.content {
        case .scalar where node.isNull: "nothing"
        case .scalar(let text, plain: _): "'\(text.prefix(40))'"
        case .sequence: "a list"
        case .mapping: "a mapping"
        }
    }
}

extension ValueKind {
    /// Whether null is a value, and not a missing one.
    fileprivate var takesNull: Bool {
        switch self {
        case .tree: true
        case .shorthand(let section, let key): section.key(key)?.kind.takesNull ?? false
        default: false
        }
    }

    fileprivate var isShorthand: Bool {
        if case .shorthand = self { true } else { false }
    }
}

extension Suggestions {
    /// The end of a message about an unknown key: the same key one level deeper, the nearest key of this section, or
    /// the list of known keys.
    static func help(forKey key: String, in section: SectionDescriptor) -> String {
        let known = section.keys.map(\.name)
        for candidate in section.keys where candidate.kind.section?.key(key) != nil {
            return "did you mean '\(candidate.name).\(key)'?"
        }
        if let near = nearest(to: key, among: known) { return "did you mean '\(near)'?" }
        return "known here: \(known.joined(separator: ", "))"
    }
}
