// A YAML file as a tree in which every node knows its line and column.

import Trees
import YAML

/// A node of a file; the only form of YAML that the rest of the module sees.
struct SourceNode: Sendable {
    enum Content: Sendable {
        /// A scalar; plain means without quotes, so that it may be a number or a boolean.
        case scalar(String, plain: Bool)
        case sequence([SourceNode])
        case mapping([(key: SourceNode, value: SourceNode)])
    }
    let position: SourcePosition
    let content: Content

    /// Whether the node is a key without a value, or `~`, or `null`.
    var isNull: Bool {
        guard case .scalar(let text, plain: true) = content else { return false }
        return ["", "~", "null", "Null", "NULL"].contains(text)
    }

    /// Whether the node is written as `~` or `null`, and not left out.
    var isWrittenNull: Bool {
        if case .scalar("", plain: _) = content { false } else { isNull }
    }

    /// Whether the node is a mapping with this key.
    func has(key: String) -> Bool {
        guard case .mapping(let pairs) = content else { return false }
        return pairs.contains { if case .scalar(key, plain: _) = $0.key.content { true } else { false } }
    }
}

/// Reads YAML text, and turns every mistake into an error with its position.
struct SourceReader {
    /// The bounds on a file: more than any configuration needs, and few enough to walk through.
    private static let limits = Limits(levels: 100, values: 200_000)
    private let file: String
    private(set) var errors: [ConfigurationError] = []

    init(file: String) { self.file = file }

    /// The root of the only document, or nil where the file is empty or cannot be read as YAML.
    mutating func read(_ text: String) -> SourceNode? {
        do throws(YAMLError) {
            return try Node.read(Array(text.utf8), limits: Self.limits).map { convert($0) }
        } catch {
            errors.append(explain(error, text))
            return nil
        }
    }

    private func position(_ mark: Mark) -> SourcePosition {
        SourcePosition(file: file, line: mark.line, column: mark.column)
    }

    private func convert(_ node: Node) -> SourceNode {
        switch node.content {
        case .scalar(let text, let style):
            SourceNode(position: position(node.mark), content: .scalar(text, plain: style == .plain))
        case .sequence(let nodes):
            SourceNode(position: position(node.mark), content: .sequence(nodes.map { convert($0) }))
        case .mapping(let pairs):
            SourceNode(
                position: position(node.mark),
                content: .mapping(pairs.map { (convert($0.key), convert($0.value)) })
            )
        case .alias(of: let named):
            // A copy has the position of the original, because its errors must be corrected there.
            convert(named)
        }
    }

    private func explain(_ error: YAMLError, _ text: String) -> ConfigurationError {
        switch error.kind {
        case .character:
            return fail(error.mark, "not YAML: \(error.problem); remove the character")
        case .token, .structure, .unknownAlias:
            if error.kind == .token, let tab = tab(error, text) {
                return fail(tab, "not YAML: a tab indents this line, and YAML takes none for that; use spaces")
            }
            let doing = error.context.map { " \($0.text) that began on line \($0.mark.line)" } ?? ""
            return fail(
                error.mark,
                "not YAML: \(error.problem)\(doing); check the indentation, the quotes and the brackets here"
            )
        case .secondDocument:
            return fail(
                error.mark,
                "a second document begins here, and a configuration is one document; remove this line, or put what follows into a file of its own and name it under 'include'"
            )
        case .tooManyLevels:
            return fail(error.mark, "more than 100 lists and mappings stand within one another here; remove some")
        case .tooManyValues:
            return fail(error.mark, "the file has more than 200,000 values; use fewer aliases")
        case .memory:
            return fail(error.mark, "the file cannot be read as YAML: \(error.problem)")
        }
    }

    private func fail(_ mark: Mark, _ message: String) -> ConfigurationError {
        ConfigurationError(position: position(mark), message: message)
    }

    /// The position of the tab that causes an error: the one that libyaml names, or the one that indents the line.
    private func tab(_ error: YAMLError, _ text: String) -> Mark? {
        var scalars = Array(text.unicodeScalars)
        // The byte order mark takes no column.
        if scalars.first == "\u{FEFF}" { scalars.removeFirst() }
        guard let here = Self.offset(of: error.mark, in: scalars) else { return nil }
        let start = here - (error.mark.column - 1)
        let indent = scalars[start...].prefix { $0 == " " || $0 == "\t" }
        if let first = indent.firstIndex(of: "\t") { return Mark(line: error.mark.line, column: first - start + 1) }
        return scalars[here] == "\t" || error.problem.contains("tab character") ? error.mark : nil
    }

    /// The index of a mark in the text; nil at the end of the text.
    private static func offset(of mark: Mark, in scalars: [Unicode.Scalar]) -> Int? {
        var line = 1
        var index = 0
        while line < mark.line, index < scalars.count {
            let scalar = scalars[index]
            index += 1
            if scalar == "\r", index < scalars.count, scalars[index] == "\n" { index += 1 }
            if scalar.endsLine { line += 1 }
        }
        index += mark.column - 1
        return line == mark.line && index < scalars.count ? index : nil
    }
}

extension SourceNode {
    /// Converts the node into a tree, with the variables of the environment in its texts.
    /// - Returns: the tree, and whether there was a variable.
    /// - Throws: an error if a key is no text or occurs twice, or if a variable is missing.
    func tree(_ environment: [String: String]) throws(ScalarProblem) -> (tree: ContentTree, isFromEnvironment: Bool) {
        switch content {
        case .scalar(let written, let plain):
            if isNull { return (.null, false) }
            let (text, found) = try Expansion.expand(written, environment)
            return (Self.scalar(text, plain: plain && !found), found)
        case .sequence(let nodes):
            let read = try nodes.map { node throws(ScalarProblem) in try node.tree(environment) }
            return (.array(read.map(\.tree)), read.contains(where: \.isFromEnvironment))
        case .mapping(let pairs):
            var members: [ContentTree.Member] = []
            var isFromEnvironment = false
            for (key, value) in pairs {
                guard case .scalar(let name, plain: _) = key.content else {
                    throw ScalarProblem("has a key that is no word; put quotes around a text with brackets or braces")
                }
                guard members.firstIndex(named: name) == nil else {
                    throw ScalarProblem("has the key '\(name)' twice; keep one")
                }
                let read = try value.tree(environment)
                members.append(ContentTree.Member(name, read.tree))
                isFromEnvironment = isFromEnvironment || read.isFromEnvironment
            }
            return (.object(members), isFromEnvironment)
        }
    }

    /// Converts a scalar: without quotes it is a number of JSON, true or false, or else a text.
    private static func scalar(_ text: String, plain: Bool) -> ContentTree {
        guard plain else { return .string(text) }
        if text == "true" || text == "false" { return .bool(text == "true") }
        if case .number(let number)? = try? JSONReader.read(Array(text.utf8)), number == text { return .number(number) }
        return .string(text)
    }
}
