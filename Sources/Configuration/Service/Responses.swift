// What answers must be (`response`), and the documents that clients get in their place (`response.map`, `error.map`).

import Content
import HTTPCaching
package import Mapping
import Matching
import Policies
import Upstream

extension KeyTable {
    static let response = SectionDescriptor(
        name: "response",
        keys: [
            KeyDescriptor(
                "expect",
                .choice(ContentExpectation.allCases.map(\.rawValue)),
                default: "any",
                "Which bodies may be stored; other bodies are passed on and counted.",
                inherited: .endpoints
            ),
            KeyDescriptor(
                "type",
                .word("any", or: .oneOrMore(.text(.mediaRange))),
                default: "any",
                "Which media types answers may have, such as application/json or text/*; another type is a 502, and is not stored.",
                inherited: .endpoints
            ),
            KeyDescriptor(
                "success",
                .list(.text(.statuses)),
                default: "[2xx, 3xx]",
                "Which statuses of the origin are successes: 200, 2xx or 200..206; others are not stored, and are what error.map is for.",
                inherited: .endpoints
            ),
        ] + mapping
    )
}

extension KeyTable {
    /// The keys of mappings in `response` of services and endpoints.
    static let mapping: [KeyDescriptor] = [
        KeyDescriptor(
            "map",
            .word("none", or: .mappingRule),
            default: "none",
            "The document that clients get in the place of the origin's: names, and the key paths of their values; none switches an inherited mapping off.",
            inherited: .endpoints
        ),
        KeyDescriptor(
            "map_buffer",
            .size,
            default: "1MiB",
            "Up to this length a document is mapped before its head is sent; a longer one streams, and no element of it may be longer. Of an error as much is read at most.",
            inherited: .endpoints
        ),
    ]

    static let error = SectionDescriptor(
        name: "error",
        keys: [
            KeyDescriptor(
                "map",
                .word("none", or: .mappingRule),
                "The document that clients get in the place of a failed answer: names, and the key paths of their values; none switches an inherited mapping off.",
                inherited: .endpoints
            )
        ]
    )
}

/// The mapping of the documents of a service or an endpoint.
package struct MappingConfiguration: Sendable, Equatable {
    package var plan: MappingPlan
    /// The most bytes of a document that is mapped before its head is sent. Default: 1 MiB.
    package var buffer: Int
}

extension StatusSet {
    /// Reads the successful statuses; nil if they equal the default.
    init?(_ reader: SectionReader) {
        let usual = SectionReader(nothingOf: KeyTable.response).texts("success").compactMap(Self.range)
        let ranges = reader.texts("success").compactMap(Self.range)
        if ranges == usual { return nil }
        self.init(ranges)
    }
}

extension Resolver {
    /// Reads and checks the mapping of a service or an endpoint; nil if there is none, or if it has a mistake.
    /// - Parameters:
    ///   - reader: the section `response`.
    ///   - cache: the settings of the cache of the same service or endpoint.
    mutating func mapping(_ reader: SectionReader, _ cache: CacheConfiguration) -> MappingConfiguration? {
        guard let value = reader.value("map"), let position = reader.position("map"), !Self.isNone(value) else {
            return nil
        }
        if let expect = reader.text("expect").flatMap({ ContentExpectation(rawValue: $0) }),
            expect == .propertyList || expect == .image
        {
            fail(
                position,
                "a mapped document is JSON, but 'response.expect' is \(expect.rawValue); write json, or remove it"
            )
        }
        if cache.seed != nil {
            fail(
                position,
                "'response.map' and 'cache.seed_dir' exclude each other: a seed answers as it is; remove one of them"
            )
        }
        return plan(value, "response.map").map {
            MappingConfiguration(plan: $0, buffer: reader.bytes(always: "map_buffer"))
        }
    }

    /// Reads and checks the mapping of the failed answers of a service or an endpoint; nil if there is none, or if it
    /// has a mistake.
    /// - Parameters:
    ///   - reader: the section `error`.
    ///   - response: the section `response` of the same service or endpoint.
    mutating func errorMapping(_ reader: SectionReader, _ response: SectionReader) -> MappingConfiguration? {
        guard let value = reader.value("map"), !Self.isNone(value) else { return nil }
        let known = ErrorDocument.Member.allCases.map(\.rawValue)
        for (path, position, isConstant) in MappingRules.paths(fromRootIn: value) {
            guard let first = path.names.first.map({ String(decoding: $0, as: UTF8.self) }), !known.contains(first)
            else { continue }
            let near = Suggestions.nearest(to: first, among: known).map { "did you mean '\($0)'?" }
            let message =
                "'error.map' takes values of a document that has no '\(first)'; \(near ?? "it has \(known.joined(separator: ", "))")"
            // With a default it may be meant: the default is always the value then.
            if isConstant {
                warnings.append(ConfigurationError(position: position, message: message))
            } else {
                fail(position, message)
            }
        }
        return plan(value, "error.map").map {
            MappingConfiguration(plan: $0, buffer: response.bytes(always: "map_buffer"))
        }
    }

