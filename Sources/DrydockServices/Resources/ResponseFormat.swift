// What the body of a response is, and how it becomes a value: the formats that the library reads, those of a program,
// and why a body is none of them.

public import Drydock
public import FoundationEssentials
import HTTPTypes
import Trees

/// How the body of a response becomes a model.
///
/// ```swift
/// .json                                       // a Decodable, and the decoder may be the program's own
/// .json(at: "data.users")                     // what stands there
/// .jsonObject.map { Settings($0) }            // what a closure makes of what is read
/// ResponseFormat(accept: "text/csv") { result in try Table(csv: result.data) }
/// ```
public struct ResponseFormat<Model: Sendable>: Sendable {
    /// The Accept field of a request that has none itself; nil: none.
    public var accept: String?
    /// What the body should be: one that is something else is not stored. A resource whose
    /// `DownloadOptions.expectation` says otherwise wins.
    public var expectation: ContentExpectation
    /// Equal for formats that read equal bytes alike; nil: nobody knows.
    let identity: FormatIdentity?
    /// Why it can read nothing; nil: it can.
    let fault: String?
    private let reading: @Sendable (DownloadResult) throws -> Model

    /// A format of the program's own.
    /// - Parameters:
    ///   - accept: the Accept field of a request that has none itself; none by default.
    ///   - expectation: what the body should be for a response to be stored; anything by default.
    ///   - read: makes the model of a success; called on any thread.
    public init(
        accept: String? = nil,
        expectation: ContentExpectation = .anything,
        read: @escaping @Sendable (DownloadResult) throws -> Model
    ) {
        self.init(accept, expectation, identity: nil, read: read)
    }

    init(
        _ accept: String?,
        _ expectation: ContentExpectation = .anything,
        identity: FormatIdentity?,
        fault: String? = nil,
        read: @escaping @Sendable (DownloadResult) throws -> Model
    ) {
        self.accept = accept
        self.expectation = expectation
        self.identity = identity
        self.fault = fault
        reading = read
    }

    /// The model of a response.
    /// - Throws: why there is none.
    public func read(_ result: DownloadResult) throws -> Model { try reading(result) }

    /// The same format, with nil if there is no body, as with 204, 205, 304 and HEAD.
    public var optional: ResponseFormat<Model?> {
        ResponseFormat<Model?>(accept, expectation, identity: identity?.with("optional"), fault: fault) { result in
            result.data.isEmpty ? nil : try read(result)
        }
    }

    /// What a closure makes of the model that this reads.
    /// - Parameter transform: called on any thread; what it throws is ``ServiceError/mapping(_:_:)``.
    public func map<Other: Sendable>(
        _ transform: @escaping @Sendable (Model) throws -> Other
    ) -> ResponseFormat<Other> {
        ResponseFormat<Other>(accept, expectation, identity: nil, fault: fault) { try transform(try read($0)) }
    }

    /// Reads what a mapping makes of the body, which is JSON or a property list, instead of the body.
    public func mapped(by mapping: ContentMapping) -> Self {
        ResponseFormat(
            accept,
            expectation,
            identity: identity?.with("mapped \(mapping.digest)"),
            fault: fault ?? mapping.fault
        ) { result in
            var result = result
            result.data = try mapping.map(result.data)
            return try read(result)
        }
    }
}

/// What a format of the library is, for ``DecodedModels``.
struct FormatIdentity: Hashable, Sendable {
    private let model: ObjectIdentifier
    private let name: String

    init(_ model: Any.Type, _ name: String) {
        self.model = ObjectIdentifier(model)
        self.name = name
    }

    private init(model: ObjectIdentifier, name: String) {
        self.model = model
        self.name = name
    }

    func with(_ more: String) -> FormatIdentity { FormatIdentity(model: model, name: "\(name), \(more)") }
}

// In an extension of every format, and not of those with their model alone, so that `.jsonObject.map { … }` is a format
// of what the closure makes.
extension ResponseFormat {
    /// The bytes as they came.
    public static var data: ResponseFormat<Data> { ResponseFormat<Data>(nil, identity: nil) { $0.data } }

    /// The response with its bytes, and where it came from.
    public static var raw: ResponseFormat<DownloadResult> { ResponseFormat<DownloadResult>(nil, identity: nil) { $0 } }

    /// Nothing: whatever came is no matter, as with 204, 205, 304 and HEAD.
    public static var nothing: ResponseFormat<Void> { ResponseFormat<Void>(nil, identity: nil) { _ in } }

    /// A text in the character set that Content-Type names: UTF-8, where it names none, or ISO 8859-1. No body is an
    /// empty text.
    /// - Throws: ``MappingError/invalidText(_:)``.
    public static var text: ResponseFormat<String> {
        ResponseFormat<String>("text/*, */*;q=0.5", identity: FormatIdentity(String.self, "text")) { result in
            let type = result.head.headerFields[.contentType] ?? ""
            let parameter = type.split(separator: ";").dropFirst().map { $0.lowercased().filter { $0 != " " } }
                .first { $0.hasPrefix("charset=") }
            let charset = parameter.map { $0.dropFirst(8).filter { $0 != "\"" } } ?? "utf-8"
            switch charset {
            case "utf-8", "utf8", "us-ascii":
                guard let text = String(validating: result.data, as: UTF8.self) else {
                    throw MappingError.invalidText("its bytes are no UTF-8")
                }
                return text
            case "iso-8859-1", "latin1":
                return String(String.UnicodeScalarView(result.data.map { Unicode.Scalar($0) }))
            default: throw MappingError.invalidText("the character set '\(charset)' is unknown here")
            }
        }
    }

