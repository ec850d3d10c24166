// Any value of JSON, for a program that looks into it without a type of its own, for parameters of requests, and within
// a program's own types.

public import FoundationEssentials
import Trees

/// A value of JSON. Members of objects keep their order, and numbers their digits.
///
/// ```swift
/// let value: JSONValue = ["name": "Ada", "tags": ["a", "b"]]
/// let name = value["name"]?.string
/// ```
///
/// Two are equal where they are written alike: `1` is not `1.0`, and the order of members counts.
public struct JSONValue: Sendable, Hashable {
    let tree: ContentTree

    init(_ tree: ContentTree) { self.tree = tree }

    /// The value `null`.
    public static let null = JSONValue(.null)

    /// A text.
    public init(_ value: String) { self.init(.string(value)) }

    /// A number.
    public init(_ value: some BinaryInteger) { self.init(.number("\(value)")) }

    /// A truth value.
    public init(_ value: Bool) { self.init(.bool(value)) }

    /// A number; nil for what is none in JSON: infinite, or not a number.
    public init?(_ value: Double) {
        guard value.isFinite else { return nil }
        self.init(.number("\(value)"))
    }

    /// A list of values.
    public init(_ values: [JSONValue]) { self.init(.array(values.map(\.tree))) }

    /// An object. Of members with one name the last one counts.
    public init(_ members: [(name: String, value: JSONValue)]) {
        var result: [ContentTree.Member] = []
        var indices: [MemberName: Int] = [:]
        for member in members {
            if let index = indices[MemberName(member.name)] {
                result[index].value = member.value.tree
            } else {
                indices[MemberName(member.name)] = result.count
                result.append(ContentTree.Member(member.name, member.value.tree))
            }
        }
        self.init(.object(result))
    }

    /// Reads a JSON text. Of members with one name the last one counts.
    /// - Throws: `MappingError.invalidJSON`.
    public init(_ text: Data) throws(MappingError) {
        do throws(TreeError) {
            self.init(try JSONReader.read(Array(text), limits: Self.limits, repeats: true))
        } catch {
            throw .invalidJSON(error.description)
        }
    }

    /// Far more than anybody sends, and few enough to be read.
    private static let limits = TreeLimits(depth: 512, values: 16 << 20)

    /// The value as a JSON text, without spaces.
    public var data: Data { Data(JSONWriter.bytes(tree)) }

    /// Whether it is `null`.
    public var isNull: Bool { tree == .null }

    /// The value as a truth value; nil if it is none.
    public var bool: Bool? { if case .bool(let value) = tree { value } else { nil } }

    /// The value as a whole number; nil if it is none, or too large.
    public var int: Int? { if case .number(let text) = tree { Int(text) } else { nil } }

    /// The value as a number; nil if it is none.
    public var double: Double? { if case .number(let text) = tree { Double(text) } else { nil } }

    /// The value as a text; nil if it is none.
    public var string: String? {
        switch tree {
        case .string(let text): text
        case .data, .date: tree.scalar
        default: nil
        }
    }

    /// The elements of a list; nil if the value is none.
    public var array: [JSONValue]? { if case .array(let values) = tree { values.map { JSONValue($0) } } else { nil } }

    /// The members of an object; nil if the value is none.
    public var members: [(name: String, value: JSONValue)]? {
        tree.members?.map { (name: $0.name, value: JSONValue($0.value)) }
    }

    /// The member of this name; nil where there is none.
    public subscript(name: String) -> JSONValue? { tree[name].map { JSONValue($0) } }

    /// The element at this index, counted from 0; nil where there is none.
    public subscript(index: Int) -> JSONValue? {
        guard case .array(let values) = tree, values.indices.contains(index) else { return nil }
        return JSONValue(values[index])
    }

    /// Without the members that are null, and without the objects that have no members left, at every depth. Lists stay
    /// as they are.
    public func removingNulls() -> JSONValue { JSONValue(tree.strippingNulls()) }