    private mutating func plan(_ value: Value, _ label: String) -> MappingPlan? {
        var rules = MappingRules()
        guard let root = rules.rule(value, label, depth: 0), rules.mistakes.isEmpty else {
            for mistake in rules.mistakes { fail(mistake.position, mistake.message) }
            return nil
        }
        for remark in rules.remarks {
            warnings.append(ConfigurationError(position: remark.position, message: remark.message))
        }
        return MappingPlan(root)
    }

    private static func isNone(_ value: Value) -> Bool {
        if case .leaf(let leaf) = value.content { leaf.scalar == Scalar.none } else { false }
    }
}

/// Makes mapping rules of a tree, and collects every mistake.
private struct MappingRules {
    /// The most levels of nested rules.
    private static let depthLimit = 16
    private static let keys = ["from", "each", "fields", "as", "format", "default", "missing"]
    /// The keys of which one makes a mapping a rule; a mapping without them is an object with these members.
    private static let telling: Set<String> = ["from", "each", "fields"]

    private(set) var mistakes: [(position: SourcePosition, message: String)] = []
    private(set) var remarks: [(position: SourcePosition, message: String)] = []

    private mutating func refuse(_ position: SourcePosition, _ label: String, _ message: String) {
        mistakes.append((position, "'\(label)' \(message)"))
    }

    mutating func rule(_ value: Value, _ label: String, depth: Int) -> MappingRule? {
        guard depth < Self.depthLimit else {
            refuse(value.position, label, "has more than \(Self.depthLimit) levels")
            return nil
        }
        switch value.content {
        case .leaf(let leaf):
            guard let path = path(leaf, value.position, label) else { return nil }
            return MappingRule(from: path)
        case .list:
            refuse(value.position, label, "takes a key path, or a mapping of names to key paths, not a list")
            return nil
        case .map(let entries), .section(let entries):
            if entries.contains(where: { Self.telling.contains($0.key) }) {
                return detailed(entries, value.position, label, depth: depth)
            }
            return object(entries, value.position, label, depth: depth).map { MappingRule($0) }
        }
    }

    private mutating func object(
        _ entries: [Entry],
        _ position: SourcePosition,
        _ label: String,
        depth: Int
    ) -> MappingRule.Shape? {
        if entries.isEmpty {
            refuse(position, label, "is empty; name a key path, such as { name: user.name.first }")
            return nil
        }
        var members: [MappingRule.Member] = []
        for entry in entries {
            if let rule = rule(entry.value, "\(label).\(entry.key)", depth: depth + 1) {
                members.append(MappingRule.Member(name: entry.key, rule: rule))
            }
        }
        return members.count == entries.count ? .object(members) : nil
    }

    private mutating func detailed(
        _ entries: [Entry],
        _ position: SourcePosition,
        _ label: String,
        depth: Int
    ) -> MappingRule? {
        func entry(_ key: String) -> Entry? { entries.first { $0.key == key } }
        for other in entries where !Self.keys.contains(other.key) {
            let near = Suggestions.nearest(to: other.key, among: Self.keys).map { "did you mean '\($0)'? " } ?? ""
            refuse(
                other.position,
                "\(label).\(other.key)",
                "is no key of a rule (\(Self.keys.joined(separator: ", "))); \(near)members of an object stand under 'fields'"
            )
        }
        let shapes = ["each", "fields", "as"].compactMap(entry)
        if shapes.count > 1 {
            refuse(shapes[1].position, "\(label).\(shapes[1].key)", "excludes '\(shapes[0].key)'; remove one of them")
        }
        var from: MappingPath? = .itself
        if let given = entry("from") {
            guard let leaf = leaf(given, label) else { return nil }
            from = path(leaf, given.value.position, "\(label).from")
        }
        var shape: MappingRule.Shape? = .same
        if let each = entry("each") {
            shape = rule(each.value, "\(label).each", depth: depth + 1).map { .each($0) }
        } else if let fields = entry("fields") {
            guard case .map(let members) = fields.value.content else {
                refuse(fields.value.position, "\(label).fields", "takes a mapping of names to key paths")
                return nil
            }
            shape = object(members, fields.value.position, "\(label).fields", depth: depth)
        } else {
            shape = conversion(entry("as"), entry("format"), label)
        }
        if let format = entry("format"), entry("as") == nil {
            refuse(format.position, "\(label).format", "needs 'as', which is not set; set it, or remove 'format'")
        }
        var missing = MissingValue.null
        if let given = entry("missing") {
            guard let leaf = leaf(given, label) else { return nil }
            guard let word = MissingValue(rawValue: leaf.text) else {
                refuse(given.value.position, "\(label).missing", "takes null, omit or error, not '\(leaf.text)'")
                return nil
            }
            missing = word
        }
        var standIn: [UInt8]?
        if let given = entry("default") {
            guard let text = json(given.value) else {
                refuse(given.value.position, "\(label).default", "takes a text, a number, true, false, [] or {}")
                return nil
            }
            standIn = Array(text.utf8)
            if let other = entry("missing") {
                refuse(other.position, "\(label).missing", "has no effect beside 'default'; remove one of them")
            }
        }
        guard let from, let shape, mistakes.isEmpty else { return nil }
        return MappingRule(from: from, shape, missing: missing, standIn: standIn)
    }

