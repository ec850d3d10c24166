// One request and its response under way, as the modules above see it.

import EventLoop
import HTTPWire

/// A transfer; loop-bound. Its methods may be called at any time on the loop, from its delegate and its source, too.
///
/// States: resolving → running → ended, and from each to ended.
package final class Transfer {
    enum State { case resolving, running, ended }

    package let request: UpstreamRequest
    /// Among the client's active ones; the client's own.
    var activePlace: Int
    /// The request target, once its URL has been parsed.
    var target = ""
    var destination: Origin?
    // All nil from the end on.
    var client: (any TransferClient)?
    var delegate: (any TransferDelegate)?
    var source: (any RequestBodySource)?
    private(set) var carrier: (any TransferCarrier)?
    /// The carrier's, held for itself: each look at a response through the protocol would be a call.
    private(set) var slot: CarrierSlot?
    /// The number under which it waits for the addresses of its origin; the client's own, nil where it does not wait.
    var question: UInt64?

    var state = State.resolving
    var deadlines: Deadlines
    private var isMarked = false

    /// The delegate wants no bytes.
    private(set) var isHeld = false
    private(set) var isReceivePaused = false
    var isSendPaused = false
    var isBodyAnnounced = false
    /// Bytes the source has given.
    var bodySent: UInt64 = 0
    var isBodyTouched = false

    /// How often its request has gone out.
    var timesSent = 0
    /// The source of the request's body failed, or did not give what was announced.
    var hasBodyFailed = false
    /// It was cancelled where it could not end: it does at the end of the event.
    private var isCancelled = false
    /// Nothing more of the request is wanted.
    var isGivenUp: Bool { hasBodyFailed || isCancelled }
    // Both unchecked, since a check would be paid for with every response: a carrier sets each by one assignment of a
    // Bool. Other modules have them by the properties below, since they would check all the same.
    @exclusivity(unchecked) var contentIsNext = false
    @exclusivity(unchecked) var provesEnd = true
    /// Content of known length came with the final head, which is handed on now: bytes are next.
    package var hasContent: Bool { contentIsNext }
    /// False where a body that lasts to the end of its connection came over TLS, and that ended without close_notify:
    /// anybody on the way may have cut it (RFC 9112 section 9.8). For the delegate's `transferFinished`.
    package var isEndProven: Bool { provesEnd }
    /// How it ended, while bytes before the end wait for the delegate.
    var outcome: Result<Fields, UpstreamError>?
    var isConcluded: Bool { outcome != nil }

    init(
        _ request: UpstreamRequest,
        client: any TransferClient,
        source: (any RequestBodySource)?,
        delegate: any TransferDelegate,
        place: Int
    ) {
        self.request = request
        activePlace = place
        self.client = client
        self.source = source
        self.delegate = delegate
        deadlines = Deadlines(request.terms.timeouts, now: Monotonic.now())
    }

    // MARK: - For the modules above

    /// The delegate wants bytes again. They come later, not from within this call.
    package func resume() {
        guard isHeld, state != .ended else { return }
        isHeld = false
        updateSuspension()
        mark()
        client?.poke()
    }

    /// The delegate wants no bytes for now, as if it had answered `.pause` to the last ones. Those that have been read
    /// already may still come.
    package func pause() {
        guard !isHeld, state != .ended else { return }
        hold()
    }

    /// The response may fall silent for as long as it likes, such as an event stream: no idle deadline from now on.
    package func allowSilence() {
        deadlines.liftIdle()
        armTimer()
    }

    /// Called when the source of the request body has bytes again, or its end. It is read later,
    /// not from within this call.
    package func bodyAvailable() {
        guard state != .ended else { return }
        isBodyAnnounced = true
        mark()
        client?.poke()
    }

    /// Cancels the transfer; its connection is closed unless the response was complete. The
    /// delegate is not called again.
    package func cancel() {
        guard state != .ended else { return }
        delegate = nil
        if client?.mustKeepTransfers == true {
            isCancelled = true
            mark()
        } else {
            detach()
        }
    }

    // MARK: - The carrier

    /// A carrier has the transfer from now on.
    func attach(to carrier: any TransferCarrier) {
        if let former = self.carrier, former !== carrier { former.slot.transfer = nil }
        self.carrier = carrier
        slot = carrier.slot
        carrier.slot.transfer = self
    }

    /// The carrier has it no longer.
    func leaveCarrier() -> (any TransferCarrier)? {
        guard let carrier else { return nil }
        carrier.slot.transfer = nil
        self.carrier = nil
        slot = nil
        return carrier
    }

    // MARK: - Handing on

    /// Puts the transfer on the list of those that have something to hand on.
    func mark() {
        guard !isMarked else { return }
        isMarked = true
        client?.mark(self)
    }

    /// Delivers the pending parts of the response in order; outside libcurl.
    func deliver() {
        isMarked = false
        if isCancelled { return detach() }
        guard state != .ended else { return }
        handOn()
        guard state != .ended else { return }
        if let outcome, slot?.reader.bytes.isEmpty ?? true { return end(outcome) }
        unpause()
    }

    func handOn() {
        guard let reader = slot?.reader else { return }
        if !reader.interims.isEmpty {
            let interims = reader.interims
            reader.interims.removeAll(keepingCapacity: true)
            for interim in interims { delegate?.transfer(self, received: interim) }
        }
        guard state != .ended else { return }
        if let head = reader.takeHead() {
            delegate?.transfer(self, received: head, framing: reader.framing)
        }
        guard state != .ended, !isHeld, !reader.bytes.isEmpty else { return }
        // Moved out of the reader, so that no bytes are appended while the delegate reads them.
        var bytes: [UInt8] = []
        swap(&bytes, &reader.bytes)
        let flow = bytes.withUnsafeBytes { delegate?.transfer(self, received: $0) }
        guard state != .ended else { return }
        bytes.removeAll(keepingCapacity: true)
        swap(&bytes, &reader.bytes)
        if flow == .pause { hold() }
    }

    func hold() {
        isHeld = true
        updateSuspension()
    }

    // MARK: - Back-pressure

    /// How much may wait to be handed on before nothing more is read, in bytes.
    private static var maximumBuffered: Int { 1 << 18 }

    /// Asked before more bytes come than the `buffered` that wait.
    func mustPause(buffered: Int) -> Bool {
        guard isHeld || buffered >= Self.maximumBuffered else { return false }
        isReceivePaused = true
        mark()
        return true
    }

    private func unpause() {
        guard let carrier, let slot, state == .running, !isConcluded else { return }
        let canReceive = isReceivePaused && !isHeld && slot.reader.bytes.isEmpty
        let canSend = isSendPaused && isBodyAnnounced
        guard canReceive || canSend else { return }
        if canReceive { isReceivePaused = false }
        if canSend { isSendPaused = false }
        isBodyAnnounced = false
        updateSuspension()
        carrier.resume(receive: canReceive, send: canSend)
    }

    // MARK: - Deadlines

    func updateSuspension() {
        deadlines.setSuspended(isHeld || isSendPaused, now: Monotonic.now())
        armTimer()
    }

    /// Starts the timer, unless it fires early enough already; then the deadline is checked again.
    func armTimer() {
        if let next = deadlines.next { slot?.wake(at: next.at) }
    }

    /// From the loop, outside libcurl.
    func timerFired() {
        guard state != .ended, !isConcluded else { return }
        guard let phase = deadlines.expired(now: Monotonic.now()) else { return armTimer() }
        end(.failure(ConnectionFailure.timeout(place, phase)))
    }
}

@available(*, unavailable) extension Transfer: Sendable {}
