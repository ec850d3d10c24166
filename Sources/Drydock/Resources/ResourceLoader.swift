// Asks a transport for resources, and makes their models.

public import FoundationEssentials
public import HTTPTypes

/// Asks a transport for resources, and makes their models.
public struct ResourceLoader: Sendable {
    /// Who carries the requests.
    public var transport: any Transport
    /// What the paths of endpoints are appended to; nil: endpoints have whole URLs.
    public var base: URL?
    /// Fields of every request that does not bring them itself.
    public var headerFields: HTTPFields
    /// Bytes that a body may have; 256 MiB by default.
    public var maximumBody = 256 << 20

    /// A loader with these parts.
    public init(transport: any Transport, base: URL? = nil, headerFields: HTTPFields = HTTPFields()) {
        self.transport = transport
        self.base = base
        self.headerFields = headerFields
    }
}

extension ResourceLoader {
    /// Asks for a resource, and makes its model.
    /// - Throws: `ServiceError`.
    public func load<R: Resource>(_ resource: R) async throws(ServiceError) -> Loaded<R.Model> {
        let request = try request(for: resource)
        let result: DownloadResult
        do throws(DownloadError) {
            let response = try await transport.send(request)
            let data = try await response.body.collect(upTo: maximumBody)
            guard let url = URL(string: request.head.text) else {
                throw .invalidRequest("'\(request.head.text)' is no URL")
            }
            result = DownloadResult(
                url: url,
                outcome: response.outcome,
                response: response.head,
                data: data,
                age: response.age,
                validity: response.validity
            )
        } catch {
            throw error == .cancelled ? .cancelled : .transport(error)
        }
        guard resource.acceptedStatuses.contains(result.response.status.code) else {
            throw .status(result, failure: resource.failure(from: result))
        }
        do {
            let model = try await resource.model(from: result)
            return Loaded(model, response: result.response, outcome: result.outcome)
        } catch {
            throw .mapping(error, result)
        }
    }

    /// The request of a resource, with what this loader adds.
    private func request(for resource: some Resource) throws(ServiceError) -> TransportRequest {
        let endpoint: Endpoint
        do {
            endpoint = try resource.endpoint
        } catch {
            throw .encoding(error)
        }
        var text = endpoint.location
        if !text.contains("://") {
            guard let base else { throw .invalidRequest("'\(text)' is a path, and there is no base URL: set one") }
            let root = base.absoluteString
            text = (root.hasSuffix("/") ? String(root.dropLast()) : root) + (text.hasPrefix("/") ? text : "/" + text)
        }
        guard let url = URL(string: text) else { throw .invalidRequest("'\(text)' is no URL: percent-encode it") }
        var head = HTTPRequest(url.absoluteString)
        head.method = endpoint.method
        head.headerFields = endpoint.headerFields
        for field in headerFields where head.headerFields[field.name] == nil { head.headerFields.append(field) }
        return TransportRequest(head, body: endpoint.body, options: resource.options)
    }
}
