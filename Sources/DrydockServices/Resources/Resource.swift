// What a resource is: where it is, and what its bytes become; a file may stand in the place of a response.

public import Drydock
import FoundationEssentials
public import HTTPTypes

/// Something that is asked for, and what it becomes.
///
/// ```swift
/// struct UserList: Resource {
///     typealias Model = [User]
///     let city: String
///     var endpoint: Endpoint { .get("/users", query: ["city": JSONValue(city)]) }
/// }
/// ```
///
/// A model that is `Decodable` is read as JSON unless the resource has a ``format`` of its own. One that is `Void` is
/// nothing, whatever the body is, and one that is a `DownloadResult` is the response itself. A resource has to name its
/// model, so that no body is thrown away by oversight.
public protocol Resource<Model>: Sendable {
    /// What the body becomes.
    associatedtype Model: Sendable

    /// Where it is, and how it is asked for.
    /// - Throws: why the request cannot be made: a ``ServiceError``, or what ``ServiceError/encoding(_:)`` is to say.
    var endpoint: Endpoint { get throws }

    /// How the body of a success becomes a model.
    var format: ResponseFormat<Model> { get }

    /// The error that the body of a response describes which is no success, with its status; nil, as by default: none.
    func failure(from result: DownloadResult) -> (any Error)?

    /// Whether a response is a success; by default with a status from 200 to 299, and for `Void` with a 304, too.
    func accepts(_ response: HTTPResponse) -> Bool

    /// How the cache is used; the defaults unless a resource says otherwise.
    var options: DownloadOptions { get }

    /// What ``DecodedModels`` knows the model by, besides the request: resources with equal keys make equal models of
    /// equal bytes. A resource that is `Hashable` is its own key by default, and any other has none: its models are not
    /// kept.
    var modelKey: (any Hashable & Sendable)? { get }

    /// What hooks and logs call it, and what ``ServiceManager/cancelCalls(named:)`` looks for; the name of the type by
    /// default.
    var serviceName: String { get }

    /// Whether a call to which no response came is kept, and made again by ``ServiceManager/repeatFailed()``, instead of
    /// failing. False by default.
    ///
    /// It is kept only where its request may be sent again: nothing of it has reached the origin, or its method is
    /// idempotent (RFC 9110 section 9.2.2), or the call's rules for retries name
    /// `RetryMethods.any`. A POST whose answer was cut short, or did not come in time,
    /// fails, since the origin may have acted on it.
    var parksWithoutResponse: Bool { get }

    /// Whether the bodies of successes are logged; those of failures are in any case. True by default.
    var logsBodies: Bool { get }
}

extension Resource {
    public var serviceName: String { "\(Self.self)" }
    public var parksWithoutResponse: Bool { false }
    public var logsBodies: Bool { true }
    public func failure(from result: DownloadResult) -> (any Error)? { nil }
    public func accepts(_ response: HTTPResponse) -> Bool {
        response.status.kind == .successful || Model.self == Void.self && response.status == .notModified
    }
    public var options: DownloadOptions { DownloadOptions() }
    public var modelKey: (any Hashable & Sendable)? { nil }
}

extension Resource where Self: Hashable {
    public var modelKey: (any Hashable & Sendable)? { self }
}

extension Resource where Model: Decodable {
    public var format: ResponseFormat<Model> { .json }
}

extension Resource where Model == Void {
    public var format: ResponseFormat<Model> { .nothing }
}

// Two formats that name their models: the compiler takes neither for the model of a resource that names none.
extension Resource where Model == DownloadResult {
    public var format: ResponseFormat<Model> { .raw }
}

/// A resource without a type of its own: an endpoint, and how its body is read.
///
/// ```swift
/// let users = HTTPResource<[User]>("/users", .json)
/// ```
public struct HTTPResource<Model: Sendable>: Resource {
    /// Where it is.
    public var endpoint: Endpoint
    /// How the body of a success becomes a model.
    public var format: ResponseFormat<Model>
    /// How the cache is used.
    public var options: DownloadOptions
    /// Reads the error that the body of a response describes which is no success; nil, the default, reads none.
    public var readFailure: (@Sendable (DownloadResult) -> (any Error)?)?

    /// A resource of these parts.
    /// - Parameters:
    ///   - endpoint: where it is; a text is a GET.
    ///   - format: how the body of a success becomes a model.
    ///   - options: how the cache is used.
    ///   - readFailure: reads the error that the body of a response describes which is no success; none by default.
    public init(
        _ endpoint: Endpoint,
        _ format: ResponseFormat<Model>,
        options: DownloadOptions = DownloadOptions(),
        readFailure: (@Sendable (DownloadResult) -> (any Error)?)? = nil
    ) {
        self.endpoint = endpoint
        self.format = format
        self.options = options
        self.readFailure = readFailure
    }

    /// Asks ``readFailure``.
    public func failure(from result: DownloadResult) -> (any Error)? { readFailure?(result) }

    /// That of a format of the library, read as it is by default; none for a format of the program's own.
    public var modelKey: (any Hashable & Sendable)? { format.identity }
}

/// A model with the response that it was made of.
public struct Loaded<Model: Sendable>: Sendable {
    /// What the body became.
    public var model: Model
    /// Status and fields.
    public var head: HTTPResponse
    /// Where the response came from.
    public var outcome: DownloadOutcome
    /// How long the response has been stored since the origin made it, in whole seconds; zero where it came just now.
    public var age: Duration
    /// Whether it is the stored one, which is no longer valid, while the origin is asked; another one follows.
    public var isStale: Bool

    /// A model of this response.
    public init(
        _ model: Model,
        head: HTTPResponse,
        outcome: DownloadOutcome,
        age: Duration = .zero,
        isStale: Bool = false
    ) {
        self.model = model
        self.head = head
        self.outcome = outcome
        self.age = age
        self.isStale = isStale
    }
}

// MARK: - Files

/// A file that is asked for by its URL.
struct FileResource {
    private let url: URL
    private let isHead: Bool

    /// The file of a request; nil if the request is for no file.
    /// - Throws: `DownloadError.invalidRequest` where it does not only read.
    init?(_ request: HTTPRequest) throws(DownloadError) {
        guard request.scheme?.lowercased() == "file" else { return nil }
        guard request.method == .get || request.method == .head else {
            throw .invalidRequest("'\(request.text)' is a file, which GET and HEAD can read, and not \(request.method)")
        }
        guard let url = URL(string: String(request.text.prefix { $0 != "?" })) else {
            throw .invalidRequest("'\(request.text)' is no URL of a file")
        }
        self.url = url
        isHead = request.method == .head
    }

    /// - Throws: `DownloadError.file`, `.tooLarge`.
    func result(upTo limit: Int) async throws(DownloadError) -> DownloadResult {
        let data: Data
        do throws(DownloadError) {
            data = try await RequestBody.file(url).collect(upTo: limit)
        } catch {
            if case .requestBody(let text) = error { throw .file(text) }
            throw error
        }
        var response = HTTPResponse(status: .ok)
        response.headerFields[.contentLength] = "\(data.count)"
        return DownloadResult(url: url, outcome: .seeded, head: response, data: isHead ? Data() : data)
    }
}
