// Asks a transport for resources, with what it adds to their requests, and makes their models, once or twice where what
// is stored comes first.

import Drydock
import FoundationEssentials
import HTTPTypes
import Synchronization

/// The way of a manager to a resource: its request, with what the manager adds, and the model of its response.
struct ResourceLoader: Sendable {
    private let transport: any Transport
    private let configuration: ServiceManager.Configuration

    init(_ transport: any Transport, _ configuration: ServiceManager.Configuration) {
        self.transport = transport
        self.configuration = configuration
    }
}

extension ResourceLoader {
    /// The request of a resource, with what the manager adds.
    func request(for resource: some Resource) throws(ServiceError) -> TransportRequest {
        let endpoint: Endpoint
        do {
            endpoint = try resource.endpoint
        } catch let error as ServiceError {
            throw error
        } catch {
            throw .encoding(error)
        }
        let format = resource.format
        if let fault = format.fault {
            throw .invalidRequest("the format of '\(endpoint.shownLocation)' cannot be: \(fault)")
        }
        var defaults = RequestDefaults(headerFields: configuration.headerFields, query: configuration.query)
        if let own = configuration.defaultsForResource?(resource) {
            defaults = defaults.merging(RequestDefaults(headerFields: own.headerFields, query: own.query))
        }
        let target = try EndpointTarget(endpoint, base: configuration.base, defaults: defaults.query)
        var head = HTTPRequest(target.text)
        head.method = endpoint.method
        head.headerFields = endpoint.headerFields
        for field in defaults.headerFields where endpoint.headerFields[field.name] == nil {
            head.headerFields.append(field)
        }
        if let accept = format.accept, head.headerFields[.accept] == nil { head.headerFields[.accept] = accept }
        if let credentials = target.credentials, head.headerFields[.authorization] == nil {
            head.headerFields[.authorization] = "Basic \(credentials)"
        }
        var options = resource.options.ofResource
        if options.expectation == .anything { options.expectation = format.expectation }
        return TransportRequest(head, body: endpoint.body, options: options)
    }

    /// The whole response to a request.
    /// - Parameter onBody: told how much of the body has come; nobody by default.
    @inline(never)
    func response(
        to request: TransportRequest,
        onBody: (@Sendable (DownloadProgress) -> Void)? = nil
    ) async throws(ServiceError) -> WholeResponse {
        do throws(DownloadError) {
            if isFile(request) { return try await file(request.head) }
            return try await body(of: try await transport.send(request), to: request.head, onBody)
        } catch {
            throw failure(error)
        }
    }

    /// Not inlined, as those that follow, so that a call that waits for its response has no frames of them.
    @inline(never)
    private func isFile(_ request: TransportRequest) -> Bool { request.head.scheme?.lowercased() == "file" }

    @inline(never)
    private func failure(_ error: DownloadError) -> ServiceError {
        error == .cancelled ? .cancelled : .transport(error)
    }

    @inline(never)
    private func file(_ request: HTTPRequest) async throws(DownloadError) -> WholeResponse {
        guard let file = try FileResource(request) else { throw .invalidRequest("'\(request.text)' is no file") }
        return WholeResponse(result: try await file.result(upTo: configuration.maximumBody))
    }

    @inline(never)
    private func body(
        of response: TransportResponse,
        to request: HTTPRequest,
        _ onBody: (@Sendable (DownloadProgress) -> Void)?
    ) async throws(DownloadError) -> WholeResponse {
        try await whole(response, of: request, onBody)
    }

    /// What is stored for a request, although it is no longer valid; nil where nothing is, or it cannot be had: the
    /// origin is asked in any case.
    func staleResponse(to request: TransportRequest) async -> WholeResponse? {
        if request.head.scheme == "file" { return nil }
        do throws(DownloadError) {
            guard let response = try await transport.staleResponse(to: request) else { return nil }
            return try await whole(response, of: request.head, nil)
        } catch {
            return nil
        }
    }