    private mutating func conversion(_ word: Entry?, _ format: Entry?, _ label: String) -> MappingRule.Shape? {
        guard let word else { return .same }
        guard let leaf = leaf(word, label) else { return nil }
        guard let type = MappedType(rawValue: leaf.text) else {
            let words = MappedType.allCases.map(\.rawValue)
            let near = Suggestions.nearest(to: leaf.text, among: words).map { "; did you mean '\($0)'?" } ?? ""
            refuse(
                word.value.position,
                "\(label).as",
                "takes one of \(words.joined(separator: ", ")), not '\(leaf.text)'\(near)"
            )
            return nil
        }
        guard let format else { return .converted(type, .usual) }
        guard let text = self.leaf(format, label)?.text else { return nil }
        do throws(ValueFormat.Malformed) {
            return .converted(type, try ValueFormat(text, of: type))
        } catch {
            refuse(format.value.position, "\(label).format", "\(error.reason), not '\(text)'")
            return nil
        }
    }

    private mutating func leaf(_ entry: Entry, _ label: String) -> Leaf? {
        if case .leaf(let leaf) = entry.value.content { return leaf }
        refuse(entry.value.position, "\(label).\(entry.key)", "takes a word, not a list or a mapping")
        return nil
    }

    /// A path that begins at the document itself, with its position, and whether a default is there in its place.
    typealias RootPath = (path: MappingPath, position: SourcePosition, hasDefault: Bool)

    /// The paths that begin at the document itself; texts that are no paths are left out.
    static func paths(fromRootIn value: Value) -> [RootPath] {
        switch value.content {
        case .leaf(let leaf): return (try? MappingPath(leaf.text)).map { [($0, value.position, false)] } ?? []
        case .list: return []
        case .map(let entries), .section(let entries):
            guard entries.contains(where: { telling.contains($0.key) }) else {
                return entries.flatMap { paths(fromRootIn: $0.value) }
            }
            let from = entries.first { $0.key == "from" }.map { paths(fromRootIn: $0.value) } ?? []
            if let (path, position, _) = from.first, !path.names.isEmpty {
                return [(path, position, entries.contains { $0.key == "default" })]
            }
            guard case .map(let fields)? = entries.first(where: { $0.key == "fields" })?.value.content else {
                return []
            }
            return fields.flatMap { paths(fromRootIn: $0.value) }
        }
    }

    private mutating func path(_ leaf: Leaf, _ position: SourcePosition, _ label: String) -> MappingPath? {
        // A JSONPath of other tools; a member that is named so can be written with a backslash.
        if leaf.text == "$" || leaf.text.hasPrefix("$.") || leaf.text.hasPrefix("$[") {
            let rest = leaf.text.dropFirst(leaf.text.hasPrefix("$.") ? 2 : 1)
            let message =
                "'\(label)' asks for a member named '$', and a key path begins with the first member; write \(rest.isEmpty ? "." : rest), or '\\\(leaf.text)' if that is meant"
            remarks.append((position, message))
        }
        do throws(MappingPath.Malformed) { return try MappingPath(leaf.text) } catch {
            refuse(position, label, "takes a key path such as user.name.first, but '\(leaf.text)' \(error.reason)")
            return nil
        }
    }

    /// A value as JSON; nil for a list or a mapping that is not empty.
    private func json(_ value: Value) -> String? {
        switch value.content {
        case .leaf(let leaf):
            switch leaf.scalar {
            case .bool(let bool): return String(bool)
            case .int: return MappingRule.isNumber(leaf.text) ? leaf.text : JSONText.quoted(leaf.text)
            default: return JSONText.quoted(leaf.text)
            }
        case .list(let items): return items.isEmpty ? "[]" : nil
        case .map(let entries), .section(let entries): return entries.isEmpty ? "{}" : nil
        }
    }
}
