// One request and its answer, as handlers see them: heads, content and an end, whatever version of HTTP carries them.

package import CacheStore
package import EventLoop
package import HTTPWire
import ServiceCore

/// Loop-bound.
///
/// States: open → body (the head is sent) → finished; open or body → failed (cut, or the client left); body →
/// taken (a tunnel has the way to the client). The last three are final.
package final class Exchange {
    enum State { case open, body, finished, failed, taken }

    /// Unique while the daemon runs.
    package let id: UInt64
    package let request: RequestHead
    package let target: RequestTarget
    package let framing: BodyFraming
    package let peer: SocketAddress
    package let listener: ListenerInfo
    /// When the head was complete, monotonic nanoseconds.
    package let startedAt: UInt64
    /// The body of the request. If none was announced, it is made at the first use.
    private(set) var knownBody: RequestBody?
    /// What the access log and the counters will say.
    // Unchecked, as `status` and `isRecorded`: nobody is called while they are changed, and a check would
    // be paid for with every use.
    @exclusivity(unchecked) package var outcome = ExchangeOutcome()
    /// Nothing can be sent any more, because the client has left.
    package private(set) var isClientGone = false
    /// The status of the final head, once sent.
    @exclusivity(unchecked) package internal(set) var status: Int?
    /// Bytes that wait to be taken by the client.
    package var queuedBytes: Int { carrier?.queuedBytes ?? 0 }
    /// What the connections of this loop share, such as counters.
    package let context: LoopContext

    /// By which the lines of both logs, and the origin's, are known to be about this request.
    private(set) lazy var requestID: RequestID =
        request.takenID.map { .taken($0) } ?? .made(context.nextRequestID())
    /// What the request is for, where that was found before its task began.
    var match: RouteMatch?
    /// The answer that the handler has made and is yet to send, while it waits.
    var made: AnyObject?
    /// Tells what becomes of the request; nil unless that is wanted.
    var trace: RequestTrace?
    /// Becomes an entry of the journal; nil unless there is one.
    var draft: JournalDraft?
    var task: Task<Void, Never>?
    @exclusivity(unchecked) var isRecorded = false
    /// A client that has ended its sending side counts as gone, and its fetch ends. If false, such a client
    /// may still read its answer.
    var endsWithClient = false
    /// Told when the client can take more bytes and when it leaves, while an answer is forwarded
    /// without a task; nil at the end.
    var responder: (any SynchronousResponder)?
    /// Nil from the end on.
    private(set) var carrier: (any ExchangeCarrier)?
    var state = State.open
    /// Ends an answer that does not end by itself; nil for others.
    private var drainAction: (() -> Void)?
    private var roomWaiter: UnsafeContinuation<Void, Never>?

    init(
        id: UInt64,
        request: RequestHead,
        target: RequestTarget,
        framing: BodyFraming,
        carrier: any ExchangeCarrier,
        expectsContinue: Bool,
        from peer: SocketAddress,
        over listener: ListenerInfo,
        startedAt: UInt64,
        in context: LoopContext
    ) {
        self.id = id
        self.request = request
        self.target = target
        self.framing = framing
        self.carrier = carrier
        if framing != .none {
            knownBody = RequestBody(input: carrier, framing: framing, expectsContinue: expectsContinue)
        }
        self.peer = peer
        self.listener = listener
        self.startedAt = startedAt
        self.context = context
    }

    /// The body of the request; an empty one where none was announced.
    package var requestBody: RequestBody {
        if let knownBody { return knownBody }
        let body = RequestBody(input: carrier, framing: framing, expectsContinue: false)
        if carrier == nil { body.detach(.clientGone) }
        knownBody = body
        return body
    }

    /// The outgoing fields of the connection's last forwarded request.
    var lastOutgoing: OutgoingFields? { carrier?.lastOutgoing }

    /// Keeps that for the next request, where the parser keeps the fields, too: else they could not be the same again.
    func keep(_ outgoing: OutgoingFields) { carrier?.keep(outgoing) }

    /// From now on a client that has ended its sending side counts as gone, even if it did so before.
    func endWithClient() {
        endsWithClient = true
        carrier?.endWithClient()
    }

    /// - Parameter act: called when the daemon begins to end.
    func atDrain(_ act: @escaping () -> Void) {
        if context.isDraining { act() } else { drainAction = act }
    }

    /// The daemon begins to end, and waits for this answer.
    func drainBegan() {
        let act = drainAction
        drainAction = nil
        act?()
    }

    /// Whether a final head has been sent.
    package var isHeadSent: Bool { state != .open }

    // MARK: - The head

    /// Forwards an interim response (1xx other than 101); it is dropped for HTTP/1.0 clients and after the final head.
    /// A 100 is forwarded only to a client that waits for one and has had none.
    package func sendInterim(_ head: ResponseHead) {
        guard state == .open, request.version == .http11, 100..<200 ~= head.status, head.status != 101 else { return }
        if head.status == 100, knownBody?.claimContinue() != true { return }
        var head = head
        head.version = .http11
        carrier?.sendInterim(head)
    }

    /// Sends the head. `head` holds end-to-end fields only: what says how the body goes out, and a
    /// missing Date, are set here.
    ///
    /// To HEAD, and with 304, a Content-Length of the head is kept where `body` is `.none`. A 101 goes out as it is.
    package func sendHead(_ head: ResponseHead, body: AnswerLength) {
        guard state == .open, let carrier else { return }
        var head = head
        head.version = .http11
        status = head.status
        state = .body
        carrier.sendHead(head, body: body, to: request, isReusable: knownBody?.forbidsReuse != true)
    }

    // MARK: - The body

    /// Queues a piece and waits while more than 256 KiB are queued.
    /// - Throws: `ClientGone` when nothing can be sent any more.
    package func send(_ piece: BodyPiece) async throws(ClientGone) {
        if try !queue(piece) { try await waitForRoom() }
    }

    /// Queues a piece. False where so much is queued that the next one should wait for room.
    /// - Throws: `ClientGone` when nothing can be sent any more.
    func queue(_ piece: BodyPiece) throws(ClientGone) -> Bool {
        guard let carrier, state == .body else { throw ClientGone() }
        carrier.send(piece)
        // It may have ended while it was written to.
        guard let carrier = self.carrier else { throw ClientGone() }
        return carrier.queuedBytes <= OutputQueue.highWatermark
    }

    /// Queues bytes and waits while more than 256 KiB are queued.
    /// - Throws: `ClientGone` when nothing can be sent any more.
    package func send(_ bytes: [UInt8]) async throws(ClientGone) {
        guard state == .body else { throw ClientGone() }
        queue(bytes)
        try await waitForRoom()
    }

    func queue(_ bytes: [UInt8]) { carrier?.send(bytes) }

    /// Waits while more than so many bytes are queued.
    func waitForRoom(atMost limit: Int = OutputQueue.highWatermark) async throws(ClientGone) {
        while let carrier, carrier.queuedBytes > limit {
            await withUnsafeContinuation { (continuation: UnsafeContinuation<Void, Never>) in
                roomWaiter = continuation
            }
        }
        if carrier == nil { throw ClientGone() }
    }

    /// Called when the connection has written queued bytes.
    func roomMade(_ queued: Int) {
        guard queued <= OutputQueue.lowWatermark else { return }
        responder?.roomMade()
        guard let waiter = roomWaiter else { return }
        roomWaiter = nil
        waiter.resume()
    }

    // MARK: - The end

    /// The answer is complete. Where fewer bytes were sent than declared it is cut instead.
    package func finish(trailers: Fields = Fields()) {
        guard state == .body, let carrier else { return }
        guard carrier.isWhole else { return fail() }
        state = .finished
        carrier.finish(trailers: trailers)
    }

    /// Cuts the answer so that the client cannot take it for complete.
    package func fail() { abort(state == .open ? .reset : .truncate) }

    /// Ends the answer before its end, in a way that the client sees.
    package func abort(_ kind: ExchangeAbort) {
        guard state == .open || state == .body, let carrier else { return }
        state = .failed
        carrier.abort(kind)
    }

    /// Gives the way to the client away, after the head of a 2xx to CONNECT or of a 101 has been sent; nil
    /// where the client is gone.
    package func detach() -> DetachedTransport? {
        guard state == .body, let carrier, let unsent = carrier.takeUnsent() else { return nil }
        state = .taken
        return carrier.detach(unsent: unsent)
    }

    /// Begins the handler's waiting path as a task, and runs it up to its first wait.
    func launch(by handler: any ExchangeHandler, on loop: isolated EventLoop) {
        loop.holdNextTask()
        task = Task.immediate(executorPreference: loop.taskExecutor) { [self] in
            // Naming the loop makes it the task's isolation.
            _ = loop
            await handler.answer(self, on: loop)
            handlerReturned()
        }
        loop.runHeldTask()
    }

    /// Called when the handler has returned: ends the exchange if it is still open.
    private func handlerReturned() {
        // It goes on later, in another task.
        if responder?.beginsTask == true { return task = nil }
        switch state {
        case .open where !isClientGone:
            context.counters.add(.errorInternal)
            problem(
                Problem(
                    status: 500,
                    title: "No answer",
                    detail: "the request was not answered; the daemon's log may say why",
                    proxyError: "proxy_internal_error"
                )
            )
        case .body: fail()
        case .open, .finished, .failed, .taken: break
        }
        task = nil
    }

    /// The connection is done with this exchange, or has ended under it.
    func connectionEnded() {
        carrier = nil
        drainAction = nil
        let responder = responder
        self.responder = nil
        if state == .open || state == .body {
            state = .failed
            isClientGone = true
            task?.cancel()
            responder?.clientLeft()
        }
        let waiter = roomWaiter
        roomWaiter = nil
        waiter?.resume()
        knownBody?.detach(.clientGone)
    }
}

@available(*, unavailable) extension Exchange: Sendable {}
