// Any value of JSON within a program's own types: read from a decoder, and written to an encoder.

import Content

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
                try container.allKeys.map { Member($0.stringValue, try container.decode(JSONValue.self, forKey: $0)) }
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
