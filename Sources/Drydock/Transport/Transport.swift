// What carries a request and brings back its response: the seam below services and resources.

import FoundationEssentials
public import HTTPTypes

/// Carries requests, and brings their responses.
///
/// ``DownloadManager`` is one, with a cache and origins behind it. A program's tests have one that is scripted. A transport
/// that passes requests on names the one behind it as its ``base``, which does what it does not do itself:
///
/// ```swift
/// struct SignedTransport: Transport {
///     let base: (any Transport)?
///
///     func send(_ request: TransportRequest) async throws(DownloadError) -> TransportResponse {
///         guard let base else { throw .notStored("there is nobody to ask") }
///         var request = request
///         request.head.headerFields[.authorization] = "Bearer token"
///         return try await base.send(request)
///     }
/// }
/// ```
public protocol Transport: Sendable {
    /// The transport that requests are passed on to; nil, the default, for one that carries them itself.
    var base: (any Transport)? { get }

    /// Sends a request. It returns as soon as the head of the response has come, whatever its status.
    /// - Throws: `DownloadError`: the request cannot be sent, or no response came.
    func send(_ request: TransportRequest) async throws(DownloadError) -> TransportResponse

    /// The stored response to a request where there is one that is no longer valid, for those who want to show it while
    /// ``send(_:)`` checks it. No origin is asked.
    /// - Returns: nil where nothing is stored, or what is stored is valid; as a transport without a cache does. By
    ///   default what the ``base`` answers.
    func staleResponse(to request: TransportRequest) async throws(DownloadError) -> TransportResponse?
}

extension Transport {
    /// By default nil: requests are passed on to nobody.
    public var base: (any Transport)? { nil }

    /// By default what the ``base`` answers; nil without one, which has no cache.
    public func staleResponse(to request: TransportRequest) async throws(DownloadError) -> TransportResponse? {
        try await base?.staleResponse(to: request)
    }
}

/// A request as a transport takes it.
public struct TransportRequest: Sendable {
    /// Method, scheme, authority, path and fields.
    public var head: HTTPRequest
    /// Its content; nil where it has none.
    public var body: RequestBody?
    /// How the cache is used, and what else this request wants otherwise than the transport has it.
    public var options: DownloadOptions {
        get { wishes.options }
        set { wishes = Wishes(newValue) }
    }
    /// Told how much of the content has been sent; called on any thread. Nobody is told by default.
    public var onUpload: (@Sendable (DownloadProgress) -> Void)?

    /// A reference, for a request goes through many frames of tasks. Sendable: nothing in it changes.
    private final class Wishes: Sendable {
        let options: DownloadOptions

        init(_ options: DownloadOptions) { self.options = options }
    }

    private var wishes: Wishes

    /// A request with these parts.
    public init(
        _ head: HTTPRequest,
        body: RequestBody? = nil,
        options: DownloadOptions = DownloadOptions(),
        onUpload: (@Sendable (DownloadProgress) -> Void)? = nil
    ) {
        self.head = head
        self.body = body
        wishes = Wishes(options)
        self.onUpload = onUpload
    }
}

/// The head of a response, and its body as it comes.
public struct TransportResponse: Sendable {
    /// Status and fields.
    public var head: HTTPResponse
    /// Where it came from.
    public var outcome: DownloadOutcome
    /// The body; it can be read once.
    public var body: ResponseBody
    /// How long the response has been stored since the origin made it, in whole seconds; zero where it came just now.
    public var age: Duration
    /// How much longer it stays valid, in whole seconds; negative where it has not been since then; nil where it is not
    /// stored, or has come just now.
    public var validity: Duration?
    /// A digest of the manager's credentials and cookies that it was asked with; nil if it was asked with none.
    package var holder: String?

    /// A response with these parts.
    public init(
        _ head: HTTPResponse,
        outcome: DownloadOutcome = .downloaded,
        body: ResponseBody = ResponseBody(),
        age: Duration = .zero,
        validity: Duration? = nil
    ) {
        self.head = head
        self.outcome = outcome
        self.body = body
        self.age = age
        self.validity = validity
    }
}
