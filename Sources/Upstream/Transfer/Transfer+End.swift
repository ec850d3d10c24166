// How a transfer ends that libcurl carries, a second try of it where nothing was sent, and for all the release of what they hold.

internal import CLibcurl
internal import EventLoop
internal import HTTPWire

extension Transfer {
    /// libcurl is done with the handle; outside libcurl.
    func finish(_ result: CURLcode) {
        guard let handle, state != .ended, !isConcluded else { return }
        if result == CURLE_OK { keepConnection(handle) }
        let osError = Int32(truncatingIfNeeded: c_curl_get_long(handle.raw, CURLINFO_OS_ERRNO))
        handle.release()
        if case .cancelled = abort { return mark() }
        if restart() { return }
        outcome = verdict(result, osError: osError, handle)
        mark()
    }

    /// Tells the multi which socket lies idle now.
    private func keepConnection(_ handle: EasyHandle) {
        let descriptor = c_curl_get_active_socket(handle.raw)
        guard descriptor != CURL_SOCKET_BAD, let connection else { return }
        handle.multi.becameIdle(descriptor, name: connection, longestIdle: handle.reader.longestIdle)
    }

    /// Tries again where libcurl was stopped before it sent anything.
    private func restart() -> Bool {
        let isStale: Bool
        switch abort {
        case .staleConnection: isStale = true
        case .unresolved: isStale = false
        default: return false
        }
        guard restarts < 3, let client else { return false }
        restarts += 1
        abort = nil
        attempts = 0
        client.resolve(self, isFresh: isStale, mustPin: true)
        return true
    }

    private func verdict(_ result: CURLcode, osError: Int32, _ handle: EasyHandle) -> Result<Fields, UpstreamError> {
        handle.reader.endOfLines()
        if let failure = handle.reader.failure { return .failure(violation(failure)) }
        if result == CURLE_OK {
            if handle.reader.end() {
                let endsItself = if case .untilClose = handle.reader.framing { false } else { true }
                isEndProven = endsItself || destination?.isTLS != true || handle.wasEndSaid
                return .success(handle.reader.trailers)
            }
            let kind: UpstreamError.Kind = handle.reader.isHeadComplete ? .truncated : .closed
            return .failure(
                UpstreamError(kind, detail: "\(place) ended the connection before its response was complete")
            )
        }
        // The whole response came, and only what libcurl wanted to do after it failed.
        if handle.reader.isComplete { return .success(handle.reader.trailers) }
        if let abort { return .failure(abortError(abort)) }
        let context = CurlFailure.Context(
            place: place,
            address: remoteAddress,
            isHeadComplete: handle.reader.isHeadComplete,
            hasReceived: handle.reader.hasReceived,
            osError: osError,
            text: handle.errorText,
            certificate: handle.multi.certificates.take(handle.raw),
            tls: request.terms.tls
        )
        return .failure(CurlFailure.error(result, context))
    }

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
        let carrier = carrier
        self.client = nil
        self.carrier = nil
        delegate = nil
        source = nil
        carrier?.transfer = nil
        carrier?.release()
        client?.released(self, carrier as? EasyHandle)
    }

    // MARK: - Words

    /// The origin; a query stays out of messages, since it may hold secrets.
    var place: String { destination?.url.place ?? request.terms.url + request.path.prefix { $0 != "?" } }

    func timeoutError(_ phase: TimeoutPhase) -> UpstreamError {
        let what =
            switch phase {
            case .resolve:
                "the name of \(place) was not resolved in time: check the name servers, or raise timeout.connect"
            case .connect: "no connection to \(place) in time: check that the origin is up, or raise timeout.connect"
            case .firstByte:
                "\(place) took the request and sent no response head in time: raise timeout.first_byte if it is slow"
            case .idle: "\(place) neither sent nor took a byte for too long: raise timeout.idle if it is slow"
            case .total: "the exchange with \(place) took too long: raise timeout.total"
            }
        return UpstreamError(.timeout(phase), detail: what)
    }

    func violation(_ kind: UpstreamError.Kind) -> UpstreamError {
        switch kind {
        case .protocolViolation(let error):
            return UpstreamError(kind, detail: "\(place) sent a response that is refused: \(error.detail)")
        case .unexpectedStatus(let status):
            return UpstreamError(
                kind,
                detail: "\(place) answered \(status), which nothing asked for: correct the origin"
            )
        default: return UpstreamError(kind, detail: "\(place) sent a response that is refused")
        }
    }

    func abortError(_ abort: Abort) -> UpstreamError {
        switch abort {
        case .resend:
            let detail = "\(place) closed the connection before its response; \(request.method.name) is not sent twice"
            return UpstreamError(.closed, detail: detail)
        case .staleConnection:
            return UpstreamError(.closed, detail: "\(place) sent bytes that nobody asked for on each new connection")
        case .unresolved:
            return UpstreamError(.resolver, detail: "the addresses of \(place) were lost: try again")
        case .addressRefused(let address):
            return .refused(place, at: address)
        case .requestBody:
            let detail = "the request's body ended early, so that the request to \(place) was given up"
            return UpstreamError(.requestBody, detail: detail)
        case .cancelled:
            return UpstreamError(.cancelled, detail: "the transfer from \(place) was cancelled")
        }
    }
}
