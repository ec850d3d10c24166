// The names in the tags of a template: each with its arguments, parsed once when the template is compiled.

import Content
import Matching

/// A name that has a value while a template is rendered.
enum TemplateName: Sendable, Equatable {
    /// The item of a section (`.`), or a member of the items of the surrounding sections.
    case item([String])
    case loopIndex
    case loopFirst
    case loopLast
    case method
    case path
    case parameter(String)
    case query(String)
    case field(String)
    case cookie(String)
    case body
    case json([String])
    /// The time of the answer with seconds added, in a style.
    case now(offset: Int64, TimeStyle)
    case requestCount
    case ruleCount
    case fake(FakeValue)
    /// A section that is written this many times.
    case repeated(Int)

    /// Whether the same request gives the same value again.
    var isRepeatable: Bool {
        switch self {
        case .now, .requestCount, .ruleCount, .fake: false
        default: true
        }
    }

    /// Whether the value is always a text: a query has no numbers, for example.
    var isText: Bool {
        switch self {
        case .path, .parameter, .query, .field, .cookie, .body, .fake(.oneOf): true
        default: false
        }
    }

    var readsBody: Bool {
        switch self {
        case .body, .json: true
        default: false
        }
    }
}

/// The style of a time.
enum TimeStyle: Sendable, Equatable {
    /// ISO 8601, such as `2026-05-06T07:08:09Z`.
    case iso
    /// The form of `Date` in HTTP.
    case http
    /// The seconds since 1970.
    case unix
    /// A pattern of strftime, such as `%Y %m %d %H %M %S`.
    case pattern(String)
}

/// Reads the text of a tag.
struct TemplateNameReader {
    /// The most times that one `repeat` writes its section.
    static let mostRepeats = 100_000

    private let name: [String]
    private let written: String
    private let arguments: [String]?
    /// Whether a section is open whose items may have members of any name.
    private let isWithinItems: Bool

    /// Reads the text of a tag.
    /// - Parameter text: the text without the braces and the sign.
    /// - Throws: the reason why the text names no value.
    static func read(_ text: String, isWithinItems: Bool) throws(TemplateMistake) -> TemplateName {
        try TemplateNameReader(text, isWithinItems: isWithinItems).value()
    }

    private init(_ text: String, isWithinItems: Bool) throws(TemplateMistake) {
        self.isWithinItems = isWithinItems
        guard let open = text.firstIndex(of: "(") else {
            written = text
            name = text.split(separator: ".", omittingEmptySubsequences: false).map(String.init)
            arguments = nil
            return
        }
        written = String(text[..<open])
        name = written.split(separator: ".", omittingEmptySubsequences: false).map(String.init)
        arguments = try Self.arguments(text[text.index(after: open)...])
    }

    /// Reads the arguments of a name.
    /// - Parameter text: the text after the opening parenthesis.
    private static func arguments(_ text: Substring) throws(TemplateMistake) -> [String] {
        var rest = text
        var arguments: [String] = []
        func skipSpace() { rest = rest.drop { $0 == " " } }
        while true {
            skipSpace()
            if let quote = rest.first, quote == "'" || quote == "\"" {
                rest.removeFirst()
                guard let end = rest.firstIndex(of: quote) else {
                    throw TemplateMistake("a quoted text is not closed; write \(quote)")
                }
                arguments.append(String(rest[..<end]))
                rest = rest[rest.index(after: end)...]
            } else {
                let word = rest.prefix { $0 != "," && $0 != ")" }
                arguments.append(String(word).trimmed)
                rest = rest[word.endIndex...]
            }
            skipSpace()
            guard let sign = rest.popFirst() else { throw TemplateMistake("a parenthesis is not closed; write )") }
            if sign == "," { continue }
            guard sign == ")", rest.allSatisfy({ $0 == " " }) else {
                throw TemplateMistake("something stands behind an argument; separate arguments by commas")
            }
            return arguments == [""] ? [] : arguments
        }
    }

    private func value() throws(TemplateMistake) -> TemplateName {
        if written == "." {
            return try plain(isWithinItems ? .item([]) : nil, "'.' is the item of a section; no section is open here")
        }
        guard !written.isEmpty, name.allSatisfy({ !$0.isEmpty }) else {
            throw TemplateMistake("the tag names nothing; write a name such as request.path")
        }
        switch name[0] {
        case "@index": return try loop(.loopIndex)
        case "@first": return try loop(.loopFirst)
        case "@last": return try loop(.loopLast)
        case "request": return try request()
        case "now": return try now()
        case "counter": return try counter()
        case "fake": return try fake()
        case "repeat": return .repeated(try repeats())
        default: return try item()
        }
    }

    private func loop(_ value: TemplateName) throws(TemplateMistake) -> TemplateName {
        try plain(isWithinItems && name.count == 1 ? value : nil, "'\(written)' is known within a section only")
    }

    private func item() throws(TemplateMistake) -> TemplateName {
        guard !isWithinItems else { return try plain(.item(name), "") }
        let roots = ["request", "now", "counter", "fake", "repeat"]
        let near = Suggestions.nearest(to: name[0], among: roots).map { "did you mean '\($0)'? " } ?? ""
        throw TemplateMistake("unknown name '\(written)'; \(near)A template knows \(roots.joined(separator: ", "))")
    }

