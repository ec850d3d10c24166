// Checks a value against a schema and tells where it differs, within the steps and the time that the checks of one
// request may take together.

package import Matching
package import Trees

/// A difference between a value and its schema.
package struct SchemaViolation: Sendable, Equatable {
    /// A JSON pointer into the value; empty for the whole value.
    package let pointer: String
    /// The requirement of the schema.
    package let reason: String
    /// The location of the requirement in the document.
    package let location: DocumentLocation
}

/// Checks one value, within a budget: if that is exceeded, this is reported whatever was found before.
package struct SchemaCheck {
    private typealias Part = OpenAPIDocument.Part

    private static let deepest = 64
    /// The most violations that are reported.
    package static let mostViolations = 10

    /// The formats that are checked; any text passes for other formats.
    static let formats: Set<String> = ["date-time", "date", "uuid"]

    private let document: OpenAPIDocument
    private let patterns: [String: Pattern]
    private let budget: SchemaBudget
    private var violations: [SchemaViolation] = []
    /// Whether only a yes or no is needed: the first violation ends the search, and is not reported.
    private var isSilent = false
    private var hasFailed = false

    private init(_ document: OpenAPIDocument, _ patterns: [String: Pattern], _ budget: SchemaBudget) {
        self.document = document
        self.patterns = patterns
        self.budget = budget
    }

    /// True if there is nothing more to find.
    private var isAtEnd: Bool { budget.isOver || isSilent && hasFailed }

    /// The differences between a value of a request and a schema; empty if there are none.
    /// - Parameters:
    ///   - patterns: the compiled patterns of the document by their text; a pattern that is missing is not checked.
    ///   - budget: the limit for all checks of the request. If it does not suffice, the last violation reports that.
    package static func violations(
        _ value: ContentTree,
        _ schema: OpenAPIDocument.Part,
        _ document: OpenAPIDocument,
        _ patterns: [String: Pattern],
        _ budget: SchemaBudget
    ) -> [SchemaViolation] {
        var check = SchemaCheck(document, patterns, budget)
        check.check(value, schema, "", depth: 0)
        guard budget.isOver else { return check.violations }
        let reason = "is nested too deeply, or is too large, to be checked"
        let last = SchemaViolation(pointer: "", reason: reason, location: schema.location)
        return Array(check.violations.prefix(mostViolations - 1)) + [last]
    }

    private mutating func fail(_ pointer: String, _ reason: @autoclosure () -> String, _ part: Part, _ keyword: String?)
    {
        hasFailed = true
        if !isSilent, violations.count < Self.mostViolations {
            violations.append(
                SchemaViolation(
                    pointer: pointer,
                    reason: reason(),
                    location: keyword.map { part.location.within($0) } ?? part.location
                )
            )
        }
    }

    private mutating func check(_ value: ContentTree, _ schema: Part, _ pointer: String, depth: Int) {
        guard budget.take(), !isAtEnd else { return }
        // A value at this depth counts as one beyond the budget, whatever its schema.
        guard depth < Self.deepest else { return budget.giveUp() }
        guard let part = document.resolved(schema) else { return }
        if part.tree == .bool(false) {
            return fail(pointer, "must not be there", part, nil)
        }
        if case .null = value, part.tree["nullable"]?.isTrue == true { return }
        combined(value, part, pointer, depth)
        if isAtEnd { return }
        if let values = part.tree["enum"]?.elements, !values.contains(where: { $0.isSame(as: value) }) {
            fail(pointer, "is none of \(Self.shown(.array(values)))", part, "enum")
        }
        if let other = part.tree["const"], !other.isSame(as: value) {
            fail(pointer, "is not \(Self.shown(other))", part, "const")
        }
        guard hasType(value, part, pointer) else { return }
        switch value {
        case .object(let members): object(members, part, pointer, depth)
        case .array(let values): array(values, part, pointer, depth)
        case .string(let text): self.text(text, part, pointer)
        case .number(let text): number(text, part, pointer)
        default: break
        }
    }

    // MARK: - Combinations

    private mutating func combined(_ value: ContentTree, _ part: Part, _ pointer: String, _ depth: Int) {
        for schema in Self.elements(part.part("allOf")) { check(value, schema, pointer, depth: depth + 1) }
        if let any = part.part("anyOf"), !Self.elements(any).contains(where: { holds(value, $0, pointer, depth) }) {
            fail(pointer, "is none of what it may be", part, "anyOf")
        }
        if let one = part.part("oneOf") {
            var count = 0
            for schema in Self.elements(one) where count < 2 && holds(value, schema, pointer, depth) { count += 1 }
            if count != 1 {
                fail(
                    pointer,
                    count == 0 ? "is none of what it may be" : "is more than one of what it may be",
                    part,
                    "oneOf"
                )
            }
        }
        if let other = part.part("not"), holds(value, other, pointer, depth) {
            fail(pointer, "is what it must not be", part, "not")
        }
    }

    private mutating func holds(_ value: ContentTree, _ schema: Part, _ pointer: String, _ depth: Int) -> Bool {
        let before = (isSilent, hasFailed)
        (isSilent, hasFailed) = (true, false)
        defer { (isSilent, hasFailed) = before }
        check(value, schema, pointer, depth: depth + 1)
        return !hasFailed
    }

    private static func elements(_ part: Part?) -> [Part] {
        (part?.tree.elements ?? []).enumerated().compactMap { position, tree in
            part.map { Part(tree: tree, location: $0.location.within(position)) }
        }
    }

    // MARK: - Kinds of values

    private mutating func hasType(_ value: ContentTree, _ part: Part, _ pointer: String) -> Bool {
        guard let written = part.tree["type"] else { return true }
        let types = written.text.map { [$0] } ?? (written.elements ?? []).compactMap(\.text)
        let own = Self.type(value)
        if types.contains(own) || own == "integer" && types.contains("number") { return true }
        fail(pointer, "is \(own == "integer" ? "a number" : own), not \(types.joined(separator: " or "))", part, "type")
        return false
    }

    private static func type(_ value: ContentTree) -> String {
        switch value {
        case .null: "null"
        case .bool: "boolean"
        case .number(let text):
            Int(text) != nil || Double(text).map { $0 == $0.rounded() } == true ? "integer" : "number"
        case .array: "array"
        case .object: "object"
        case .string, .data, .date: "string"
        }
    }

    private mutating func object(_ members: [ContentTree.Member], _ part: Part, _ pointer: String, _ depth: Int) {
        guard budget.take(members.count / 16) else { return }
        let properties = part.part("properties")
        for name in (part.tree["required"]?.elements ?? []).compactMap(\.text)
        where members.firstIndex(named: name) == nil {
            // A member that only answers have is not required of a request.
            let schema = properties?.part(name).flatMap { document.resolved($0) }
            if schema?.tree["readOnly"]?.isTrue == true { continue }
            fail(pointer, "has no member '\(name)'", part, "required")
        }
        let more = part.part("additionalProperties")
        for member in members where !isAtEnd {
            let here = isSilent ? "" : pointer + "/" + member.name.replacing("~", with: "~0").replacing("/", with: "~1")
            if let schema = properties?.part(member.name) {
                check(member.value, schema, here, depth: depth + 1)
            } else if more?.tree == .bool(false) {
                if part.tree["patternProperties"] == nil {
                    fail(here, "is a member that is not known", part, "additionalProperties")
                }
            } else if let more, more.tree.members != nil {
                check(member.value, more, here, depth: depth + 1)
            }
        }
        count(members.count, "members", part, pointer, least: "minProperties", most: "maxProperties")
    }

    private mutating func array(_ values: [ContentTree], _ part: Part, _ pointer: String, _ depth: Int) {
        guard budget.take(values.count / 16) else { return }
        count(values.count, "elements", part, pointer, least: "minItems", most: "maxItems")
        if let items = part.part("items"), items.tree.members != nil || items.tree == .bool(false) {
            for (position, value) in values.enumerated() where !isAtEnd {
                check(value, items, isSilent ? "" : "\(pointer)/\(position)", depth: depth + 1)
            }
        }
        guard part.tree["uniqueItems"]?.isTrue == true, !isAtEnd else { return }
        // The number of steps is the number of values to hash, at any depth.
        var seen: Set<ContentTree> = []
        for value in values {
            guard budget.take(value.size) else { return }
            if !seen.insert(value.sorted()).inserted {
                return fail(pointer, "has an element twice", part, "uniqueItems")
            }
        }
    }

    private mutating func count(
        _ count: Int,
        _ what: String,
        _ part: Part,
        _ pointer: String,
        least: String,
        most: String
    ) {
        if let number = part.tree[least]?.whole, count < number {
            fail(pointer, "has \(count) \(what), \(number) at least", part, least)
        }
        if let number = part.tree[most]?.whole, count > number {
            fail(pointer, "has \(count) \(what), \(number) at most", part, most)
        }
    }

    private mutating func text(_ text: String, _ part: Part, _ pointer: String) {
        guard budget.take(text.utf8.count / 16) else { return }
        count(text.unicodeScalars.count, "characters", part, pointer, least: "minLength", most: "maxLength")
        if let written = part.tree["pattern"]?.text, let pattern = patterns[written] {
            switch pattern.verdict(Array(text.utf8), within: PatternTime(budget.timeLeft)) {
            case .found: break
            case .notFound: fail(pointer, "does not match \(written)", part, "pattern")
            case .gaveUp:
                fail(pointer, "takes too long to be compared with \(written)", part, "pattern")
                return budget.giveUp()
            }
        }
        if let format = part.tree["format"]?.text, !Self.has(text, format) {
            fail(pointer, "is no \(format)", part, "format")
        }
    }

    private static func has(_ text: String, _ format: String) -> Bool {
        switch format {
        case "date-time": return text.utf8.count > 10 && CalendarTime(iso8601: text) != nil
        case "date": return text.utf8.count == 10 && CalendarTime(iso8601: text) != nil
        case "uuid":
            let parts = text.split(separator: "-", omittingEmptySubsequences: false)
            return parts.map(\.utf8.count) == [8, 4, 4, 4, 12]
                && parts.allSatisfy { $0.allSatisfy { $0.isASCII && $0.isHexDigit } }
        default: return true
        }
    }

    private mutating func number(_ text: String, _ part: Part, _ pointer: String) {
        guard let value = Double(text) else { return }
        func bound(_ name: String) -> Double? {
            part.tree[name].flatMap { $0.text == nil ? $0.scalar : nil }.flatMap(Double.init)
        }
        if let least = bound("minimum") {
            let isExclusive = part.tree["exclusiveMinimum"]?.isTrue == true
            if value < least || isExclusive && value == least {
                fail(pointer, "is less than it may be", part, "minimum")
            }
        }
        if let most = bound("maximum") {
            let isExclusive = part.tree["exclusiveMaximum"]?.isTrue == true
            if value > most || isExclusive && value == most { fail(pointer, "is more than it may be", part, "maximum") }
        }
        if let least = bound("exclusiveMinimum"), value <= least {
            fail(pointer, "is less than it may be", part, "exclusiveMinimum")
        }
        if let most = bound("exclusiveMaximum"), value >= most {
            fail(pointer, "is more than it may be", part, "exclusiveMaximum")
        }
        if let step = bound("multipleOf"), step > 0 {
            let count = value / step
            if abs(count - count.rounded()) > 1e-6 {
                fail(pointer, "is no multiple of \(Self.shown(part.tree["multipleOf"] ?? .null))", part, "multipleOf")
            }
        }
    }

    private static func shown(_ tree: ContentTree) -> String {
        let text = String(decoding: JSONWriter.bytes(tree), as: UTF8.self)
        return text.count > 100 ? text.prefix(100) + "…" : text
    }
}

