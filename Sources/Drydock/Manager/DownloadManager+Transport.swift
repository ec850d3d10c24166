// The download manager as what services and resources are asked through.

public import FoundationEssentials
public import HTTPTypes

extension DownloadManager: Transport {
    /// Sends a request, or takes its response from what is stored. It returns as soon as the head has come; the body is
    /// read while it comes, and whoever lets go of it leaves the transfer as ``DownloadConfiguration/abandonment`` says.
    ///
    /// GET and HEAD without content are looked up in the store, and so is a POST whose content is in memory, where
    /// ``DownloadOptions/methods`` has it, unless it has preconditions. Every other request goes to the origin, and a success
    /// of one that is not safe removes what is stored of its target (RFC 9111 section 4.4).
    /// - Throws: `DownloadError`; a status is no error here.
    public func send(_ request: TransportRequest) async throws(DownloadError) -> TransportResponse {
        let question = try question(request)
        if let response = memoryResponse(to: question) { return response }
        let session = try await begin(question, isOfTransport: true)
        if let onUpload = request.onUpload, question.hasContent { return try await send(session, onUpload) }
        return try session.response(try await session.ask())
    }

    /// Not inlined, as those that follow, so that a call that waits has no frame of what comes before and after.
    @inline(never)
    private func question(_ request: TransportRequest) throws(DownloadError) -> DownloadRequest {
        try DownloadRequest(request.head, body: request.body, configuration, request.options)
    }

    @inline(never)
    private func memoryResponse(to question: DownloadRequest) -> TransportResponse? {
        memoryHit(question).map { $0.head.response(ResponseBody($0.data)) }
    }

    /// Sends a content, and tells how much of it is out.
    @inline(never)
    private func send(
        _ session: DownloadSession,
        _ onUpload: @Sendable (DownloadProgress) -> Void
    ) async throws(DownloadError) -> TransportResponse {
        let asking = MeteredAsking(session)
        while true {
            switch await asking.next() {
            case .uploaded(let progress): onUpload(progress)
            case .asked(let head): return try session.response(try head.get())
            }
        }
    }

    /// The stored response to a request where there is one that is no longer valid. No origin is asked. Nil, too, where the
    /// request does not go by what is stored (``DownloadOptions/CachePolicy/reload``,
    /// ``DownloadOptions/CachePolicy/bypass``), or would be answered with it
    /// (``DownloadOptions/CachePolicy/storedOnly``).
    public func staleResponse(to request: TransportRequest) async throws(DownloadError) -> TransportResponse? {
        let question = try question(request)
        guard question.mayUseStale else { return nil }
        let session = try await begin(question, isObserved: false, isOfTransport: true)
        let head = try await session.ask(staleWanted: true)
        guard head.failure == nil, head.outcome != .stillValid, head.outcome != .seeded else { return nil }
        return try session.response(head)
    }

    /// As ``download(_:body:options:)-(HTTPRequest,RequestBody?,_)``, with a content that is in memory.
    public func download(
        _ request: HTTPRequest,
        body: Data,
        options: DownloadOptions = DownloadOptions()
    ) async throws(DownloadError) -> DownloadResult {
        try await download(request, body: .data(body), options: options)
    }

    /// Downloads a resource whose body is read while it comes: for one that is larger than memory.
    ///
    /// ```swift
    /// for try await line in try await manager.stream(url).body.lines { print(line) }
    /// ```
    /// - Parameters:
    ///   - url: `http` or `https`; a fragment is left out.
    ///   - options: what this download wants otherwise than the manager has it.
    /// - Returns: the head, and the body, which can be read once. Neither has a limit: what is not asked for is not read.
    /// - Throws: `DownloadError`; ``DownloadError/unacceptableStatus(_:)`` as a download.
    public func stream(_ url: URL, options: DownloadOptions = DownloadOptions()) async throws(DownloadError)
        -> TransportResponse
    {
        let session = try await begin(try DownloadRequest(url, configuration, options))
        let response = try session.response(try await session.ask())
        guard configuration.acceptedStatuses.contains(response.head.status.code) else {
            let data = try await response.body.collect(upTo: configuration.maximumBody)
            throw .unacceptableStatus(
                DownloadResult(
                    url: url,
                    outcome: .downloadFailed,
                    head: response.head,
                    data: data,
                    age: response.age,
                    validity: response.validity
                )
            )
        }
        return response
    }
}

extension DownloadSession {
    /// - Throws: why there is no response.
    @inline(never)
    fileprivate func response(_ head: Head) throws(DownloadError) -> TransportResponse {
        if let failure = head.failure { throw DownloadError(failure) }
        return head.response(
            ResponseBody(expected: head.length) { () throws(DownloadError) in try await self.read() }
        )
    }
}

extension DownloadSession.Head {
    fileprivate func response(_ body: ResponseBody) -> TransportResponse {
        var result = TransportResponse(response, outcome: outcome, body: body, age: age, validity: validity)
        result.holder = holder
        return result
    }
}
