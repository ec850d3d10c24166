// A template of an answer: a text with tags of Mustache, compiled with the plan and rendered for each request, within
// limits.

package import HTTPWire
import Matching
package import Trees

/// A compiled template.
package struct DemoTemplate: Sendable {
    let parts: [TemplatePart]
    package let escaping: TemplateEscaping
    /// Whether the same request gives the same text again, so that its bytes have an entity tag.
    package let isRepeatable: Bool
    /// Whether the template uses the content of a request.
    package let readsBody: Bool
    /// Whether the template uses the number of the rule's answers.
    package let countsRule: Bool

    /// The source of a template.
    package enum Source {
        case text(String)
        case json(ContentTree)
    }

    /// - Throws: the first mistake and its position.
    package init(_ source: Source, escaping: TemplateEscaping) throws(TemplateError) {
        switch source {
        case .text(let text): try self.init(text, escaping: escaping)
        case .json(let tree): try self.init(tree, escaping: escaping)
        }
    }

    /// - Throws: the first mistake of the text and its position.
    package init(_ text: String, escaping: TemplateEscaping) throws(TemplateError) {
        try self.init(text, escaping, isJSON: false)
    }

    /// Makes a template from a JSON value: its texts may have tags, and a text that is one tag with three braces is
    /// written as a separate value without quotes, so that it can be a number, an object or null.
    /// - Throws: the first mistake and its position in the value's JSON text.
    package init(_ tree: ContentTree, escaping: TemplateEscaping) throws(TemplateError) {
        try self.init(String(decoding: JSONWriter.bytes(Self.unquoted(tree)), as: UTF8.self), escaping, isJSON: true)
    }

    private init(_ text: String, _ escaping: TemplateEscaping, isJSON: Bool) throws(TemplateError) {
        parts = try TemplateParser.parse(text, isJSON: isJSON)
        self.escaping = escaping
        let names = Self.names(parts)
        isRepeatable = names.allSatisfy(\.isRepeatable)
        readsBody = names.contains(where: \.readsBody)
        countsRule = names.contains(.ruleCount)
    }

    /// Whether a file is a template by its name.
    package static func isTemplate(path: String) -> Bool { path.hasSuffix(suffix) }

    /// The name of a file without the suffix of a template; its extension gives the media type.
    package static func named(_ path: String) -> String {
        isTemplate(path: path) ? String(path.dropLast(suffix.count)) : path
    }

    private static let suffix = ".mustache"

    private static func unquoted(_ tree: ContentTree) -> ContentTree {
        switch tree {
        case .string(let text) where text.hasPrefix("{{{") && text.hasSuffix("}}}"):
            text.dropFirst(3).contains("{{") ? tree : .number(text)
        case .array(let values): .array(values.map(unquoted))
        case .object(let members): .object(members.map { ContentTree.Member($0.name, unquoted($0.value)) })
        default: tree
        }
    }

    /// The most bytes of one text, and the most steps to render it.
    package static let limit = 4 << 20
    /// The most bytes of a text that is rendered on a loop.
    package static let quickLimit = 64 << 10

    /// The text for one request.
    /// - Parameter limit: the most bytes, and the most steps.
    package func render(_ values: TemplateValues, limit: Int = Self.limit) throws(RenderError) -> [UInt8] {
        var rendering = TemplateRendering(values, escaping, limit: limit)
        try rendering.write(parts)
        return rendering.output
    }

    private static func names(_ parts: [TemplatePart]) -> [TemplateName] {
        parts.flatMap { part -> [TemplateName] in
            switch part {
            case .text: []
            case .value(let name, _): [name]
            case .section(let name, isInverted: _, let inner): [name] + names(inner)
            }
        }
    }
}

/// The values of a request that a template uses.
package struct TemplateValues: Sendable {
    package var method: String
    /// The path and query, as the client sent them.
    package var target: String
    /// The parameters of the endpoint's path, decoded.
    package var parameters: [(name: String, value: String)]
    package var fields: Fields
    package var body: [UInt8]
    /// The time in seconds since 1970.
    package var now: Int64
    /// The number of the request among those with its key, and the number of the answer among those of its rule, from
    /// 1.
    package var requestCount: UInt64
    package var ruleCount: UInt64
    /// The start of the random stream for made-up data.
    package var start: UInt64

    package init(
        method: String,
        target: String,
        parameters: [(name: String, value: String)] = [],
        fields: Fields = Fields(),
        body: [UInt8] = [],
        now: Int64 = 0,
        requestCount: UInt64 = 1,
        ruleCount: UInt64 = 1,
        start: UInt64 = 0
    ) {
        self.method = method
        self.target = target
        self.parameters = parameters
        self.fields = fields
        self.body = body
        self.now = now
        self.requestCount = requestCount
        self.ruleCount = ruleCount
        self.start = start
    }
}

