// One request and its response under way, as the rooms above see it.

internal import CLibcurl
internal import EventLoop
internal import HTTPWire

/// A transfer; loop-bound. Its methods may be called at any time on the loop, from its delegate and its source, too.
///
/// States: resolving → running → ended, and from each to ended.
package final class Transfer {
    enum State { case resolving, running, ended }

    /// Why a callback made libcurl give up.
    enum Abort {
        /// A second attempt that must not be made.
        case resend
        /// The connection from the cache is no good: nothing was sent, so that a fresh one may be tried.
        case staleConnection
        /// libcurl had forgotten the addresses.
        case unresolved
        case addressRefused(String)
        case requestBody
        case cancelled
    }

    package let request: UpstreamRequest
    let identifier: UInt64
    var url: UpstreamURL?
    var destination: UpstreamPlace?
    // All nil from the end on.
    var client: UpstreamClient?
    var delegate: (any TransferDelegate)?
    var source: (any RequestBodySource)?
    var handle: EasyHandle?

    var state = State.resolving
    var deadlines: Deadlines
    private var isMarked = false
    /// The handle is with libcurl.
    var isAdded = false

    /// The delegate wants no bytes.
    private(set) var isHeld = false
    private var isReceivePaused = false
    var isSendPaused = false
    var isBodyAnnounced = false
    /// Bytes the source has given.
    var bodySent: UInt64 = 0
    var isBodyTouched = false

    var attempts = 0
    var restarts = 0
    var abort: Abort?
    var connection: ConnectionName?
    /// How it ended, while bytes before the end wait for the delegate.
    var outcome: Result<Fields, UpstreamError>?

    init(
        _ request: UpstreamRequest,
        identifier: UInt64,
        client: UpstreamClient,
        source: (any RequestBodySource)?,
        delegate: any TransferDelegate
    ) {
        self.request = request
        self.identifier = identifier
        self.client = client
        self.source = source
        self.delegate = delegate
        deadlines = Deadlines(request.timeouts, now: Monotonic.now())
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

    /// The origin's address of the connection in use, such as `127.0.0.1:8080`; nil before there is one.
    package var remoteAddress: String? { connection.map { "\($0.remote):\($0.remotePort)" } }

    // MARK: - Handing on

    /// Puts the transfer on the list of those that have something to hand on.
    func mark() {
        guard !isMarked else { return }
        isMarked = true
        client?.marked.append(self)
    }

    /// Hands on what there is, in order; outside libcurl.
    func deliver() {
        isMarked = false
        if case .cancelled = abort { return detach() }
        guard state != .ended else { return }
        handOn()
        guard state != .ended else { return }
        if let outcome, handle?.reader.bytes.isEmpty ?? true { return end(outcome) }
        unpause()
    }

    private func handOn() {
        guard let handle else { return }
        if !handle.reader.interims.isEmpty {
            let interims = handle.reader.interims
            handle.reader.interims.removeAll(keepingCapacity: true)
            for interim in interims { delegate?.transfer(self, received: interim) }
        }
        if let head = handle.reader.head {
            handle.reader.head = nil
            delegate?.transfer(self, received: head, framing: handle.reader.framing)
        }
        guard state != .ended, !isHeld, !handle.reader.bytes.isEmpty else { return }
        // Taken out, so that nobody appends to what the delegate reads.
        var bytes: [UInt8] = []
        swap(&bytes, &handle.reader.bytes)
        let flow = bytes.withUnsafeBytes { delegate?.transfer(self, received: $0) }
        guard state != .ended else { return }
        bytes.removeAll(keepingCapacity: true)
        swap(&bytes, &handle.reader.bytes)
        if flow == .pause { hold() }
    }

    func hold() {
        isHeld = true
        updateSuspension()
    }

    // MARK: - Back-pressure

    /// Asked by libcurl before it hands over `buffered` and more bytes.
    func mustPause(buffered: Int) -> Bool {
        guard isHeld || buffered >= EasyHandle.mostBuffered else { return false }
        isReceivePaused = true
        mark()
        return true
    }

    private func unpause() {
        guard let handle, isAdded else { return }
        let canReceive = isReceivePaused && !isHeld && handle.reader.bytes.isEmpty
        let canSend = isSendPaused && isBodyAnnounced
        guard canReceive || canSend else { return }
        if canReceive { isReceivePaused = false }
        if canSend { isSendPaused = false }
        isBodyAnnounced = false
        updateSuspension()
        let still = (isReceivePaused ? CURLPAUSE_RECV : 0) | (isSendPaused ? CURLPAUSE_SEND : 0)
        // Calls back at once with the bytes that libcurl holds.
        let result = client?.multi?.enter { _ in curl_easy_pause(handle.raw, still) }
        if let result, result != CURLE_OK { finish(result) }
    }

    // MARK: - Deadlines

    func updateSuspension() {
        deadlines.setSuspended(isHeld || isSendPaused, now: Monotonic.now())
        armTimer()
    }

    /// Starts the timer unless it fires early enough anyway: then it looks again.
    func armTimer() {
        if let next = deadlines.next { handle?.wake(at: next.at) }
    }

    /// From the loop, outside libcurl.
    func timerFired() {
        guard state != .ended, outcome == nil else { return }
        guard let phase = deadlines.expired(now: Monotonic.now()) else { return armTimer() }
        end(.failure(timeoutError(phase)))
    }
}

@available(*, unavailable) extension Transfer: Sendable {}