extension ContentTree {
    /// Whether two values are equal: members in any order, numbers by their value.
    fileprivate func isSame(as other: ContentTree) -> Bool {
        switch (self, other) {
        case (.number(let a), .number(let b)): a == b || Double(a).map { $0 == Double(b) } ?? false
        case (.array(let a), .array(let b)): a.count == b.count && zip(a, b).allSatisfy { $0.isSame(as: $1) }
        case (.object(let a), .object(let b)):
            a.count == b.count && a.allSatisfy { member in other[member.name].map(member.value.isSame) ?? false }
        default: self == other
        }
    }
}

// MARK: - The words of the schemas

/// Collects the patterns and unknown words of the schemas for requests, once, when the document is read.
struct SchemaWords {
    private typealias Part = OpenAPIDocument.Part

    /// The keywords of JSON Schema that restrict a value, and that `SchemaCheck` does not support.
    private static let unknown: Set<String> = [
        "patternProperties", "propertyNames", "if", "then", "else", "dependentRequired", "dependentSchemas",
        "dependencies", "contains", "minContains", "maxContains", "prefixItems", "unevaluatedProperties",
        "unevaluatedItems", "$dynamicRef", "$recursiveRef", "contentEncoding", "contentMediaType", "contentSchema",
    ]
    /// The formats that only describe how a program stores a value; the type is checked instead.
    private static let plainFormats: Set<String> = ["int32", "int64", "float", "double", "password", "binary", "byte"]
    /// The most schemas that are read.
    private static let most = 100_000

