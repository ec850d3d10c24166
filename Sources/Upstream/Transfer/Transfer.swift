// One request and its response in progress: as the modules above see it, and the behaviour that all carriers share.

import EventLoop
import HTTPWire

/// A transfer; loop-bound. Its methods may be called at any time on the loop, also from its delegate and its source.
///
/// States: resolving → running → ended, and from each to ended.
package final class Transfer {
    enum State { case resolving, running, ended }

    package let request: UpstreamRequest
    /// The transfer's index among the client's active ones; set by the client alone.
    var activeIndex: Int
    /// The request target, once its URL has been parsed.
    var target = ""
    var destination: Origin?
    // All of these are nil once the transfer has ended.
    var client: (any TransferClient)?
    var delegate: (any TransferDelegate)?
    var source: (any RequestBodySource)?
    private(set) var carrier: (any TransferCarrier)?
    /// The slot of the carrier, held here as well: each access to a response through the protocol would be a call.
    private(set) var slot: CarrierSlot?
    /// The number under which the transfer waits for the addresses of its origin; set by the client alone, nil if it
    /// does not wait.
    var question: UInt64?

    var state = State.resolving
    var deadlines: Deadlines
    private var isMarked = false

    /// Whether the delegate wants no bytes.
    private(set) var isHeld = false
    private(set) var isReceivePaused = false
    var isSendPaused = false
    var isBodyAnnounced = false
    /// The number of bytes that the source has given.
    var bodySent: UInt64 = 0
    var isBodyTouched = false

    /// How many times the request was sent.
    var timesSent = 0
    /// Whether the source of the request's body failed, or gave another length than was announced.
    var hasBodyFailed = false
    /// Whether the transfer was cancelled while it could not end: it ends at the end of the event.
    private var isCancelled = false
    /// True if the rest of the request is not needed.
    var isGivenUp: Bool { hasBodyFailed || isCancelled }
    // Both are unchecked, since a check would be paid for with every response: a carrier sets each by one assignment of
    // a Bool. Other modules read them through the properties below, since their accesses would be checked all the same.
    @exclusivity(unchecked) var contentIsNext = false
    @exclusivity(unchecked) var provesEnd = true
    /// Whether content of known length arrived with the final head that is being handed on, so that bytes follow next.
    package var hasContent: Bool { contentIsNext }
    /// False if a body that lasts to the end of its connection came over TLS, and that ended without close_notify: an
    /// attacker may have cut it (RFC 9112 section 9.8). For the delegate's `transferFinished`.
    package var isEndProven: Bool { provesEnd }
    /// The outcome of the transfer, while bytes before the end wait for the delegate.
    var outcome: Result<Fields, UpstreamError>?
    var isConcluded: Bool { outcome != nil }

    init(
        _ request: UpstreamRequest,
        client: any TransferClient,
        source: (any RequestBodySource)?,
        delegate: any TransferDelegate,
        activeIndex: Int
    ) {
        self.request = request
        self.activeIndex = activeIndex
        self.client = client
        self.source = source
        self.delegate = delegate
        deadlines = Deadlines(request.terms.timeouts, now: Monotonic.now())
    }

    /// The nanoseconds until there was a connection, with look-up and handshakes; nil if one was waiting.
    package var connectTime: UInt64? { deadlines.connectTime }
    /// The nanoseconds from the beginning to the head of the response; nil before it.
    package var firstByteTime: UInt64? { deadlines.firstByteTime }

    // MARK: - For the modules above

    /// Resumes the delivery of bytes. They come later, not from within this call.
    package func resume() {
        guard isHeld, state != .ended else { return }
        isHeld = false
        updateSuspension()
        mark()
        client?.poke()
    }

    /// Pauses the delivery, as if the delegate had answered `.pause` to the last bytes. Those that have been read
    /// already may still come.
    package func pause() {
        guard !isHeld, state != .ended else { return }
        hold()
    }

    /// Allows the response to be silent for any time, such as an event stream: there is no idle deadline from now on.
    package func allowSilence() {
        deadlines.liftIdle()
        armTimer()
    }

    /// Reports that the source of the request body has bytes again, or its end. It is read later, not from within this
    /// call.
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

    /// Assigns the transfer to a carrier.
    func attach(to carrier: any TransferCarrier) {
        if let former = self.carrier, former !== carrier { former.slot.transfer = nil }
        self.carrier = carrier
        slot = carrier.slot
        carrier.slot.transfer = self
    }

    /// Takes the transfer from its carrier.
    func leaveCarrier() -> (any TransferCarrier)? {
        guard let carrier else { return nil }
        carrier.slot.transfer = nil
        self.carrier = nil
        slot = nil
        return carrier
    }

    // MARK: - Handing on

    /// Puts the transfer on the list of those with parts to hand on.
    func mark() {
        guard !isMarked else { return }
        isMarked = true
        client?.mark(self)
    }

    /// Delivers the pending parts of the response in order; called outside libcurl.
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
        // The bytes are moved out of the reader, so that none are appended while the delegate reads them.
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

    /// The most bytes that may wait to be handed on; beyond it no more are read.
    private static var maximumBuffered: Int { 1 << 18 }

    /// Whether to read no more bytes while `buffered` bytes wait.
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

    /// Starts the timer, unless it fires early enough already; the deadline is checked when it does.
    func armTimer() {
        if let next = deadlines.next { slot?.wake(at: next.at) }
    }

    /// Checks the deadlines. Called by the loop, never by libcurl.
    func timerFired() {
        guard state != .ended, !isConcluded else { return }
        guard let phase = deadlines.expired(now: Monotonic.now()) else { return armTimer() }
        end(.failure(ConnectionFailure.timeout(destinationName, phase)))
    }
}

