// The download manager as what services and resources are asked through.

import FoundationEssentials

extension DownloadManager: Transport {
    /// Sends a request, or takes its response from what is stored. It returns as soon as the head has come.
    /// - Throws: `DownloadError`; a status is no error here.
    public func send(_ request: TransportRequest) async throws(DownloadError) -> TransportResponse {
        let content: Data? = if let body = request.body { try await body.collect(upTo: .max) } else { nil }
        let question = try DownloadRequest(request.head, body: content, configuration, request.options)
        if let (head, data) = memoryHit(question) { return head.response(ResponseBody(data)) }
        let session = try await begin(question)
        return try await session.response(session.ask())
    }

    /// The stored response to a request where there is one that is no longer valid. No origin is asked.
    public func staleResponse(to request: TransportRequest) async throws(DownloadError) -> TransportResponse? {
        let content: Data? = if let body = request.body { try await body.collect(upTo: .max) } else { nil }
        let question = try DownloadRequest(request.head, body: content, configuration, request.options)
        let session = try await begin(question)
        let head = try await session.ask(staleWanted: true)
        guard head.failure == nil, head.outcome != .stillValid, head.outcome != .seeded else { return nil }
        return try session.response(head)
    }
}

extension DownloadSession {
    /// - Throws: why there is no response.
    fileprivate func response(_ head: Head) throws(DownloadError) -> TransportResponse {
        if let failure = head.failure { throw DownloadError(failure) }
        return head.response(
            ResponseBody(expected: head.expected) { () throws(DownloadError) in try await self.read() }
        )
    }
}

extension DownloadSession.Head {
    fileprivate func response(_ body: ResponseBody) -> TransportResponse {
        TransportResponse(response, outcome: outcome, body: body, age: age, validity: validity)
    }
}