    /// The format and the size of an image, by its header; the pixels are not decoded.
    /// - Throws: ``MappingError/invalidImage``.
    public static var imageHeader: ResponseFormat<ImageHeader> {
        ResponseFormat<ImageHeader>("image/*", .image, identity: FormatIdentity(ImageHeader.self, "image")) { result in
            try ImageHeader(result.data)
        }
    }
}

// MARK: - A program's own types

extension ResponseFormat where Model: Decodable {
    private static var accepted: String { "application/json, */*;q=0.5" }

    /// JSON, in which dates are ISO 8601 and `Data` is Base64, as `RequestBody.json(_:style:)` writes them.
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

    /// Any JSON.
    /// - Throws: ``MappingError/invalidJSON(_:)``.
    public static var jsonValue: ResponseFormat<JSONValue> {
        ResponseFormat<JSONValue>("application/json, */*;q=0.5", .json, identity: FormatIdentity(JSONValue.self, "any"))
        { result in
            guard !result.data.isEmpty else { throw MappingError.empty }
            return try JSONValue(result.data)
        }
    }

    /// A JSON object.
    /// - Throws: ``MappingError/invalidJSON(_:)``, ``MappingError/notAnObject``.
    public static var jsonObject: ResponseFormat<JSONValue> {
        ResponseFormat<JSONValue>(
            "application/json, */*;q=0.5",
            .jsonObject,
            identity: FormatIdentity(JSONValue.self, "object")
        ) { result in
            let value = try ResponseFormat<JSONValue>.jsonValue.read(result)
            guard value.members != nil else { throw MappingError.notAnObject }
            return value
        }
    }

    /// A JSON array.
    /// - Throws: ``MappingError/invalidJSON(_:)``, ``MappingError/notAnArray``.
    public static var jsonArray: ResponseFormat<[JSONValue]> {
        ResponseFormat<[JSONValue]>(
            "application/json, */*;q=0.5",
            .jsonArray,
            identity: FormatIdentity([JSONValue].self, "array")
        ) { result in
            guard let values = try ResponseFormat<JSONValue>.jsonValue.read(result).array else {
                throw MappingError.notAnArray
            }
            return values
        }
    }
}

extension JSONDecoder {
    /// A decoder that reads dates as ISO 8601.
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
            let keyPath = keys[...depth].joined(separator: ".")
            if let number = Int(key), var list = try? decoder.unkeyedContainer() {
                var passed = 0
                while passed < number, !list.isAtEnd {
                    _ = try list.superDecoder()
                    passed += 1
                }
                guard number >= 0, !list.isAtEnd else { throw MappingError.missingValue(keyPath) }
                if isLast {
                    value = try list.decode(Value.self)
                    return
                }
                decoder = try list.superDecoder()
                continue
            }
            guard let object = try? decoder.container(keyedBy: AnyKey.self), object.contains(AnyKey(key)) else {
                throw MappingError.missingValue(keyPath)
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

// MARK: - Errors

/// A body that is not what was expected.
public enum MappingError: Error, Sendable, Hashable {
    /// There is no body, and a value was to be made of one; ``ResponseFormat/optional`` reads nil then.
    case empty
    /// It is no JSON text: why, and where.
    case invalidJSON(String)
    /// It is JSON, and no object.
    case notAnObject
    /// It is JSON, and no list.
    case notAnArray
    /// It is no text in the character set that it says it has.
    case invalidText(String)
    /// It is a property list that is not decoded: nested more than 128 levels deep, or with more values, where each is
    /// written out, than it has bytes (100,000 are always allowed).
    case invalidPropertyList(String)
    /// It is no image, or its header is cut short.
    case invalidImage
    /// There is nothing at this path of keys.
    case missingValue(String)
    /// A ``ContentMapping`` cannot be applied: the key path and the reason.
    case unmapped(String)
}

extension MappingError: CustomStringConvertible {
    /// What is wrong with the body.
    public var description: String {
        switch self {
        case .empty: "there is no body"
        case .invalidJSON(let reason): "it is no JSON: \(reason)"
        case .notAnObject: "it is JSON, and no object"
        case .notAnArray: "it is JSON, and no array"
        case .invalidText(let reason): "it is no text: \(reason)"
        case .invalidPropertyList(let reason): "the property list cannot be decoded: \(reason)"
        case .invalidImage: "it is no image"
        case .missingValue(let path): "there is nothing at '\(path)'"
        case .unmapped(let reason): "it cannot be mapped: \(reason)"
        }
    }
}
