// Compiles a text with tags of Mustache into the parts of a template; every mistake is reported with its position.

import Trees

/// A part of a template.
enum TemplatePart: Sendable, Equatable {
    case text([UInt8])
    case value(TemplateName, ValueStyle)
    /// A section is written once for each item, or once if the value is true; an inverted one if it is not.
    indirect case section(TemplateName, isInverted: Bool, [TemplatePart])
}

/// The way in which a value is written.
enum ValueStyle: Sendable, Equatable {
    /// The value is escaped, so that it stays one value in its surroundings.
    case escaped
    /// The value is written as it is.
    case raw
    /// The value is written as a separate JSON value.
    case json
}

/// One pass over the scalars of a text.
struct TemplateParser {
    /// The most levels of nested sections.
    private static let mostLevels = 32

    private struct Open {
        let name: TemplateName
        let written: String
        let isInverted: Bool
        let line: Int
        let column: Int
        /// The parts before the section that is open.
        let before: [TemplatePart]
    }

    private let scalars: [Unicode.Scalar]
    /// Whether the text is a JSON value: then tags contain escapes of JSON, and a tag between two strings is a value.
    private let isJSON: Bool
    /// Whether the position is within a string of a JSON value.
    private var isQuoted = false
    private var position = 0
    private var line = 1
    private var column = 1
    private var parts: [TemplatePart] = []
    private var open: [Open] = []
    /// The text that is not in a part yet.
    private var text: [Unicode.Scalar] = []

    private init(_ text: String, isJSON: Bool) {
        scalars = Array(text.unicodeScalars)
        self.isJSON = isJSON
    }

    /// - Parameter isJSON: whether the text is a JSON value.
    static func parse(_ text: String, isJSON: Bool) throws(TemplateError) -> [TemplatePart] {
        var parser = TemplateParser(text, isJSON: isJSON)
        while parser.position < parser.scalars.count {
            if parser.isAt("{{") { try parser.tag() } else { parser.copy() }
        }
        parser.endText()
        if let section = parser.open.last {
            throw TemplateError(
                line: section.line,
                column: section.column,
                message: "the section '\(section.written)' is not closed; write {{/\(section.written)}}"
            )
        }
        return parser.parts
    }

    private func isAt(_ text: String) -> Bool { scalars[position...].starts(with: text.unicodeScalars) }

    @discardableResult
    private mutating func advance() -> Unicode.Scalar {
        let scalar = scalars[position]
        position += 1
        if scalar == "\n" {
            line += 1
            column = 1
        } else {
            column += 1
        }
        return scalar
    }

    /// Copies one scalar to the text.
    private mutating func copy() {
        let scalar = advance()
        text.append(scalar)
        guard isJSON else { return }
        if scalar == "\"" { isQuoted.toggle() }
        if scalar == "\\", position < scalars.count { text.append(advance()) }
    }

    private mutating func skip(_ count: Int) { for _ in 0..<count { advance() } }

    private mutating func endText() {
        guard !text.isEmpty else { return }
        var bytes: [UInt8] = []
        for scalar in text { bytes += UTF8.encode(scalar).map(Array.init) ?? [] }
        parts.append(.text(bytes))
        text = []
    }

    private mutating func tag() throws(TemplateError) {
        let (line, column, start) = (line, column, position)
        func error(_ message: String) -> TemplateError { TemplateError(line: line, column: column, message: message) }
        let isTriple = isAt("{{{")
        skip(isTriple ? 3 : 2)
        var inner = ""
        let end = isTriple ? "}}}" : "}}"
        while position < scalars.count, !isAt(end) {
            guard !isAt("{{") else { break }
            inner.unicodeScalars.append(advance())
        }
        guard position < scalars.count, isAt(end) else { throw error("the tag is not closed; write \(end)") }
        skip(end.unicodeScalars.count)
        if isQuoted { inner = Self.unescaped(inner) }
        if isTriple {
            endText()
            parts.append(.value(try name(inner, error), isJSON && !isQuoted ? .json : .raw))
            return
        }
        let body = inner.trimmed
        let rest = String(body.dropFirst()).trimmed
        switch body.first {
        case "&":
            endText()
            parts.append(.value(try name(rest, error), .raw))
        case "!": dropOwnLine(from: start)
        case "#", "^":
            dropOwnLine(from: start)
            endText()
            guard open.count < Self.mostLevels else {
                throw error("more than \(Self.mostLevels) sections stand within one another here")
            }
            let section = try name(rest, error)
            let isInverted = body.first == "^"
            open.append(
                Open(name: section, written: rest, isInverted: isInverted, line: line, column: column, before: parts)
            )
            parts = []
        case "/":
            dropOwnLine(from: start)
            endText()
            try close(rest, error)
        case ">": throw error("a template includes no other one; write its text here")
        case "=": throw error("the braces of tags cannot be changed; remove this tag")
        default:
            endText()
            parts.append(.value(try name(body, error), .escaped))
        }
    }

    /// The meaning of a text within a JSON string; the text itself if it is not valid.
    private static func unescaped(_ text: String) -> String {
        guard text.contains("\\"), case .string(let meant)? = try? JSONReader.read(Array("\"\(text)\"".utf8)) else {
            return text
        }
        return meant
    }

    private func name(
        _ text: String,
        _ mistake: (String) -> TemplateError
    ) throws(TemplateError) -> TemplateName {
        do throws(TemplateMistake) {
            return try TemplateNameReader.read(text.trimmed, isWithinItems: !open.isEmpty)
        } catch {
            throw mistake(error.message)
        }
    }

    private mutating func close(_ written: String, _ error: (String) -> TemplateError) throws(TemplateError) {
        guard let section = open.popLast() else {
            throw error("{{/\(written)}} closes no section; remove it, or open one with {{#\(written)}}")
        }
        // A call may be closed by its name alone: {{#repeat(3)}} by {{/repeat}}.
        let short = String(section.written.prefix { $0 != "(" }).trimmed
        guard written == section.written || written == short else {
            throw error("{{/\(written)}} closes '\(written)', but '\(section.written)' is open; write {{/\(short)}}")
        }
        let inner = parts
        parts = section.before
        parts.append(.section(section.name, isInverted: section.isInverted, inner))
    }

    /// Removes the line of a section's tag or a comment that is alone on it, as the specification of Mustache requires.
    /// - Parameter start: the start of the tag that has just been read.
    private mutating func dropOwnLine(from start: Int) {
        func isBlank(_ scalar: Unicode.Scalar) -> Bool { scalar == " " || scalar == "\t" }
        var before = start
        while before > 0, isBlank(scalars[before - 1]) { before -= 1 }
        guard before == 0 || scalars[before - 1] == "\n" else { return }
        var after = position
        while after < scalars.count, isBlank(scalars[after]) { after += 1 }
        if after < scalars.count, scalars[after] == "\r" { after += 1 }
        guard after == scalars.count || scalars[after] == "\n" else { return }
        // The text before the tag on this line is not in a part yet.
        text.removeLast(min(text.count, start - before))
        skip(min(after + 1, scalars.count) - position)
    }
}
