// Renders the parts of a template with the values of one request, within bounds.

import Content
import HTTPWire
import Matching

struct TemplateRendering {
    /// What a section goes through.
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
    /// Nil until it is asked for; none for content that is no JSON.
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

    /// Whether a section of the value is written: it is neither null, false nor empty.
    private static func isThere(_ value: ContentTree) -> Bool {
        switch value {
        case .null, .bool(false): false
        case .string(let text): !text.isEmpty
        case .array(let values): !values.isEmpty
        default: true
        }
    }

    /// A list and an object are written as JSON; null as nothing.
    private static func text(_ value: ContentTree) -> String? {
        switch value {
        case .array, .object: String(decoding: JSONWriter.bytes(value), as: UTF8.self)
        default: value.scalar
        }
    }

    /// A value that stands for itself; null where there is none.
    /// - Parameter isText: it is a text because its place knows nothing else: one that reads as JSON is that JSON.
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

    /// In the nearest section whose item has such a member.
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
