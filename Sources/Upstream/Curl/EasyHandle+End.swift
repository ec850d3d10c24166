// How a transfer ends that libcurl carries, and a second try of it where nothing was sent.

internal import CLibcurl
internal import HTTPWire

extension EasyHandle {
    /// libcurl is done with the handle; outside libcurl.
    func finish(_ result: CURLcode) {
        guard let transfer, transfer.state != .ended, !transfer.isConcluded else { return }
        if result == CURLE_OK { keepConnection() }
        let osError = Int32(truncatingIfNeeded: c_curl_get_long(raw, CURLINFO_OS_ERRNO))
        release()
        if case .cancelled = transfer.abort { return transfer.mark() }
        if restart(transfer) { return }
        transfer.outcome = verdict(transfer, result, osError: osError)
        transfer.mark()
    }

    /// Tells the multi which socket lies idle now.
    private func keepConnection() {
        let descriptor = c_curl_get_active_socket(raw)
        guard descriptor != CURL_SOCKET_BAD, let connection else { return }
        multi.becameIdle(descriptor, name: connection, longestIdle: reader.longestIdle)
    }

    /// Tries again where libcurl was stopped before it sent anything.
    private func restart(_ transfer: Transfer) -> Bool {
        guard let retry, retries < 3, let client = transfer.client else { return false }
        retries += 1
        self.retry = nil
        transfer.abort = nil
        transfer.attempts = 0
        client.resolve(transfer, isFresh: retry == .staleConnection, mustPin: true)
        return true
    }

    private func verdict(
        _ transfer: Transfer,
        _ result: CURLcode,
        osError: Int32
    ) -> Result<Fields, UpstreamError> {
        reader.endOfLines()
        if let failure = reader.failure { return .failure(transfer.violation(failure)) }
        let place = transfer.place
        if result == CURLE_OK {
            if reader.end() {
                let endsItself = if case .untilClose = reader.framing { false } else { true }
                transfer.provesEnd = endsItself || transfer.destination?.isTLS != true || wasEndSaid
                return .success(reader.trailers)
            }
            let kind: UpstreamError.Kind = reader.isHeadComplete ? .truncated : .closed
            return .failure(
                UpstreamError(kind, detail: "\(place) ended the connection before its response was complete")
            )
        }
        // The whole response came, and only what libcurl wanted to do after it failed.
        if reader.isComplete { return .success(reader.trailers) }
        if case .failed(let error) = transfer.abort { return .failure(error) }
        let context = CurlFailure.Context(
            place: place,
            address: remoteAddress,
            isHeadComplete: reader.isHeadComplete,
            hasReceived: reader.hasReceived,
            osError: osError,
            text: errorText,
            certificate: multi.certificates.take(raw),
            tls: transfer.request.terms.tls
        )
        return .failure(CurlFailure.error(result, context))
    }
}