    private func whole(
        _ response: TransportResponse,
        of request: HTTPRequest,
        _ onBody: (@Sendable (DownloadProgress) -> Void)?
    ) async throws(DownloadError) -> WholeResponse {
        guard let url = URL(string: request.text) else { throw .invalidRequest("'\(request.text)' is no URL") }
        let result = DownloadResult(
            url: url,
            outcome: response.outcome,
            head: response.head,
            data: try await response.body.collect(upTo: configuration.maximumBody, onBody),
            age: response.age,
            validity: response.validity
        )
        return WholeResponse(result: result, holder: response.holder)
    }

    /// The model of a response, where it is a success.
    /// - Parameter isStale: the response is stored, and no longer valid.
    func loaded<R: Resource>(
        _ resource: R,
        _ request: HTTPRequest,
        _ response: WholeResponse,
        isStale: Bool = false
    ) throws(ServiceError) -> Loaded<R.Model> {
        let result = response.result
        guard resource.accepts(result.head) else {
            throw .status(result, failure: resource.failure(from: result))
        }
        let model: R.Model
        do {
            let format = resource.format
            if let models = configuration.models, let key = resource.modelKey {
                model = try models.model(of: key, request, response) { try format.read(result) }
            } else {
                model = try format.read(result)
            }
        } catch {
            throw .mapping(error, result)
        }
        return Loaded(
            model,
            head: result.head,
            outcome: result.outcome,
            age: result.age,
            isStale: isStale
        )
    }
}

/// A response with all of its body.
struct WholeResponse: Sendable {
    let result: DownloadResult
    /// A digest of the manager's credentials and cookies that it was asked with; nil if it was asked with none.
    var holder: String?
}

extension ResponseBody {
    /// All bytes that are still to come.
    fileprivate func collect(
        upTo limit: Int,
        _ onBody: (@Sendable (DownloadProgress) -> Void)?
    ) async throws(DownloadError) -> Data {
        guard let onBody else { return try await collect(upTo: limit) }
        if let expected, expected > limit { throw .tooLarge(limit: limit) }
        var data = Data()
        var iterator = makeAsyncIterator()
        while let piece = try await iterator.next() {
            guard data.count + piece.count <= limit else { throw .tooLarge(limit: limit) }
            data.append(piece)
            onBody(DownloadProgress(completed: Int64(data.count), total: expected))
        }
        return data
    }
}

// MARK: - What is added to requests

/// Fields and query items that are added to requests that do not bring them themselves; names are compared without their
/// case in fields, and as they are in the query.
struct RequestDefaults {
    let headerFields: HTTPFields
    let query: Parameters

    /// These defaults with others, which win over those of the same name.
    func merging(_ others: RequestDefaults) -> RequestDefaults {
        var fields = others.headerFields
        for field in headerFields where others.headerFields[field.name] == nil { fields.append(field) }
        return RequestDefaults(headerFields: fields, query: query.merging(others.query))
    }
}

// MARK: - As stored, then as the origin has it

/// The values of a resource: the stored one, where it is no longer valid, and then the final one.
///
/// A stored response that cannot be read is left out. An error ends the sequence, also behind a stored value.
struct LoadedValues<R: Resource>: AsyncSequence, Sendable {
    typealias Failure = ServiceError

    private let loader: ResourceLoader
    private let resource: R

    init(_ loader: ResourceLoader, _ resource: R) {
        self.loader = loader
        self.resource = resource
    }

    /// Asks anew.
    func makeAsyncIterator() -> Iterator { Iterator(loader: loader, resource: resource) }

    struct Iterator: AsyncIteratorProtocol {
        private enum Step {
            case first
            case final(TransportRequest)
            case over
        }

        private let loader: ResourceLoader
        private let resource: R
        private var step = Step.first

        fileprivate init(loader: ResourceLoader, resource: R) {
            self.loader = loader
            self.resource = resource
        }