    /// A value of a type of the program's own.
    /// - Parameters:
    ///   - type: what it becomes.
    ///   - decoder: how; nil, the default, reads dates as ISO 8601 and `Data` as Base64.
    /// - Throws: what the decoder throws.
    public func decode<Value: Decodable>(_ type: Value.Type, decoder: JSONDecoder? = nil) throws -> Value {
        try (decoder ?? .iso8601).decode(type, from: data)
    }
}

extension JSONValue: CustomStringConvertible {
    /// The JSON text.
    public var description: String { String(decoding: JSONWriter.bytes(tree), as: UTF8.self) }
}

extension JSONValue: ExpressibleByStringLiteral, ExpressibleByIntegerLiteral, ExpressibleByFloatLiteral,
    ExpressibleByBooleanLiteral, ExpressibleByNilLiteral, ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral,
    ExpressibleByStringInterpolation
{
    /// A text.
    public init(stringLiteral value: String) { self.init(value) }
    /// A number.
    public init(integerLiteral value: Int) { self.init(value) }
    /// A number.
    public init(floatLiteral value: Double) { self.init(.number("\(value)")) }
    /// A truth value.
    public init(booleanLiteral value: Bool) { self.init(value) }
    /// The value `null`.
    public init(nilLiteral: ()) { self.init(.null) }
    /// A list.
    public init(arrayLiteral elements: JSONValue...) { self.init(elements) }
    /// An object.
    public init(dictionaryLiteral elements: (String, JSONValue)...) {
        self.init(elements.map { (name: $0.0, value: $0.1) })
    }
}

// MARK: - Decoding and encoding

/// A key of any name.
struct AnyKey: CodingKey {
    let stringValue: String
    let intValue: Int?

    init(_ name: String) { (stringValue, intValue) = (name, nil) }

    init(stringValue: String) { self.init(stringValue) }

    init(intValue: Int) { (stringValue, self.intValue) = ("\(intValue)", intValue) }
}

extension JSONValue: Codable {
    /// Reads whatever is there. The order of members is the decoder's.
    public init(from decoder: any Decoder) throws {
        if let container = try? decoder.container(keyedBy: AnyKey.self) {
            self.init(
                try container.allKeys.map {
                    (name: $0.stringValue, value: try container.decode(JSONValue.self, forKey: $0))
                }
            )
            return
        }
        if var container = try? decoder.unkeyedContainer() {
            var values: [JSONValue] = []
            while !container.isAtEnd { values.append(try container.decode(JSONValue.self)) }
            self.init(values)
            return
        }
        let container = try decoder.singleValueContainer()
        if container.decodeNil() {
            self.init(.null)
        } else if let value = try? container.decode(Bool.self) {
            self.init(value)
        } else if let value = try? container.decode(Int64.self) {
            self.init(value)
        } else if let value = try? container.decode(UInt64.self) {
            self.init(value)
        } else if let value = try? container.decode(Double.self) {
            self.init(.number("\(value)"))
        } else {
            self.init(try container.decode(String.self))
        }
    }

    /// Writes it as what it is; bytes and times as texts.
    public func encode(to encoder: any Encoder) throws {
        switch tree {
        case .object(let members):
            var container = encoder.container(keyedBy: AnyKey.self)
            for member in members { try container.encode(JSONValue(member.value), forKey: AnyKey(member.name)) }
        case .array(let values):
            var container = encoder.unkeyedContainer()
            for value in values { try container.encode(JSONValue(value)) }
        case .null:
            var container = encoder.singleValueContainer()
            try container.encodeNil()
        case .bool(let value):
            var container = encoder.singleValueContainer()
            try container.encode(value)
        case .number(let text):
            var container = encoder.singleValueContainer()
            if let value = Int64(text) {
                try container.encode(value)
            } else if let value = UInt64(text) {
                try container.encode(value)
            } else {
                try container.encode(Double(text) ?? 0)
            }
        case .string, .data, .date:
            var container = encoder.singleValueContainer()
            try container.encode(tree.scalar ?? "")
        }
    }
}