    /// The value of a name that takes no arguments.
    private func plain(_ value: TemplateName?, _ otherwise: String) throws(TemplateMistake) -> TemplateName {
        guard let value else { throw TemplateMistake(otherwise) }
        guard arguments == nil else { throw TemplateMistake("'\(written)' takes no arguments; remove the parentheses") }
        return value
    }

    private static let requestWords = ["method", "path", "parameters", "query", "fields", "cookies", "body", "json"]

    private func request() throws(TemplateMistake) -> TemplateName {
        let word = name.count > 1 ? name[1] : ""
        let rest = Array(name.dropFirst(2))
        let named = rest.joined(separator: ".")
        switch (word, rest.isEmpty) {
        case ("method", true): return try plain(.method, "")
        case ("path", true): return try plain(.path, "")
        case ("body", true): return try plain(.body, "")
        case ("json", _): return try plain(.json(rest), "")
        case ("parameters", false): return try plain(.parameter(named), "")
        case ("query", false): return try plain(.query(named), "")
        case ("fields", false): return try plain(.field(named), "")
        case ("cookies", false): return try plain(.cookie(named), "")
        case ("parameters", true), ("query", true), ("fields", true), ("cookies", true):
            throw TemplateMistake("'\(written)' needs a name behind it, such as \(written).id")
        default:
            let words = Self.requestWords
            let near = Suggestions.nearest(to: word, among: words).map { "did you mean 'request.\($0)'? " } ?? ""
            throw TemplateMistake("unknown name '\(written)'; \(near)A request has \(words.joined(separator: ", "))")
        }
    }

    private func counter() throws(TemplateMistake) -> TemplateName {
        switch name.dropFirst().joined(separator: ".") {
        case "request": return try plain(.requestCount, "")
        case "rule": return try plain(.ruleCount, "")
        default: throw TemplateMistake("unknown name '\(written)'; write counter.request or counter.rule")
        }
    }

    private func now() throws(TemplateMistake) -> TemplateName {
        guard name.count == 1 else { throw TemplateMistake("'now' has no members; write now, now(+1h) or now('%Y')") }
        var offset: Int64 = 0
        var style = TimeStyle.iso
        for argument in arguments ?? [] {
            switch argument {
            case "iso": style = .iso
            case "http": style = .http
            case "unix": style = .unix
            case _ where argument.contains("%"): style = .pattern(try Self.pattern(argument))
            default: offset = try Self.seconds(argument)
            }
        }
        return .now(offset: offset, style)
    }

    /// Checks a pattern of strftime.
    /// - Throws: a mistake that names an unknown directive.
    private static func pattern(_ text: String) throws(TemplateMistake) -> String {
        var rest = text[...]
        while let mark = rest.firstIndex(of: "%") {
            let sign = rest[mark...].dropFirst().first
            guard let sign, "YmdHMS%".contains(sign) else {
                throw TemplateMistake(
                    "a time has no '%\(sign.map(String.init) ?? "")'; it has %Y, %m, %d, %H, %M and %S, and %% for a percent sign"
                )
            }
            rest = rest[mark...].dropFirst(2)
        }
        return text
    }

    /// The seconds of an offset, such as `+90s`, `-5m`, `+2h` or `-7d`.
    private static func seconds(_ text: String) throws(TemplateMistake) -> Int64 {
        let units: [Character: Int64] = ["s": 1, "m": 60, "h": 3600, "d": 86400]
        guard let sign = text.first, sign == "+" || sign == "-", let unit = text.last.flatMap({ units[$0] }),
            let count = Int64(text.dropFirst().dropLast()), 0...10_000_000 ~= count
        else {
            throw TemplateMistake(
                "'now' does not know '\(text)'; it takes an offset such as +1h or -7d, and iso, http, unix or a pattern such as '%Y-%m-%d'"
            )
        }
        return sign == "-" ? -count * unit : count * unit
    }

    private func repeats() throws(TemplateMistake) -> Int {
        guard name.count == 1, let text = arguments?.first, arguments?.count == 1, let count = Int(text),
            0...Self.mostRepeats ~= count
        else { throw TemplateMistake("'repeat' takes how often, up to \(Self.mostRepeats), such as repeat(3)") }
        return count
    }

    private func fake() throws(TemplateMistake) -> TemplateName {
        let word = name.dropFirst().joined(separator: ".")
        guard let make = FakeValue.named[word] else {
            let words = FakeValue.named.keys.sorted()
            let near = Suggestions.nearest(to: word, among: words).map { "did you mean 'fake.\($0)'? " } ?? ""
            throw TemplateMistake("unknown name '\(written)'; \(near)There are \(words.joined(separator: ", "))")
        }
        guard let value = make(arguments ?? []) else {
            throw TemplateMistake(
                "'\(written)' takes \(FakeValue.takes(word)), not (\((arguments ?? []).joined(separator: ", ")))"
            )
        }
        return .fake(value)
    }
}

/// The mistake in a tag.
struct TemplateMistake: Error, Equatable {
    let message: String

    init(_ message: String) { self.message = message }
}

extension String {
    /// The text without spaces at its ends.
    var trimmed: String {
        var rest = self[...]
        while rest.first == " " || rest.first == "\t" { rest.removeFirst() }
        while rest.last == " " || rest.last == "\t" { rest.removeLast() }
        return String(rest)
    }
}
