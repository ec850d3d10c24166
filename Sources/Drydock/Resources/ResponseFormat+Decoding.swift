// Bodies that become values of a program's own types, or any JSON: at their root or at a path of keys.

import Content
public import FoundationEssentials

extension ResponseFormat where Model: Decodable {
    private static var accepted: String { "application/json, */*;q=0.5" }

    /// JSON, in which dates are ISO 8601 and `Data` is Base64, as ``RequestBody/json(_:style:)`` writes them.
    public static var json: Self { json(at: nil) }

    /// JSON, or what stands in it at a path.
    /// - Parameters:
    ///   - path: keys of objects, and numbers of elements, with dots between them, such as `data.users.0`; nil, the
    ///     default, is all of it.
    ///   - decoder: must not be changed any more; nil, the default, reads dates as ISO 8601 and `Data` as Base64.
    public static func json(at path: String? = nil, decoder: JSONDecoder? = nil) -> Self {
        let keys = DecodedPart<Model>.keys(path)
        let identity = decoder == nil ? FormatIdentity(Model.self, "json \(path ?? "")") : nil
        let decoder = decoder ?? .iso8601
        return Self(accepted, .json, identity: identity) { result in
            guard !result.data.isEmpty else { throw MappingError.empty }
            guard !keys.isEmpty else { return try decoder.decode(Model.self, from: result.data) }
            return try decoder.decode(DecodedPart<Model>.self, from: result.data, configuration: keys).value
        }
    }

    /// A property list, as XML or binary.
    public static var propertyList: Self { propertyList(at: nil) }

    /// A property list, or what stands in it at a path.
    /// - Parameters:
    ///   - path: as for ``json(at:decoder:)``.
    ///   - decoder: must not be changed any more; nil, the default, is a new one.
    ///
    /// A list that is nested too deep or names shared values too often is ``MappingError/invalidPropertyList(_:)``: the
    /// decoder would run out of stack, or not end.
    public static func propertyList(at path: String? = nil, decoder: PropertyListDecoder? = nil) -> Self {
        let keys = DecodedPart<Model>.keys(path)
        let identity = decoder == nil ? FormatIdentity(Model.self, "plist \(path ?? "")") : nil
        let decoder = decoder ?? PropertyListDecoder()
        return Self("application/x-plist, */*;q=0.5", .propertyList, identity: identity) { result in
            guard !result.data.isEmpty else { throw MappingError.empty }
            if let reason = result.data.withUnsafeBytes({ PropertyListBounds.fault(in: $0) }) {
                throw MappingError.invalidPropertyList(reason)
            }
            guard !keys.isEmpty else { return try decoder.decode(Model.self, from: result.data) }
            return try decoder.decode(DecodedPart<Model>.self, from: result.data, configuration: keys).value
        }
    }
}

extension ResponseFormat where Model == JSONValue {
    /// Any JSON.
    /// - Throws: ``MappingError/invalidJSON(_:)``.
    public static var jsonValue: Self {
        Self("application/json, */*;q=0.5", .json, identity: FormatIdentity(JSONValue.self, "any")) { result in
            guard !result.data.isEmpty else { throw MappingError.empty }
            return try JSONValue(result.data)
        }
    }

    /// A JSON object.
    /// - Throws: ``MappingError/invalidJSON(_:)``, ``MappingError/notAnObject``.
    public static var jsonObject: Self {
        Self("application/json, */*;q=0.5", .jsonObject, identity: FormatIdentity(JSONValue.self, "object")) { result in
            let value = try jsonValue.read(result)
            guard value.members != nil else { throw MappingError.notAnObject }
            return value
        }
    }
}

extension ResponseFormat where Model == [JSONValue] {
    /// A JSON array.
    /// - Throws: ``MappingError/invalidJSON(_:)``, ``MappingError/notAnArray``.
    public static var jsonArray: Self {
        Self("application/json, */*;q=0.5", .jsonArray, identity: FormatIdentity([JSONValue].self, "array")) { result in
            guard let values = try ResponseFormat<JSONValue>.jsonValue.read(result).array else {
                throw MappingError.notAnArray
            }
            return values
        }
    }
}

extension JSONDecoder {
    /// With dates as ISO 8601.
    static var iso8601: JSONDecoder {
        let decoder = JSONDecoder()
        decoder.dateDecodingStrategy = .iso8601
        return decoder
    }
}

/// What stands at a path of keys.
private struct DecodedPart<Value: Decodable>: DecodableWithConfiguration {
    let value: Value

    static func keys(_ path: String?) -> [String] { path?.split(separator: ".").map(String.init) ?? [] }

    init(from decoder: any Decoder, configuration keys: [String]) throws {
        var decoder = decoder
        for (depth, key) in keys.enumerated() {
            let isLast = depth == keys.count - 1
            let place = keys[...depth].joined(separator: ".")
            if let number = Int(key), var list = try? decoder.unkeyedContainer() {
                var passed = 0
                while passed < number, !list.isAtEnd {
                    _ = try list.superDecoder()
                    passed += 1
                }
                guard number >= 0, !list.isAtEnd else { throw MappingError.missingValue(place) }
                if isLast {
                    value = try list.decode(Value.self)
                    return
                }
                decoder = try list.superDecoder()
                continue
            }
            guard let object = try? decoder.container(keyedBy: AnyKey.self), object.contains(AnyKey(key)) else {
                throw MappingError.missingValue(place)
            }
            if isLast {
                value = try object.decode(Value.self, forKey: AnyKey(key))
                return
            }
            decoder = try object.superDecoder(forKey: AnyKey(key))
        }
        value = try Value(from: decoder)
    }
}
