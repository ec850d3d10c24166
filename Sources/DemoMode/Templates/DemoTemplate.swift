// A template of an answer: a text with tags of Mustache, compiled with the plan and rendered for each request.

package import Content
package import HTTPWire

/// A compiled template.
package struct DemoTemplate: Sendable {
    let parts: [TemplatePart]
    package let escaping: TemplateEscaping
    /// The same request gives the same text again, so that its bytes have an entity tag.
    package let isRepeatable: Bool
    /// It takes something of the content of a request.
    package let readsBody: Bool
    /// It takes how often the rule has answered.
    package let countsRule: Bool

    /// What a template is made of.
    package enum Source {
        case text(String)
        case json(ContentTree)
    }

    /// - Throws: the first mistake and its place.
    package init(_ source: Source, escaping: TemplateEscaping) throws(TemplateError) {
        switch source {
        case .text(let text): try self.init(text, escaping: escaping)
        case .json(let tree): try self.init(tree, escaping: escaping)
        }
    }

    /// - Throws: the first mistake of the text and its place.
    package init(_ text: String, escaping: TemplateEscaping) throws(TemplateError) {
        try self.init(text, escaping, isJSON: false)
    }

    /// The template that a JSON value is: its texts may hold tags, and a text that is one tag with three braces is
    /// written as a value of its own, without quotes, so that it can be a number, an object or null.
    /// - Throws: the first mistake and its place in the value's JSON text.
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

    /// The name of a file without the mark of a template, which says what the text is.
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

    /// The most bytes that one text has, and the most steps that one takes.
    package static let limit = 4 << 20
    /// Texts up to so many bytes are made on a loop.
    package static let quickLimit = 64 << 10

    /// The text for one request.
    /// - Parameter limit: bytes at most; as many steps, too.
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

/// What a template takes its values from.
package struct TemplateValues: Sendable {
    package var method: String
    /// Path and query, as the client sent them.
    package var target: String
    /// Of the endpoint's path, decoded.
    package var parameters: [(name: String, value: String)]
    package var fields: Fields
    package var body: [UInt8]
    /// Seconds since 1970.
    package var now: Int64
    /// From 1: of the request among those of its key, and of the answer among those of its rule.
    package var requestCount: UInt64
    package var ruleCount: UInt64
    /// Where the stream of made-up data begins.
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
