// What the body of a response is, and how it becomes a value: the formats that the library reads, and those of a program.

public import FoundationEssentials
import HTTPTypes

/// How the body of a response becomes a model.
///
/// ```swift
/// .json                                       // a Decodable, and the decoder may be the program's own
/// .json(at: "data.users")                     // what stands there
/// ResponseFormat(accept: "text/csv") { result in try Table(csv: result.data) }
/// ```
public struct ResponseFormat<Model: Sendable>: Sendable {
    /// The Accept field of a request that has none itself; nil: none.
    public var accept: String?
    /// What the body should be: one that is something else is not stored. A resource whose
    /// ``DownloadOptions/expectation`` says otherwise wins.
    public var expectation: DownloadOptions.Expectation
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
        expectation: DownloadOptions.Expectation = .anything,
        read: @escaping @Sendable (DownloadResult) throws -> Model
    ) {
        self.init(accept, expectation, identity: nil, read: read)
    }

    init(
        _ accept: String?,
        _ expectation: DownloadOptions.Expectation = .anything,
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

    /// The same, and nil where there is no body, as with 204, 205, 304 and HEAD.
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

extension ResponseFormat where Model == Data {
    /// The bytes as they came.
    public static var data: Self { Self(nil, identity: nil) { $0.data } }
}

extension ResponseFormat where Model == DownloadResult {
    /// The response with its bytes, and where it came from.
    public static var raw: Self { Self(nil, identity: nil) { $0 } }
}

extension ResponseFormat where Model == Void {
    /// Nothing: whatever came is no matter, as with 204, 205, 304 and HEAD.
    public static var nothing: Self { Self(nil, identity: nil) { _ in } }
}

extension ResponseFormat where Model == String {
    /// A text in the character set that Content-Type names: UTF-8, where it names none, or ISO 8859-1. No body is an
    /// empty text.
    /// - Throws: ``MappingError/invalidText(_:)``.
    public static var text: Self {
        Self("text/*, */*;q=0.5", identity: FormatIdentity(String.self, "text")) { result in
            let type = result.response.headerFields[.contentType] ?? ""
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
}

extension ResponseFormat where Model == ImageHeader {
    /// The format and the size of an image, by its header; the pixels are not decoded.
    /// - Throws: ``MappingError/invalidImage``.
    public static var imageHeader: Self {
        Self("image/*", .image, identity: FormatIdentity(ImageHeader.self, "image")) { result in
            try ImageHeader(result.data)
        }
    }
}
