// What a resource is: where it is, and how its bytes become a model.

public import HTTPTypes

/// Something that is asked for, and what it becomes.
public protocol Resource<Model>: Sendable {
    /// What the body becomes.
    associatedtype Model: Sendable

    /// Where it is, and how it is asked for.
    /// - Throws: why the request cannot be made, such as a body that cannot be encoded: ``ServiceError/encoding(_:)``.
    var endpoint: Endpoint { get throws }

    /// The model of a response that is a success.
    /// - Throws: why the body is none: ``ServiceError/mapping(_:_:)``.
    func model(from result: DownloadResult) async throws -> Model

    /// The error that the body of a response describes which is no success; nil, as by default: it describes none.
    func failure(from result: DownloadResult) -> (any Error)?

    /// The statuses of a success; 200 to 299 by default.
    var acceptedStatuses: Range<Int> { get }

    /// How the cache is used; the defaults unless a resource says otherwise.
    var options: DownloadOptions { get }
}

extension Resource {
    public func failure(from result: DownloadResult) -> (any Error)? { nil }
    public var acceptedStatuses: Range<Int> { 200..<300 }
    public var options: DownloadOptions { DownloadOptions() }
}

/// A model with the response that it was made of.
public struct Loaded<Model: Sendable>: Sendable {
    /// What the body became.
    public var model: Model
    /// Status and fields.
    public var response: HTTPResponse
    /// Where the response came from.
    public var outcome: DownloadOutcome

    /// A model of this response.
    public init(_ model: Model, response: HTTPResponse, outcome: DownloadOutcome) {
        self.model = model
        self.response = response
        self.outcome = outcome
    }
}
