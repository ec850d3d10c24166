// Encodes a program's own values as trees, whose members keep the order in which they were encoded.

import FoundationEssentials
import Trees

/// A value while it is encoded. Used by one encoding alone.
private final class EncodedNode {
    enum Content {
        case nothing
        case value(ContentTree)
        case object([(name: String, node: EncodedNode)])
        case array([EncodedNode])
    }

    var content = Content.nothing

    init(_ content: Content = .nothing) { self.content = content }

    /// What was encoded as nothing at all is an object without members, as JSONEncoder has it.
    var tree: ContentTree {
        switch content {
        case .nothing: .empty
        case .value(let tree): tree
        case .array(let nodes): .array(nodes.map(\.tree))
        case .object(let members):
            // A name that is encoded again has its last value.
            JSONValue(members.map { (name: $0.name, value: JSONValue($0.node.tree)) }).tree
        }
    }

    func add(_ name: String, _ node: EncodedNode) {
        if case .object(var members) = content {
            content = .nothing
            members.append((name, node))
            content = .object(members)
        } else {
            content = .object([(name, node)])
        }
    }

    func add(_ node: EncodedNode) {
        if case .array(var nodes) = content {
            content = .nothing
            nodes.append(node)
            content = .array(nodes)
        } else {
            content = .array([node])
        }
    }

    var count: Int { if case .array(let nodes) = content { nodes.count } else { 0 } }
}

@available(*, unavailable) extension EncodedNode: Sendable {}

/// Writes into one node.
struct TreeEncoder: Encoder {
    private let node: EncodedNode
    private let dates: ParameterStyle.Dates
    let codingPath: [any CodingKey]
    let userInfo: [CodingUserInfoKey: Any] = [:]

    private init(_ node: EncodedNode, _ dates: ParameterStyle.Dates, _ path: [any CodingKey]) {
        self.node = node
        self.dates = dates
        codingPath = path
    }

    /// - Throws: what the value throws, and where a number or a date cannot be written.
    static func tree(of value: some Encodable, dates: ParameterStyle.Dates) throws -> ContentTree {
        let node = EncodedNode()
        try TreeEncoder(node, dates, []).write(value)
        return node.tree
    }

    /// Types that have a form of their own in a tree are not asked to encode themselves.
    private func write<Value: Encodable>(_ value: Value) throws {
        switch value {
        case let value as JSONValue: node.content = .value(value.tree)
        case let value as Parameters: node.content = .value(try value.object)
        case let value as Date: node.content = .value(try dates.tree(value))
        case let value as Data: node.content = .value(.data(Array(value)))
        case let value as URL: node.content = .value(.string(value.absoluteString))
        case let value as Decimal:
            guard !value.isNaN else { throw ParameterFault.number("\(value)") }
            node.content = .value(.number("\(value)"))
        default: try value.encode(to: self)
        }
    }

    func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedEncodingContainer<Key> {
        if case .nothing = node.content { node.content = .object([]) }
        return KeyedEncodingContainer(Keyed<Key>(encoder: self))
    }

    func unkeyedContainer() -> any UnkeyedEncodingContainer {
        if case .nothing = node.content { node.content = .array([]) }
        return Unkeyed(encoder: self)
    }

    func singleValueContainer() -> any SingleValueEncodingContainer { Single(encoder: self) }

    /// The encoder of a part that is encoded now.
    private func part(_ key: any CodingKey) -> TreeEncoder { TreeEncoder(EncodedNode(), dates, codingPath + [key]) }

    private struct Keyed<Key: CodingKey>: KeyedEncodingContainerProtocol {
        let encoder: TreeEncoder
        var codingPath: [any CodingKey] { encoder.codingPath }

        private func part(_ key: any CodingKey) -> TreeEncoder {
            let part = encoder.part(key)
            encoder.node.add(key.stringValue, part.node)
            return part
        }

        mutating func encodeNil(forKey key: Key) { part(key).node.content = .value(.null) }

        mutating func encode(_ value: some Encodable, forKey key: Key) throws { try part(key).write(value) }

        mutating func nestedContainer<Nested: CodingKey>(
            keyedBy type: Nested.Type,
            forKey key: Key
        ) -> KeyedEncodingContainer<Nested> {
            part(key).container(keyedBy: type)
        }

        mutating func nestedUnkeyedContainer(forKey key: Key) -> any UnkeyedEncodingContainer {
            part(key).unkeyedContainer()
        }

        mutating func superEncoder() -> any Encoder { part(AnyKey("super")) }

        mutating func superEncoder(forKey key: Key) -> any Encoder { part(key) }
    }

    private struct Unkeyed: UnkeyedEncodingContainer {
        let encoder: TreeEncoder
        var codingPath: [any CodingKey] { encoder.codingPath }
        var count: Int { encoder.node.count }

        private func part() -> TreeEncoder {
            let part = encoder.part(AnyKey(intValue: count))
            encoder.node.add(part.node)
            return part
        }

        mutating func encodeNil() { part().node.content = .value(.null) }

        mutating func encode(_ value: some Encodable) throws { try part().write(value) }

        mutating func nestedContainer<Nested: CodingKey>(
            keyedBy type: Nested.Type
        ) -> KeyedEncodingContainer<Nested> {
            part().container(keyedBy: type)
        }

        mutating func nestedUnkeyedContainer() -> any UnkeyedEncodingContainer { part().unkeyedContainer() }

        mutating func superEncoder() -> any Encoder { part() }
    }

    private struct Single: SingleValueEncodingContainer {
        let encoder: TreeEncoder
        var codingPath: [any CodingKey] { encoder.codingPath }

        private func set(_ tree: ContentTree) { encoder.node.content = .value(tree) }

        private func set(number value: some BinaryFloatingPoint & CustomStringConvertible) throws {
            guard value.isFinite else { throw ParameterFault.number("\(value)") }
            set(.number(value.description))
        }

        mutating func encodeNil() { set(.null) }
        mutating func encode(_ value: Bool) { set(.bool(value)) }
        mutating func encode(_ value: String) { set(.string(value)) }
        mutating func encode(_ value: Double) throws { try set(number: value) }
        mutating func encode(_ value: Float) throws { try set(number: value) }
        mutating func encode(_ value: Int) { set(.number("\(value)")) }
        mutating func encode(_ value: Int8) { set(.number("\(value)")) }
        mutating func encode(_ value: Int16) { set(.number("\(value)")) }
        mutating func encode(_ value: Int32) { set(.number("\(value)")) }
        mutating func encode(_ value: Int64) { set(.number("\(value)")) }
        mutating func encode(_ value: UInt) { set(.number("\(value)")) }
        mutating func encode(_ value: UInt8) { set(.number("\(value)")) }
        mutating func encode(_ value: UInt16) { set(.number("\(value)")) }
        mutating func encode(_ value: UInt32) { set(.number("\(value)")) }
        mutating func encode(_ value: UInt64) { set(.number("\(value)")) }
        mutating func encode(_ value: some Encodable) throws { try encoder.write(value) }
    }
}
