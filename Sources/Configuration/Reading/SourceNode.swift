// A YAML file as a tree in which every node knows its line and column.

internal import Yams

/// A node of the file; the only form in which the rest of the room sees YAML.
struct SourceNode: Sendable {
    enum Content: Sendable {
        /// Plain means without quotes: only then may it be a number or a boolean.
        case scalar(String, plain: Bool)
        case sequence([SourceNode])
        case mapping([(key: SourceNode, value: SourceNode)])
    }
    let place: Place
    let content: Content

    /// A key without a value, or `~`, or `null`.
    var isNull: Bool {
        guard case .scalar(let text, plain: true) = content else { return false }
        return ["", "~", "null", "Null", "NULL"].contains(text)
    }

    /// Whether it is a mapping that has this key.
    func has(key: String) -> Bool {
        guard case .mapping(let pairs) = content else { return false }
        return pairs.contains { if case .scalar(key, plain: _) = $0.key.content { true } else { false } }
    }
}

/// Reads YAML text with libyaml, keeps going at duplicate keys, and turns its complaints into errors with a place.
struct SourceReader {
    private let file: String
    private(set) var errors: [ConfigurationError] = []
    /// Keys that had to be renamed for the parser to go on, by line and column.
    private var renamed: [[Int]: String] = [:]
    /// Aliases are copied where they stand: a bound on the copies keeps a small file from becoming a huge tree.
    private var nodesLeft = 200_000

    init(file: String) { self.file = file }

    /// The root of the only document, or nil where the file is empty or cannot be read as YAML.
    mutating func read(_ text: String) -> SourceNode? {
        var scalars = Array(text.unicodeScalars)
        while true {
            do {
                guard let root = try Yams.compose(yaml: string(scalars)) else { return nil }
                return convert(root)
            } catch let error as YamlError {
                if case .duplicatedKeysInMapping(let names, context: let context) = error,
                    rename(names.first ?? "", at: context.mark, in: &scalars)
                {
                    continue
                }
                report(error, text: text)
                return nil
            } catch {
                errors.append(.init(place: place(1, 1), message: "the file cannot be read as YAML: \(error)"))
                return nil
            }
        }
    }

    private func place(_ line: Int, _ column: Int) -> Place { Place(file: file, line: line, column: column) }

    private func string(_ scalars: [Unicode.Scalar]) -> String {
        var view = String.UnicodeScalarView()
        view.append(contentsOf: scalars)
        return String(view)
    }

    /// Replaces one character of a key that occurs twice by one that no key has, so that the rest of the file is read too.
    private mutating func rename(_ name: String, at mark: Mark, in scalars: inout [Unicode.Scalar]) -> Bool {
        guard renamed.count < 200, renamed[[mark.line, mark.column]] == nil,
            var index = offset(of: mark, in: scalars),
            let fresh = Unicode.Scalar(UInt32(0xE000 + renamed.count))
        else { return false }
        if scalars[index] == "\"" || scalars[index] == "'" { index += 1 }
        guard index < scalars.count,
            scalars[index].properties.isAlphabetic || scalars[index] == "_" || scalars[index].value < 58,
            scalars[index] != "\"", scalars[index] != "'", scalars[index] != "\n"
        else { return false }
        scalars[index] = fresh
        renamed[[mark.line, mark.column]] = name
        return true
    }

    /// Where a mark lies; libyaml counts lines as YAML 1.1 does.
    private func offset(of mark: Mark, in scalars: [Unicode.Scalar]) -> Int? {
        var line = 1
        var index = 0
        while line < mark.line, index < scalars.count {
            let scalar = scalars[index]
            index += 1
            if scalar == "\r", index < scalars.count, scalars[index] == "\n" { index += 1 }
            if ["\r", "\n", "\u{85}", "\u{2028}", "\u{2029}"].contains(scalar) { line += 1 }
        }
        index += mark.column - 1
        return line == mark.line && index < scalars.count ? index : nil
    }

    private mutating func report(_ error: YamlError, text: String) {
        switch error {
        case .composer(_, "but found another document", let mark, yaml: _):
            errors.append(
                .init(
                    place: place(mark.line, mark.column),
                    message:
                        "a second document begins here, and a configuration is one document; remove this line, or put what follows into a file of its own and name it under 'include'"
                )
            )
        case .scanner(_, let problem, let mark, yaml: _) where tab(problem, mark, text) != nil:
            errors.append(
                .init(
                    place: place(mark.line, tab(problem, mark, text) ?? mark.column),
                    message: "not YAML: a tab indents this line, and YAML takes none for that; use spaces"
                )
            )
        case .scanner(let context, let problem, let mark, yaml: _),
            .parser(let context, let problem, let mark, yaml: _),
            .composer(let context, let problem, let mark, yaml: _):
            let doing = context.map { " \($0.text) that began on line \($0.mark.line)" } ?? ""
            errors.append(
                .init(
                    place: place(mark.line, mark.column),
                    message: "not YAML: \(problem)\(doing); check the indentation, the quotes and the brackets here"
                )
            )
        case .reader(let problem, offset: let offset, value: _, yaml: _):
            let before = text.prefix(offset ?? 0)
            let column = before.reversed().prefix { !$0.isNewline }.count + 1
            let line = before.filter(\.isNewline).count + 1
            errors.append(.init(place: place(line, column), message: "not YAML: \(problem); remove the character"))
        case .duplicatedKeysInMapping(let names, context: let context):
            errors.append(
                .init(
                    place: place(context.mark.line, context.mark.column),
                    message: "duplicate key '\(names.first ?? "")' in this mapping; keep one"
                )
            )
        default:
            errors.append(.init(place: place(1, 1), message: "the file cannot be read as YAML: \(error)"))
        }
    }

    /// The column of the tab that a complaint is about: one that libyaml names, or one that its line begins with.
    private func tab(_ problem: String, _ mark: Mark, _ text: String) -> Int? {
        let scalars = Array(text.unicodeScalars)
        guard let here = offset(of: mark, in: scalars) else { return nil }
        let start = here - (mark.column - 1)
        let indent = scalars[start...].prefix { $0 == " " || $0 == "\t" }
        if let first = indent.firstIndex(of: "\t") { return first - start + 1 }
        return scalars[here] == "\t" || problem.contains("tab character") ? mark.column : nil
    }

    private mutating func convert(_ node: Node) -> SourceNode {
        let here = node.mark.map { place($0.line, $0.column) } ?? place(1, 1)
        nodesLeft -= 1
        guard nodesLeft >= 0 else {
            if nodesLeft == -1 {
                errors.append(.init(place: here, message: "the file has more than 200,000 values; use fewer aliases"))
            }
            return SourceNode(place: here, content: .scalar("", plain: true))
        }
        switch node {
        case .scalar(let scalar):
            let text = renamed[[here.line, here.column]] ?? scalar.string
            return SourceNode(place: here, content: .scalar(text, plain: scalar.style == .plain))
        case .sequence(let sequence):
            return SourceNode(place: here, content: .sequence(sequence.map { convert($0) }))
        case .mapping(let mapping):
            return SourceNode(place: here, content: .mapping(mapping.map { (convert($0.key), convert($0.value)) }))
        case .alias:
            // The composer has put the anchored node in its place already.
            return SourceNode(place: here, content: .scalar("", plain: true))
        }
    }
}