@available(*, unavailable) extension Transfer: Sendable {}

// MARK: - While it is carried

/// The calls of carriers, which may have their engine on the stack (such as libcurl): they decide, append and mark.
/// Delegates are called later, except for bytes that they take at once and for ``concludeAtOnce(_:)``.
extension Transfer {
    // MARK: - The request goes out

    /// Whether the request, which was sent, may be sent once more because its reused connection ended without a byte of
    /// a response: the origin may have closed it before the request arrived. The method must be idempotent (RFC 9110
    /// section 9.2.2), and no part of a body may have been sent.
    var mayResend: Bool { request.method.isIdempotent && !isBodyTouched && slot?.reader.hasReceived == false }

    /// Whether the request may be sent on a connection, the first one or another.
    var mayGoOut: Bool { timesSent == 0 || mayResend }

    /// Counts that the request is sent now.
    func goesOut() {
        timesSent += 1
        deadlines.enter(request.hasBody ? .sending : .waiting, now: Monotonic.now())
        armTimer()
    }

    /// Sends the request once more over a fresh connection, if it may be repeated: no byte of a response came on a
    /// reused one.
    /// - Parameter letGo: closes the old connection.
    func resend(_ letGo: () -> Void) {
        guard mayResend, timesSent == 1, let client else { return concludeAtOnce(.failure(resendError)) }
        letGo()
        client.resolve(self, isFresh: true)
    }

    // MARK: - The request's body

    /// Reads the next bytes of the body, for a carrier that has room for them.
    func readBody(into buffer: UnsafeMutableRawBufferPointer) -> BodyRead {
        guard !isGivenUp else { return .failed }
        var room = buffer
        if case .length(let length) = request.bodyFraming {
            let left = length - bodySent
            if left == 0 { return .end }
            if UInt64(room.count) > left { room = UnsafeMutableRawBufferPointer(rebasing: room[..<Int(left)]) }
        }
        isBodyTouched = true
        isBodyAnnounced = false
        let read = source?.read(into: room) ?? .end
        switch read {
        case .bytes(let count):
            guard (1...room.count).contains(count) else { return failBody() }
            bodySent += UInt64(count)
            deadlines.progress(now: Monotonic.now())
            if request.bodyFraming == .length(bodySent) { bodyRead() }
        case .wait:
            isSendPaused = true
            updateSuspension()
        case .end:
            // The body is shorter than announced: the origin must not take what it got for the whole.
            if case .length = request.bodyFraming { return failBody() }
            bodyRead()
        case .failed: return failBody()
        }
        return read
    }

    private func failBody() -> BodyRead {
        hasBodyFailed = true
        return .failed
    }

    private func bodyRead() {
        guard deadlines.phase == .sending else { return }
        deadlines.enter(.waiting, now: Monotonic.now())
        armTimer()
    }

    /// Schedules the first read from the source, not within this call.
    func askSourceLater() {
        isSendPaused = true
        isBodyAnnounced = true
        markLater()
    }