// MARK: - Rendering

/// Renders the parts of a template with the values of one request, within limits.
struct TemplateRendering {
    /// An item that a section iterates.
    private struct Item {
        let value: ContentTree
        let index: Int
        let count: Int
    }

    private(set) var output: [UInt8] = []
    private let values: TemplateValues
    private let request: RequestParts
    private let escaping: TemplateEscaping
    private let limit: Int
    private var steps = 0
    private var items: [Item] = []
    private var fake: FakeSource
    /// The content as JSON; nil until it is needed, and an inner nil for content that is not JSON.
    private var json: ContentTree??

    init(_ values: TemplateValues, _ escaping: TemplateEscaping, limit: Int) {
        self.values = values
        request = RequestParts(method: values.method, target: values.target, fields: values.fields)
        self.escaping = escaping
        self.limit = limit
        fake = FakeSource(values.start)
    }

    mutating func write(_ parts: [TemplatePart]) throws(RenderError) {
        for part in parts {
            steps += 1
            switch part {
            case .text(let bytes): output += bytes
            case .value(let name, .json): output += Self.json(value(of: name), isText: name.isText)
            case .value(let name, let style):
                guard let text = value(of: name).flatMap(Self.text) else { break }
                if style == .raw { output += text.utf8 } else { escaping.write(text, to: &output) }
            case .section(let name, let isInverted, let inner): try section(name, isInverted: isInverted, inner)
            }
            guard output.count <= limit else { throw .tooLong(limit: limit) }
            guard steps <= limit else { throw .tooManySteps(limit: limit) }
        }
    }

    private mutating func section(
        _ name: TemplateName,
        isInverted: Bool,
        _ parts: [TemplatePart]
    ) throws(RenderError) {
        if case .repeated(let count) = name {
            if isInverted { return count == 0 ? try write(parts) : () }
            for index in 0..<count { try write(parts, for: Item(value: .null, index: index, count: count)) }
            return
        }
        let value = value(of: name)
        guard let value, Self.isThere(value) else { return isInverted ? try write(parts) : () }
        guard !isInverted else { return }
        guard case .array(let elements) = value else {
            return try write(parts, for: Item(value: value, index: 0, count: 1))
        }
        for (index, element) in elements.enumerated() {
            try write(parts, for: Item(value: element, index: index, count: elements.count))
        }
    }

    private mutating func write(_ parts: [TemplatePart], for item: Item) throws(RenderError) {
        steps += 1
        guard steps <= limit else { throw .tooManySteps(limit: limit) }
        items.append(item)
        try write(parts)
        items.removeLast()
    }

    /// Whether a section of the value is written: the value is not null, false or empty.
    private static func isThere(_ value: ContentTree) -> Bool {
        switch value {
        case .null, .bool(false): false
        case .string(let text): !text.isEmpty
        case .array(let values): !values.isEmpty
        default: true
        }
    }

    /// The text of a value: a list and an object are written as JSON, null as nothing.
    private static func text(_ value: ContentTree) -> String? {
        switch value {
        case .array, .object: String(decoding: JSONWriter.bytes(value), as: UTF8.self)
        default: value.scalar
        }
    }

    /// The value as JSON; null if there is none.
    /// - Parameter isText: whether its source has only texts: then a text that is valid JSON is written as that JSON.
    private static func json(_ value: ContentTree?, isText: Bool) -> [UInt8] {
        if isText, case .string(let text)? = value, (try? JSONReader.read(Array(text.utf8), repeats: true)) != nil {
            return Array(text.utf8)
        }
        return JSONWriter.bytes(value ?? .null)
    }

    // MARK: - Values