    /// The compiled patterns by their text; a pattern that PCRE2 does not accept is left out.
    private(set) var patterns: [String: Pattern] = [:]
    /// The requirements that are not checked, each with its location.
    private(set) var unchecked: [String] = []

    private let document: OpenAPIDocument
    private var visited: Set<String> = []

    init(_ document: OpenAPIDocument) {
        self.document = document
        if let security = document.root.part("security") { leave("security", security.location) }
        for operation in document.operations {
            for list in [operation.item.part("parameters"), operation.part.part("parameters")] {
                for parameter in document.elements(list) { visit(parameter: parameter) }
            }
            guard let body = operation.part.part("requestBody") else { continue }
            guard let content = document.resolved(body)?.part("content") else {
                leave("a body that is not in this file", body.location)
                continue
            }
            for member in content.tree.members ?? [] {
                if let schema = content.part(member.name)?.part("schema") { visit(schema) }
            }
        }
    }

    private mutating func leave(_ what: String, _ location: DocumentLocation) {
        unchecked.append("\(what) (\(location))")
    }

    private mutating func visit(parameter: Part) {
        guard visited.insert(parameter.location.pointer).inserted else { return }
        if let content = parameter.part("content") { return leave("a parameter with content", content.location) }
        if let style = parameter.part("style"), let name = style.tree.text, !["form", "simple"].contains(name) {
            leave("the style \(name)", style.location)
        }
        guard let schema = parameter.part("schema") else { return }
        if let resolved = document.resolved(schema),
            SchemaShape.type(SchemaShape(resolved, document).tree) == "object"
        {
            leave("an object as a parameter", schema.location)
        }
        visit(schema)
    }