    /// Stops reading from the source.
    func stopAsking() {
        guard isSendPaused else { return }
        isSendPaused = false
        updateSuspension()
    }

    // MARK: - The response

    func headReceived() {
        deadlines.enter(.receiving, now: Monotonic.now())
        armTimer()
    }

    func bodyReceived() { deadlines.progress(now: Monotonic.now()) }

    /// Whether bytes go to the delegate as they arrive: nothing waits before them, and it accepts them while its
    /// carrier's engine is on the stack.
    var handsOnAtOnce: Bool {
        guard let slot, !isGivenUp, delegate?.acceptsReentrantBytes == true else { return false }
        return slot.reader.isHandedOn
    }

    /// Hands bytes to the delegate. False if it wants none now.
    func handOn(_ bytes: UnsafeRawBufferPointer) -> Bool {
        guard !isHeld, let delegate else { return false }
        if delegate.transfer(self, received: bytes) == .pause { hold() }
        return true
    }

    var supportsSplice: Bool { delegate?.supportsSplice ?? false }

    /// Lets the delegate splice content from its source; nil if it does not do so now.
    func splice(_ count: Int, from source: SpliceSource) -> IOResult? {
        guard !isHeld, let delegate, let moved = delegate.transfer(self, moves: count, from: source) else { return nil }
        if moved.flow == .pause { hold() }
        return moved.result
    }

    /// The most bytes that should be read at a time.
    var maximumAtOnce: Int { delegate?.maximumAtOnce ?? .max }

    // MARK: - The end

    /// Records the outcome; the delegate is told later, after the bytes that wait for it.
    func conclude(_ outcome: Result<Fields, UpstreamError>) {
        self.outcome = outcome
        markLater()
    }

    /// Records the outcome from an event of a connection: the delegate is told within this call, unless bytes wait for
    /// it.
    func concludeAtOnce(_ outcome: Result<Fields, UpstreamError>) {
        self.outcome = outcome
        if slot?.reader.isHandedOut ?? true { end(outcome) } else { mark() }
    }

    private func markLater() {
        mark()
        client?.wakeLater()
    }
}

// MARK: - Through a proxy

// The effects of a proxy on the way to the origin on a transfer.
extension Transfer {
    /// The rules for the addresses of the transfer's connection: those for origins do not apply to a proxy that the
    /// configuration names.
    var dialRules: TargetRules { destination?.proxy == nil ? request.terms.target : .any }

    /// Whether a proxy is asked for the URL as a whole (RFC 9112 section 3.2.2), and not for a tunnel.
    var asksProxy: Bool {
        guard let destination, destination.proxy != nil else { return false }
        return !destination.isTLS && !request.isUpgrade
    }

    /// The request for a tunnel to its proxy; nil if no tunnel of Drydock's own is needed.
    var tunnel: TunnelRequest? {
        guard let destination, let proxy = destination.proxy, request.isUpgrade else { return nil }
        return TunnelRequest(proxy, to: destination.url.host, destination.url.port, via: request.fields.all(.via))
    }
}

// MARK: - Its end

// The end of a transfer: tells the delegate, releases what it holds, and words the error.
extension Transfer {
    // MARK: - Release

    /// Tells the delegate; the transfer has released everything before.
    func end(_ outcome: Result<Fields, UpstreamError>) {
        let delegate = delegate
        detach()
        switch outcome {
        case .success(let trailers): delegate?.transferFinished(self, trailers: trailers)
        case .failure(let error): delegate?.transfer(self, failed: error)
        }
    }

    /// Releases the carrier, the delegate and the source of the body.
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

    /// Ends the transfer after a switch to another protocol: its connection belongs to the delegate from here on.
    func switched(_ head: ResponseHead, to connection: SwitchedConnection) {
        let delegate = delegate
        detach()
        delegate?.transfer(self, switched: head, to: connection)
    }

    // MARK: - Words

    /// The origin for messages, without the query, since that may hold secrets.
    var destinationName: String { destination?.name ?? request.terms.url + request.path.prefix { $0 != "?" } }

