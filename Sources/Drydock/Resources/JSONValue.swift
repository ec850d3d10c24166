// Any value of JSON, for a program that looks into it without a type of its own, and for parameters of requests.

import Content
public import FoundationEssentials

/// A value of JSON. Members of objects keep their order, and numbers their digits.
///
/// ```swift
/// let value: JSONValue = ["name": "Ada", "tags": ["a", "b"]]
/// let name = value["name"]?.string
/// ```
///
/// Two are equal where they are written alike: `1` is not `1.0`, and the order of members counts.
public struct JSONValue: Sendable, Hashable {
    /// A name with its value.
    public struct Member: Sendable, Hashable {
        /// Of the member.
        public var name: String
        /// What it is.
        public var value: JSONValue

        /// A member of this name.
        public init(_ name: String, _ value: JSONValue) {
            self.name = name
            self.value = value
        }
    }

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

    /// Nil for what is no number in JSON: infinite, or not a number.
    public init?(_ value: Double) {
        guard value.isFinite else { return nil }
        self.init(.number("\(value)"))
    }

    /// A list of values.
    public init(_ values: [JSONValue]) { self.init(.array(values.map(\.tree))) }

    /// An object. Of members with one name the last one counts.
    public init(_ members: [Member]) {
        var result: [ContentTree.Member] = []
        var places: [MemberName: Int] = [:]
        for member in members {
            if let place = places[MemberName(member.name)] {
                result[place].value = member.value.tree
            } else {
                places[MemberName(member.name)] = result.count
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

    /// As a JSON text, without spaces.
    public var data: Data { Data(JSONWriter.bytes(tree)) }

    /// Whether it is `null`.
    public var isNull: Bool { tree == .null }

    /// Nil for what is no truth value.
    public var bool: Bool? { if case .bool(let value) = tree { value } else { nil } }

    /// Nil for what is no whole number, or too large a one.
    public var int: Int? { if case .number(let text) = tree { Int(text) } else { nil } }

    /// Nil for what is no number.
    public var double: Double? { if case .number(let text) = tree { Double(text) } else { nil } }

    /// Nil for what is no text.
    public var string: String? {
        switch tree {
        case .string(let text): text
        case .data, .date: tree.scalar
        default: nil
        }
    }

    /// Nil for what is no list.
    public var array: [JSONValue]? { if case .array(let values) = tree { values.map { JSONValue($0) } } else { nil } }

    /// Nil for what is no object.
    public var members: [Member]? { tree.members?.map { Member($0.name, JSONValue($0.value)) } }

    /// The member of this name; nil where there is none.
    public subscript(name: String) -> JSONValue? { tree[name].map { JSONValue($0) } }

    /// The element at this place, counted from 0; nil where there is none.
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
    public init(dictionaryLiteral elements: (String, JSONValue)...) { self.init(elements.map { Member($0.0, $0.1) }) }
}
