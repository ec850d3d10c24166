// A response that libcurl reads, line by line and piece by piece; how it ends, and a second try of it where nothing was
// sent.

import CLibcurl
import HTTPWire

/// What became of body bytes.
enum BodyVerdict { case taken, pause, refused }

extension EasyHandle {
    func received(line: UnsafeRawBufferPointer) -> Bool {
        guard let transfer else { return false }
        transfer.mark()
        guard reader.take(line: line) else { return false }
        if reader.isHeadComplete {
            transfer.headReceived()
            isRefused = reader.head.map { $0.status >= 300 } ?? false
            if reader.mustClose { forbidReuse() }
            switch reader.framing {
            case .none, .length(0): listenForExcess()
            case .untilClose where transfer.destination?.isTLS == true: listenForEnd()
            default: break
            }
            endIfRefused(transfer)
        }
        return true
    }

    func received(body: UnsafeRawBufferPointer) -> BodyVerdict {
        guard let transfer else { return .refused }
        if transfer.mustPause(buffered: reader.bytes.count) { return .pause }
        // Asked before: the reader cannot be looked at while it takes bytes.
        let isDirect = transfer.handsOnAtOnce
        transfer.mark()
        guard reader.take(body: body, handOn: { isDirect && transfer.handOn($0) }) else { return .refused }
        transfer.bodyReceived()
        if reader.mustClose { forbidReuse() }
        endIfRefused(transfer)
        return .taken
    }

    /// The whole response has come, and is a refusal: nothing more of the request's body is wanted.
    var wantsNoMore: Bool { isRefused && reader.isComplete }

    /// libcurl would wait for a source that waits, whatever has been answered: it is asked once more, and hears that
    /// this is the end.
    private func endIfRefused(_ transfer: Transfer) {
        guard wantsNoMore, transfer.isSendPaused else { return }
        transfer.isBodyAnnounced = true
    }

    func logged(_ text: UnsafeRawBufferPointer) {
        let notice: StaticString = "Excess found"
        guard text.count >= notice.utf8CodeUnitCount else { return }
        for position in 0..<notice.utf8CodeUnitCount where text[position] != notice.utf8Start[position] { return }
        forbidReuse()
    }

    // MARK: - The end

    /// libcurl is done with the handle; outside libcurl.
    func finish(_ result: CURLcode) {
        guard let transfer, transfer.state != .ended, !transfer.isConcluded else { return }
        if result == CURLE_OK { keepConnection() }
        let osError = Int32(truncatingIfNeeded: c_curl_get_long(raw, CURLINFO_OS_ERRNO))
        takeBack()
        if !transfer.isGivenUp, restart(transfer) { return }
        transfer.conclude(verdict(transfer, result, osError: osError))
    }

    /// Tells the multi handle which socket is idle now.
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
        refusal = nil
        client.resolve(transfer, isFresh: retry == .staleConnection)
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
        if let refusal { return .failure(refusal) }
        if transfer.hasBodyFailed { return .failure(transfer.requestBodyError) }
        if let error = proxyError(transfer, result) { return .failure(error) }
        let certificates = multi.certificates.take(raw)
        let context = CurlFailure.Context(
            place: place,
            address: remoteAddress,
            isHeadComplete: reader.isHeadComplete,
            hasReceived: reader.hasReceived,
            osError: osError,
            text: errorText,
            certificate: certificates.bad,
            shown: certificates.shown,
            tls: transfer.request.terms.tls,
            isProxied: transfer.destination?.proxy != nil
        )
        return .failure(CurlFailure.error(result, context))
    }

    /// Why the proxy opened no tunnel; nil: it did, or it was not come to that.
    private func proxyError(_ transfer: Transfer, _ result: CURLcode) -> UpstreamError? {
        guard let destination = transfer.destination, let proxy = destination.proxy, transfer.timesSent == 0 else {
            return nil
        }
        let status = c_curl_get_long(raw, CURLINFO_HTTP_CONNECTCODE)
        if status != 0 {
            return 200..<300 ~= status ? nil : proxy.refusal(of: destination.url.place, status: status)
        }
        switch result {
        case CURLE_RECV_ERROR, CURLE_SEND_ERROR, CURLE_GOT_NOTHING, CURLE_WEIRD_SERVER_REPLY,
            CURLE_UNSUPPORTED_PROTOCOL, CURLE_PROXY:
            return proxy.silence(about: destination.url.place, errorText)
        default: return nil
        }
    }
}
