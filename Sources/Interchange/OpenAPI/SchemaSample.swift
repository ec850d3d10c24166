// A value that a schema allows, drawn with a seed: the same document gives the same value on every machine.

import Contracts
import HTTPWire
import Matching
import Trees

/// Makes one value. The draws depend only on the seed and the location of a schema, so that a change of one part of a
/// document does not change the values of others.
struct SchemaSample {
    /// The reason why a part of the value does not fit the schema.
    struct Problem: Equatable {
        let location: DocumentLocation
        let reason: String
    }

    /// The most values of one sample: a schema that is larger, or endless, is cut.
    private static let most = 5000
    private static let deepest = 24
    /// The depth of nested schemas that get all of their members; below it they get only the required ones.
    private static let full = 6

    private typealias Part = OpenAPIDocument.Part

    private let document: OpenAPIDocument
    private let seed: UInt64
    private var count = 0
    private(set) var problems: [Problem] = []

    init(_ document: OpenAPIDocument, seed: UInt64) {
        self.document = document
        self.seed = seed
    }

    /// A value that the schema allows.
    mutating func value(_ schema: OpenAPIDocument.Part) -> ContentTree {
        value(schema, path: "", within: [])
    }

    /// - Parameters:
    ///   - path: the path of the value in the whole one, on which its draws depend.
    ///   - chain: the pointers of the schemas around it.
    private mutating func value(_ part: Part, path: String, within chain: [String]) -> ContentTree {
        count += 1
        guard count <= Self.most, chain.count < Self.deepest else {
            tell(part.location, "the schema goes on without an end: its value is cut here")
            return .null
        }
        guard let resolved = document.resolved(part) else {
            tell(part.location, "\(document.reason(unresolved: part)); the value is null")
            return .null
        }
        let schema = SchemaShape(resolved, document)
        if let value = given(schema.tree, resolved) { return value }
        if let choice = schema.choices.first(where: { !isAround($0, chain) }) ?? schema.choices.first {
            return value(choice, path: path, within: chain + schema.pointers)
        }
        let chain = chain + schema.pointers
        var random = Draws(seed, schema.location.pointer + " " + path)
        switch SchemaShape.type(schema.tree) {
        case "object": return object(schema, path, chain)
        case "array": return array(schema, path, chain, &random)
        case "string": return .string(text(schema, &random))
        case "integer": return number(schema, isWhole: true, &random)
        case "number": return number(schema, isWhole: false, &random)
        case "boolean": return .bool(random.number(below: 2) == 1)
        default: return .null
        }
    }

    private mutating func tell(_ location: DocumentLocation, _ reason: String) {
        let problem = Problem(location: location, reason: reason)
        if problems.count < 20, !problems.contains(problem) { problems.append(problem) }
    }

    /// The value that the schema itself gives.
    /// - Parameter part: the schema in the document.
    private mutating func given(_ schema: ContentTree, _ part: Part) -> ContentTree? {
        if let value = schema["const"] ?? schema["example"] ?? schema["examples"]?.elements?.first { return value }
        if let value = schema["default"] {
            // Many documents have `default: {}` beside members that are required.
            let refused = SchemaCheck.violations(value, part, document, [:], SchemaBudget(time: .max)).first
            guard let refused else { return value }
            tell(part.location, "its default \(refused.reason): another value is made")
        }
        return schema["enum"]?.elements?.first
    }

    /// Whether a schema is one of those around it.
    private func isAround(_ part: Part, _ chain: [String]) -> Bool {
        guard let resolved = document.resolved(part) else { return false }
        return SchemaShape(resolved, document).pointers.contains { chain.contains($0) }
    }

    // MARK: - Objects and arrays

    private mutating func object(_ schema: SchemaShape, _ path: String, _ chain: [String]) -> ContentTree {
        let isFull = chain.count <= Self.full && count < Self.most / 2
        var members: [ContentTree.Member] = []
        for (name, property) in schema.properties {
            guard let resolved = document.resolved(property) else { continue }
            if resolved.tree["writeOnly"]?.isTrue == true { continue }
            let isWithinItself = isAround(property, chain)
            guard schema.required.contains(MemberName(name)) || isFull && !isWithinItself else { continue }
            if isWithinItself, Self.mayBeNull(resolved.tree) || Self.mayBeNull(property.tree) {
                members.append(.init(name, .null))
                continue
            }
            members.append(.init(name, value(property, path: "\(path).\(name)", within: chain)))
        }
        if schema.properties.isEmpty, isFull, let more = schema.part("additionalProperties"), more.tree.members != nil {
            members.append(.init("key", value(more, path: path + ".key", within: chain)))
        }
        return .object(members)
    }

    static func mayBeNull(_ schema: ContentTree) -> Bool {
        schema["nullable"]?.isTrue == true || schema["type"]?.elements?.contains(.string("null")) == true
    }

    private mutating func array(_ schema: SchemaShape, _ path: String, _ chain: [String], _ random: inout Draws)
        -> ContentTree
    {
        let least = max(0, schema.tree["minItems"]?.whole ?? 0)
        let most = schema.tree["maxItems"]?.whole ?? .max
        guard let items = schema.part("items") else { return .array([]) }
        let isWithinItself = isAround(items, chain)
        let isFull = chain.count <= Self.full && count < Self.most / 2 && !isWithinItself
        let wanted = isFull ? 1 + random.number(below: 3) : 0
        var values: [ContentTree] = []
        for position in 0..<min(max(wanted, least), max(most, 0), 100) {
            let value = value(items, path: "\(path).\(position)", within: chain)
            if schema.tree["uniqueItems"]?.isTrue == true, values.contains(value) { continue }
            values.append(value)
        }
        return .array(values)
    }