    private mutating func value(of name: TemplateName) -> ContentTree? {
        switch name {
        case .item(let path): return item(path)
        case .loopIndex: return items.last.map { .number(String($0.index)) }
        case .loopFirst: return items.last.map { .bool($0.index == 0) }
        case .loopLast: return items.last.map { .bool($0.index == $0.count - 1) }
        case .method: return .string(values.method)
        case .path: return .string(request.path)
        case .parameter(let name): return values.parameters.first { $0.name == name }.map { .string($0.value) }
        case .query(let name): return request.query(name).first.map { .string($0) }
        case .field(let name): return values.fields.first(name).map { .string($0) }
        case .cookie(let name): return request.cookies(name).first.map { .string($0) }
        case .body: return .string(String(decoding: values.body, as: UTF8.self))
        case .json(let path): return document()?.element(at: path)
        case .now(let offset, let style): return time(offset, style)
        case .requestCount: return .number(String(values.requestCount))
        case .ruleCount: return .number(String(values.ruleCount))
        case .fake(let value): return fake.draw(value)
        case .repeated: return nil
        }
    }

    /// The value at a path of names, in the nearest section whose item has such a member.
    private func item(_ path: [String]) -> ContentTree? {
        guard let first = path.first else { return items.last?.value }
        for item in items.reversed() {
            if item.value.element(at: [first]) != nil { return item.value.element(at: path) }
        }
        return nil
    }

    private mutating func document() -> ContentTree? {
        if let json { return json }
        let read = try? JSONReader.read(values.body, repeats: true)
        json = .some(read)
        return read
    }

    private func time(_ offset: Int64, _ style: TimeStyle) -> ContentTree {
        let range = CalendarTime.range
        let seconds = min(max(values.now + offset, range.lowerBound), range.upperBound)
        switch style {
        case .iso: return .string(CalendarTime(seconds).iso8601)
        case .http: return .string(HTTPDate.format(seconds))
        case .unix: return .number(String(seconds))
        case .pattern(let pattern): return .string(CalendarTime(seconds).formatted(pattern))
        }
    }
}

// MARK: - Escaping

/// The escaping of the value's text for `{{name}}`; `{{{name}}}` writes it as it is.
package enum TemplateEscaping: Sendable, Equatable {
    /// No escaping: plain text.
    case none
    /// The escaping between the quotes of a string of JSON or JavaScript.
    case json
    /// The escaping for text and attributes of HTML and XML.
    case markup

    /// The escaping for the media type of the answer.
    package init(contentType: String) {
        let type = contentType.prefix { $0 != ";" }.filter { $0 != " " }.lowercased()
        self =
            switch type {
            case "application/json", "application/jsonl", "application/x-ndjson", "text/json", "text/javascript",
                "application/javascript", "application/x-javascript":
                .json
            case _ where type.hasSuffix("+json"): .json
            case "text/html", "text/xml", "application/xml": .markup
            case _ where type.hasSuffix("+xml"): .markup
            default: .none
            }
    }

    func write(_ text: String, to output: inout [UInt8]) {
        switch self {
        case .none: output += text.utf8
        case .json: JSONWriter.append(escaped: text, to: &output)
        case .markup: for byte in text.utf8 { Self.writeMarkup(byte, to: &output) }
        }
    }

    private static func writeMarkup(_ byte: UInt8, to output: inout [UInt8]) {
        switch byte {
        case UInt8(ascii: "&"): output += "&amp;".utf8
        case UInt8(ascii: "<"): output += "&lt;".utf8
        case UInt8(ascii: ">"): output += "&gt;".utf8
        case UInt8(ascii: "\""): output += "&quot;".utf8
        case UInt8(ascii: "'"): output += "&#39;".utf8
        default: output.append(byte)
        }
    }
}

// MARK: - Errors

/// A mistake in a template and its position; lines and columns count from 1, columns in Unicode scalars.
package struct TemplateError: Error, Sendable, Equatable, CustomStringConvertible {
    package let line: Int
    package let column: Int
    /// The mistake and its remedy.
    package let message: String

    /// The error as `LINE:COLUMN: MESSAGE`.
    package var description: String { "\(line):\(column): \(message)" }
}

/// The reason why a template gave no text for one request.
package enum RenderError: Error, Sendable, Equatable, CustomStringConvertible {
    /// The text would have more bytes than this.
    case tooLong(limit: Int)
    /// The text would take more steps than this: parts that are written, and items that sections iterate.
    case tooManySteps(limit: Int)

    /// The error as text that follows the name of the template.
    package var description: String {
        switch self {
        case .tooLong(let limit): "gives more than \(limit) bytes"
        case .tooManySteps(let limit): "takes more than \(limit) steps"
        }
    }
}