    func violation(_ kind: UpstreamError.Kind) -> UpstreamError {
        switch kind {
        case .protocolViolation(let error):
            return UpstreamError(kind, detail: "\(destinationName) sent a response that is refused: \(error.detail)")
        case .unexpectedStatus(let status):
            return UpstreamError(
                kind,
                detail: "\(destinationName) answered \(status), which nothing asked for: correct the origin"
            )
        case .proxy(let status?):
            guard let destination, let proxy = destination.proxy else { break }
            return proxy.refusal(of: destination.url.authority, status: status)
        default: break
        }
        return UpstreamError(kind, detail: "\(destinationName) sent a response that is refused")
    }

    var resendError: UpstreamError {
        let detail =
            "\(destinationName) closed the connection before its response; \(request.method.name) is not sent twice"
        return UpstreamError(.closed, detail: detail)
    }

    var unaskedError: UpstreamError {
        UpstreamError(.closed, detail: "\(destinationName) sent bytes that nobody asked for on each new connection")
    }

    func refusal(_ kind: UpstreamError.Kind?) -> UpstreamError { violation(kind ?? .closed) }

    var requestBodyError: UpstreamError {
        let detail = "the request's body ended early, so that the request to \(destinationName) was given up"
        return UpstreamError(.requestBody, detail: detail)
    }
}

// MARK: - Carriers

/// Carries one transfer after another; loop-bound. The behaviour that all carriers share is in the extension of
/// ``Transfer`` above.
protocol TransferCarrier: AnyObject {
    /// The link between the carrier and its transfer.
    var slot: CarrierSlot { get }
    /// The origin's address of the connection in use, such as `127.0.0.1:8080`; nil before there is one.
    var remoteAddress: String? { get }
    /// Continues reading, because the delegate wants bytes again, or sending, because the source of the request's body
    /// has some.
    func resume(receive: Bool, send: Bool)
    /// Ends the carrier's work for a transfer that has ended: a connection that cannot be reused is closed.
    func release()
}

extension TransferCarrier {
    /// The transfer that is carried now; nil between two transfers.
    var transfer: Transfer? { slot.transfer }
    var reader: ResponseReader { slot.reader }
}

/// The transfer that a carrier has now, and the objects that it keeps for the next one; loop-bound, one for each
/// carrier.
final class CarrierSlot {
    /// The transfer that is carried; nil between two transfers. Unchecked: it is read and set as a whole, and no other
    /// code runs meanwhile.
    @exclusivity(unchecked) var transfer: Transfer?
    /// The reader of the transfer's response.
    let reader = ResponseReader()
    private var timer: LoopTimer?
    /// The time when the timer fires, in monotonic nanoseconds; nil if it does not run.
    private var firesAt: UInt64?

    init(on loop: EventLoop) {
        // Unowned: this object owns the timer, which ends with it.
        timer = LoopTimer(onThreadOf: loop) { [unowned self] in
            firesAt = nil
            transfer?.timerFired()
        }
    }

    /// Has the transfer check its deadlines at `time` or before. The timer runs on from one transfer to the next, which
    /// starts it anew if that was too early.
    /// - Parameter time: monotonic nanoseconds.
    func wake(at time: UInt64) {
        if let firesAt, firesAt <= time { return }
        firesAt = time
        let now = Monotonic.now()
        timer?.start(after: time > now ? time - now : 0)
    }
}

@available(*, unavailable) extension CarrierSlot: Sendable {}

// MARK: - The client

/// Begins transfers and delivers their events; loop-bound. A transfer holds it until its end.
protocol TransferClient: AnyObject {
    /// Whether a carrier is on the stack that cannot lose a transfer before it has returned: a transfer that is
    /// cancelled meanwhile ends later.
    var mustKeepTransfers: Bool { get }
    /// Marks a transfer with events to deliver: they are delivered at the end of the current
    /// event, or within ``settle()``.
    func mark(_ transfer: Transfer)
    /// Reports that a method of a transfer was called from outside: the delegates are called later.
    func poke()
    /// Schedules the delivery of marked transfers for this turn of the loop, not within this call.
    func wakeLater()
    /// Starts the transfer again, from the resolution of its origin.
    /// - Parameter isFresh: whether it needs a new connection rather than an idle one.
    func resolve(_ transfer: Transfer, isFresh: Bool)
    /// Removes a transfer that has ended and released everything.
    func released(_ transfer: Transfer)
    /// Begins an event of a connection: the calls that delegates make meanwhile take effect at its end.
    func beginEvent()
    func endEvent()
}