    // MARK: - Texts and numbers

    private mutating func text(_ schema: SchemaShape, _ random: inout Draws) -> String {
        var text = Self.text(format: schema.tree["format"]?.text, &random)
        let least = min(max(0, schema.tree["minLength"]?.whole ?? 0), 1000)
        let most = max(0, schema.tree["maxLength"]?.whole ?? .max)
        while text.unicodeScalars.count < least { text += " " + random.word() }
        if text.unicodeScalars.count > most {
            text = String(String.UnicodeScalarView(text.unicodeScalars.prefix(most)))
        }
        if let written = schema.tree["pattern"]?.text {
            let pattern = try? Pattern(written)
            if pattern?.verdict(Array(text.utf8)) != .found {
                tell(schema.location.within("pattern"), "no text was made for this pattern; give an example")
            }
        }
        return text
    }

    private static func text(format: String?, _ random: inout Draws) -> String {
        // The time is drawn in days and seconds after the beginning of 2026.
        let time = CalendarTime(1_767_225_600 + Int64(random.number(below: 365 * 86400)))
        switch format {
        case "date-time": return time.iso8601
        case "date": return time.formatted("%Y-%m-%d")
        case "time": return time.formatted("%H:%M:%SZ")
        case "uuid":
            let hex = random.hex(32)
            return
                "\(hex.prefix(8))-\(hex.dropFirst(8).prefix(4))-4\(hex.dropFirst(13).prefix(3))-a\(hex.dropFirst(17).prefix(3))-\(hex.suffix(12))"
        case "email", "idn-email": return "\(random.word()).\(random.word())@example.com"
        case "uri", "url", "uri-reference", "iri":
            return "https://example.com/\(random.word())/\(random.number(below: 1000))"
        case "hostname", "idn-hostname": return random.word() + ".example.com"
        case "ipv4": return "192.0.2.\(1 + random.number(below: 254))"
        case "ipv6": return "2001:db8::" + random.hex(4)
        case "byte": return Base64.encode(Array((random.word() + " " + random.word()).utf8))
        case "password": return "***"
        default: return "\(random.word()) \(random.word())"
        }
    }

    private mutating func number(_ schema: SchemaShape, isWhole: Bool, _ random: inout Draws) -> ContentTree {
        func bound(_ name: String) -> Double? {
            schema.tree[name].flatMap { $0.text == nil ? $0.scalar : nil }.flatMap(Double.init)
        }
        let step = bound("multipleOf").flatMap { $0 > 0 ? $0 : nil } ?? (isWhole ? 1 : 0.01)
        var low = bound("minimum"), high = bound("maximum")
        // In 3.1 these are numbers; in 3.0 they are flags for the other bounds.
        if let exclusive = bound("exclusiveMinimum") { low = max(exclusive + step, low ?? -.infinity) }
        if let exclusive = bound("exclusiveMaximum") { high = min(exclusive - step, high ?? .infinity) }
        if schema.tree["exclusiveMinimum"]?.isTrue == true { low = low.map { $0 + step } }
        if schema.tree["exclusiveMaximum"]?.isTrue == true { high = high.map { $0 - step } }
        let first = ((low ?? min(1, high ?? 1)) / step).rounded(.up)
        let last = ((high ?? max(first * step + 100, 100)) / step).rounded(.down)
        guard first.isFinite, last.isFinite, abs(first) < 1e15, abs(last) < 1e15, first <= last else {
            tell(schema.location, "no number is within its bounds")
            return .number("0")
        }
        let multiple = first + Double(random.number(below: Int(min(last - first, 1_000_000)) + 1))
        if isWhole, step == step.rounded() { return .number(String(Int(multiple * step))) }
        // The result is rounded, since sums of hundredths have further digits.
        let value = (multiple * step * 1e6).rounded() / 1e6
        return .number(value == value.rounded() && abs(value) < 1e15 ? String(Int(value)) : String(value))
    }
}

/// Random numbers that depend on a seed and a name only.
private struct Draws {
    private static let words = [
        "amber", "birch", "cedar", "delta", "ember", "fjord", "grove", "harbor", "island", "juniper", "kestrel",
        "lagoon",
        "meadow", "north", "orchid", "pebble", "quartz", "river", "summit", "timber", "umber", "valley", "willow",
        "zephyr",
    ]

    private var state: UInt64

    /// Hashes the name with FNV-1a, and combines it with the seed.
    init(_ seed: UInt64, _ name: String) {
        var hash: UInt64 = 0xCBF2_9CE4_8422_2325
        for byte in name.utf8 { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }
        state = hash ^ seed &* 0x9E37_79B9_7F4A_7C15
    }

    /// The next number of SplitMix64.
    private mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var value = (state ^ state >> 30) &* 0xBF58_476D_1CE4_E5B9
        value = (value ^ value >> 27) &* 0x94D0_49BB_1331_11EB
        return value ^ value >> 31
    }

    mutating func number(below count: Int) -> Int { Int(next() % UInt64(max(count, 1))) }

    mutating func word() -> String { Self.words[number(below: Self.words.count)] }

    mutating func hex(_ digits: Int) -> String {
        var result = ""
        for _ in 0..<digits { result += String(number(below: 16), radix: 16) }
        return result
    }
}