        /// The next value; nil behind the final one, and behind an error.
        mutating func next(
            isolation actor: isolated (any Actor)? = #isolation
        ) async throws(ServiceError) -> Loaded<R.Model>? {
            do throws(ServiceError) {
                switch step {
                case .first:
                    let request = try loader.request(for: resource)
                    step = .final(request)
                    if let stale = await loader.staleValue(of: resource, request) { return stale }
                    return try await final(request)
                case .final(let request): return try await final(request)
                case .over: return nil
                }
            } catch {
                step = .over
                throw error
            }
        }

        private mutating func final(_ request: TransportRequest) async throws(ServiceError) -> Loaded<R.Model> {
            let value = try loader.loaded(resource, request.head, try await loader.response(to: request))
            step = .over
            return value
        }
    }
}

extension ResourceLoader {
    /// The model of what is stored, although it is no longer valid; nil where there is none.
    func staleValue<R: Resource>(of resource: R, _ request: TransportRequest) async -> Loaded<R.Model>? {
        guard let response = await staleResponse(to: request) else { return nil }
        return try? loaded(resource, request.head, response, isStale: true)
    }
}

// MARK: - Models that were decoded already

/// Keeps models for as long as there is room for them, so that a stored response that has not changed is not decoded
/// again.
///
/// ```swift
/// var configuration = ServiceManager.Configuration()
/// configuration.models = DecodedModels(costLimit: 16 << 20)
/// ```
///
/// A model is found by the request and ``Resource/modelKey``, and is used where the response has the very same bytes and
/// media type. A model that was made of what a `DownloadManager` has asked with credentials or cookies is for those
/// alone: another user, and another manager, gets one of its own, also of the same bytes. Of the responses of a program's
/// own transport only fields of the request say whose they are. Any thread may use it, and several managers may share it.
public final class DecodedModels: Sendable {
    private struct Key: Hashable, Sendable {
        let resource: any Hashable & Sendable
        let request: HTTPRequest
        /// A digest of the credentials and cookies that the response was asked with; nil if it was asked with none.
        let holder: String?

        static func == (left: Self, right: Self) -> Bool {
            left.holder == right.holder && left.request == right.request
                && AnyHashable(left.resource) == AnyHashable(right.resource)
        }

        func hash(into hasher: inout Hasher) {
            hasher.combine(AnyHashable(resource))
            hasher.combine(request)
            hasher.combine(holder)
        }
    }

    /// What says that a response has not changed. An entity tag does not: an origin may give the same one to users
    /// who get different bytes.
    private struct Mark: Equatable, Sendable {
        let bytes: Data
        /// Content-Type, which may say how the bytes become a text.
        let type: String?

        init(_ result: DownloadResult) {
            bytes = result.data
            type = result.head.headerFields[.contentType]
        }
    }

    private struct Entry: Sendable {
        let mark: Mark
        let model: any Sendable
    }

    private let cache: MemoryCache<Key, Entry>

    /// - Parameter costLimit: bytes that the bodies of all models may have together.
    public init(costLimit: Int) { cache = MemoryCache(costLimit: costLimit) }

    /// Models that are held.
    public var count: Int { cache.count }

    /// Lets go of all.
    public func removeAll() { cache.removeAll() }

    /// The model of a response: the one that is held, or a new one.
    func model<Model: Sendable>(
        of key: any Hashable & Sendable,
        _ request: HTTPRequest,
        _ response: WholeResponse,
        make: () throws -> Model
    ) rethrows -> Model {
        let key = Key(resource: key, request: request, holder: response.holder)
        let mark = Mark(response.result)
        if let entry = cache[key], entry.mark == mark, let model = entry.model as? Model { return model }
        let model = try make()
        cache.insert(Entry(mark: mark, model: model), for: key, cost: max(1, mark.bytes.count))
        return model
    }
}
