// What a transfer hears from a connection of Drydock's own: its beginning, and each way to its end.

internal import EventLoop
import Glibc
internal import HTTPWire

extension Transfer {
    /// The connection stands, and the request goes out.
    func begins(on connection: WireConnection) {
        attempts += 1
        remote = connection.remote
        deadlines.enter(request.hasBody ? .sending : .waiting, now: Monotonic.now())
        armTimer()
    }

    /// Has the source asked for the first bytes, but not from within this call.
    func askSourceLater() {
        isSendPaused = true
        isBodyAnnounced = true
        markLater()
    }

    /// The source is not asked any more: nobody waits for it.
    func stopsAsking() {
        guard isSendPaused else { return }
        isSendPaused = false
        updateSuspension()
    }

    // MARK: - The end

    /// No connection came about; the delegate is told later, not from within this call.
    func fail(_ failure: WireDial.Failure) {
        let error =
            switch failure {
            case .refused(let address): abortError(.addressRefused(address.host))
            case .system(let code): ConnectionFailure.connect(place, code, text: "no address is left to try")
            }
        outcome = .failure(error)
        markLater()
    }

    /// How it ended; from an event of the connection. The delegate is told at once, unless bytes wait for it.
    func conclude(_ outcome: Result<Fields, UpstreamError>) {
        self.outcome = outcome
        if carrier?.reader.isHandedOut ?? true { end(outcome) } else { mark() }
    }

    /// A connection that had been used before ended before a byte of the response: it may have ended before it was given
    /// this request. That is sent once more, over a fresh one, where it means the same sent twice.
    func connectionWasStale(_ connection: WireConnection) {
        guard mayResend, attempts == 1, let client else { return conclude(.failure(abortError(.resend))) }
        connection.end()
        client.resolve(self, isFresh: true, mustPin: true)
    }

    private func markLater() {
        mark()
        client?.wakeLater()
    }

    // MARK: - Words

    var requestBodyError: UpstreamError { abortError(.requestBody) }
    var unaskedError: UpstreamError { abortError(.staleConnection) }

    func refusal(_ kind: UpstreamError.Kind?) -> UpstreamError { violation(kind ?? .closed) }

    func closedError(_ osError: Int32, _ carrier: Carrier) -> UpstreamError {
        let reader = carrier.reader
        let text =
            if osError != 0 {
                String(cString: strerror(osError))
            } else if reader.isHeadComplete {
                "its end was still to come"
            } else {
                reader.hasReceived ? "only a part of one came" : "not a byte came"
            }
        return ConnectionFailure.closed(place, remoteAddress, isHeadComplete: reader.isHeadComplete, text: text)
    }
}