    private mutating func visit(_ schema: Part) {
        var rest = [schema]
        while let next = rest.popLast() {
            guard let part = document.resolved(next) else {
                leave("what is not in this file", next.location)
                continue
            }
            guard visited.count < Self.most, visited.insert(part.location.pointer).inserted else { continue }
            for member in part.tree.members ?? [] {
                guard let below = part.part(member.name) else { continue }
                switch member.name {
                case "allOf", "anyOf", "oneOf":
                    rest += (below.tree.elements ?? []).enumerated().map { position, tree in
                        Part(tree: tree, location: below.location.within(position))
                    }
                case "not", "items", "additionalProperties": rest.append(below)
                case "properties": rest += (below.tree.members ?? []).compactMap { below.part($0.name) }
                case "pattern": compile(below)
                case "format":
                    let format = below.tree.text ?? ""
                    if !SchemaCheck.formats.contains(format), !Self.plainFormats.contains(format) {
                        leave("the format \(format)", below.location)
                    }
                default: if Self.unknown.contains(member.name) { leave(member.name, below.location) }
                }
            }
        }
    }

    private mutating func compile(_ part: Part) {
        guard let text = part.tree.text, patterns[text] == nil else { return }
        do throws(Pattern.Malformed) { patterns[text] = try Pattern(text) } catch {
            leave("a pattern that is none, since \(error.reason)", part.location)
        }
    }
}

// MARK: - The budget of a request

/// The limit of the checks of one request together, on one thread: steps, and the time of the thread. A value beyond it
/// is not known to be right.
package final class SchemaBudget {
    /// The most steps: values and schemas that are compared, and pieces of 16 bytes of a text.
    private static let mostSteps = 100_000
    /// The most nanoseconds of the thread's time. A check runs on a loop, which has other clients.
    package static let mostTime: UInt64 = 10_000_000
    /// The number of steps between two reads of the clock.
    private static let stride = 64

    private let time: UInt64
    /// The end by the clock of the thread's time; nil before the first step.
    private var end: UInt64?
    private var steps = 0
    private var nextLook = 0
    package private(set) var isOver = false

    /// - Parameter time: the nanoseconds of the thread's time, from the first step on.
    package init(time: UInt64 = mostTime) { self.time = time }

    /// Counts steps before they are taken.
    /// - Returns: false if they must not be taken.
    func take(_ count: Int = 1) -> Bool {
        guard !isOver else { return false }
        steps += count
        if steps > Self.mostSteps {
            isOver = true
        } else if steps >= nextLook {
            nextLook = steps + Self.stride
            isOver = timeLeft == 0
        }
        return !isOver
    }

    func giveUp() { isOver = true }

    /// The nanoseconds that are left.
    var timeLeft: UInt64 {
        let now = Pattern.threadTime()
        let (sum, overflow) = now.addingReportingOverflow(time)
        let end = self.end ?? (overflow ? .max : sum)
        self.end = end
        return now < end ? end - now : 0
    }
}

@available(*, unavailable) extension SchemaBudget: Sendable {}
