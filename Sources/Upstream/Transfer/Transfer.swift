// One request and its response under way, as the rooms above see it.

internal import EventLoop
internal import HTTPWire

/// A transfer; loop-bound. Its methods may be called at any time on the loop, from its delegate and its source, too.
///
/// States: resolving → running → ended, and from each to ended.
package final class Transfer {
    enum State { case resolving, running, ended }

    /// Why a request was given up while libcurl was on the stack, or by its own body: told once the carrier has come to its end.
    enum Abort {
        case failed(UpstreamError)
        case cancelled
    }

    package let request: UpstreamRequest
    /// Among the client's active ones; the client's own.
    var activePlace: Int
    /// What goes into the request line, once its URL has been taken apart.
    var target = ""
    var destination: UpstreamPlace?
    // All nil from the end on.
    var client: (any TransferClient)?
    var delegate: (any TransferDelegate)?
    var source: (any RequestBodySource)?
    var carrier: Carrier?

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

    /// Connections that its request went out on, or would have.
    var attempts = 0
    var abort: Abort?
    // Unchecked, as `provesEnd`: nobody is called while they are changed, and a check would be paid for with every use. Other modules have
    // them by the properties below, since they would check all the same.
    @exclusivity(unchecked) var contentIsNext = false
    @exclusivity(unchecked) var provesEnd = true
    /// Content of known length came with the final head, which is handed on now: bytes are next.
    package var hasContent: Bool { contentIsNext }
    /// False where a body that lasts to the end of its connection came over TLS, and that ended without close_notify: anybody on
    /// the way may have cut it (RFC 9112 section 9.8). For the delegate's `transferFinished`.
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

    // MARK: - For the rooms above

    /// The delegate wants bytes again. They come later, not from within this call.
    package func resume() {
        guard isHeld, state != .ended else { return }
        isHeld = false
        updateSuspension()
        mark()
        client?.poke()
    }

    /// The response may fall silent for as long as it likes, such as an event stream: no idle deadline from now on.
    package func allowSilence() {
        deadlines.liftIdle()
        armTimer()
    }

    /// The request body's source has bytes again, or its end. It is asked later, not from within this call.
    package func bodyAvailable() {
        guard state != .ended else { return }
        isBodyAnnounced = true
        mark()
        client?.poke()
    }

    /// Gives the transfer up; its connection is closed unless the response was complete. The delegate hears no more.
    package func cancel() {
        guard state != .ended else { return }
        delegate = nil
        if client?.isInsideLibcurl == true {
            abort = .cancelled
            mark()
        } else {
            detach()
        }
    }

    // MARK: - Handing on

    /// Puts the transfer on the list of those that have something to hand on.
    func mark() {
        guard !isMarked else { return }
        isMarked = true
        client?.mark(self)
    }

    /// Hands on what there is, in order; outside libcurl.
    func deliver() {
        isMarked = false
        if case .cancelled = abort { return detach() }
        guard state != .ended else { return }
        handOn()
        guard state != .ended else { return }
        if let outcome, carrier?.reader.bytes.isEmpty ?? true { return end(outcome) }
        unpause()
    }

    func handOn() {
        guard let carrier else { return }
        if !carrier.reader.interims.isEmpty {
            let interims = carrier.reader.interims
            carrier.reader.interims.removeAll(keepingCapacity: true)
            for interim in interims { delegate?.transfer(self, received: interim) }
        }
        guard state != .ended else { return }
        if let head = carrier.reader.takeHead() {
            delegate?.transfer(self, received: head, framing: carrier.reader.framing)
        }
        guard state != .ended, !isHeld, !carrier.reader.bytes.isEmpty else { return }
        // Taken out, so that nobody appends to what the delegate reads.
        var bytes: [UInt8] = []
        swap(&bytes, &carrier.reader.bytes)
        let flow = bytes.withUnsafeBytes { delegate?.transfer(self, received: $0) }
        guard state != .ended else { return }
        bytes.removeAll(keepingCapacity: true)
        swap(&bytes, &carrier.reader.bytes)
        if flow == .pause { hold() }
    }

    func hold() {
        isHeld = true
        updateSuspension()
    }

    // MARK: - Back-pressure

    /// Bytes that should be read at a time, at most.
    var mostAtOnce: Int { delegate?.mostAtOnce ?? .max }

    /// Asked before more bytes come than the `buffered` that wait.
    func mustPause(buffered: Int) -> Bool {
        guard isHeld || buffered >= Carrier.mostBuffered else { return false }
        isReceivePaused = true
        mark()
        return true
    }

    private func unpause() {
        guard let carrier, state == .running, !isConcluded else { return }
        let canReceive = isReceivePaused && !isHeld && carrier.reader.bytes.isEmpty
        let canSend = isSendPaused && isBodyAnnounced
        guard canReceive || canSend else { return }
        if canReceive { isReceivePaused = false }
        if canSend { isSendPaused = false }
        isBodyAnnounced = false
        updateSuspension()
        carrier.goOn(receive: canReceive, send: canSend)
    }

    // MARK: - Deadlines

    func updateSuspension() {
        deadlines.setSuspended(isHeld || isSendPaused, now: Monotonic.now())
        armTimer()
    }

    /// Starts the timer unless it fires early enough anyway: then it looks again.
    func armTimer() {
        if let next = deadlines.next { carrier?.wake(at: next.at) }
    }

    /// From the loop, outside libcurl.
    func timerFired() {
        guard state != .ended, !isConcluded else { return }
        guard let phase = deadlines.expired(now: Monotonic.now()) else { return armTimer() }
        end(.failure(ConnectionFailure.timeout(place, phase)))
    }
}

@available(*, unavailable) extension Transfer: Sendable {}
