// The end of a transfer: tells the delegate, releases what it holds, and words the error.

import HTTPWire

extension Transfer {
    // MARK: - Release

    /// Tells the delegate; the transfer holds nothing by then.
    func end(_ outcome: Result<Fields, UpstreamError>) {
        let delegate = delegate
        detach()
        switch outcome {
        case .success(let trailers): delegate?.transferFinished(self, trailers: trailers)
        case .failure(let error): delegate?.transfer(self, failed: error)
        }
    }

    /// Lets go of everything.
    func detach() {
        guard state != .ended else { return }
        state = .ended
        let client = client
        self.client = nil
        delegate = nil
        source = nil
        leaveCarrier()?.release()
        client?.released(self)
    }

    /// The origin has switched to another protocol: its connection is the delegate's from here on.
    func switched(_ head: ResponseHead, to connection: SwitchedConnection) {
        let delegate = delegate
        detach()
        delegate?.transfer(self, switched: head, to: connection)
    }

    // MARK: - Words

    /// The origin; a query stays out of messages, since it may hold secrets.
    var place: String { destination?.name ?? request.terms.url + request.path.prefix { $0 != "?" } }

    func violation(_ kind: UpstreamError.Kind) -> UpstreamError {
        switch kind {
        case .protocolViolation(let error):
            return UpstreamError(kind, detail: "\(place) sent a response that is refused: \(error.detail)")
        case .unexpectedStatus(let status):
            return UpstreamError(
                kind,
                detail: "\(place) answered \(status), which nothing asked for: correct the origin"
            )
        case .proxy(let status?):
            guard let destination, let proxy = destination.proxy else { break }
            return proxy.refusal(of: destination.url.place, status: status)
        default: break
        }
        return UpstreamError(kind, detail: "\(place) sent a response that is refused")
    }

    var resendError: UpstreamError {
        let detail = "\(place) closed the connection before its response; \(request.method.name) is not sent twice"
        return UpstreamError(.closed, detail: detail)
    }

    var unaskedError: UpstreamError {
        UpstreamError(.closed, detail: "\(place) sent bytes that nobody asked for on each new connection")
    }

    func refusal(_ kind: UpstreamError.Kind?) -> UpstreamError { violation(kind ?? .closed) }

    var requestBodyError: UpstreamError {
        let detail = "the request's body ended early, so that the request to \(place) was given up"
        return UpstreamError(.requestBody, detail: detail)
    }
}
