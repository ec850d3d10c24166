// What a transfer hears from a connection of Drydock's own: its beginning, and each way to its end.

internal import EventLoop
import Glibc
internal import HTTPWire

extension Transfer {
    /// The connection stands, and the request goes out.
    func beginsOnWire() {
        attempts += 1
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
        outcome = .failure(failure.error(place))
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
        guard mayResend, attempts == 1, let client else { return conclude(.failure(resendError)) }
        connection.end()
        client.resolve(self, isFresh: true, mustPin: true)
    }

    private func markLater() {
        mark()
        client?.wakeLater()
    }

    // MARK: - Words

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
        return ConnectionFailure.closed(place, carrier.remoteAddress, isHeadComplete: reader.isHeadComplete, text: text)
    }
}
