// One request and its answer, as handlers see them: heads, content and an end, whatever version of HTTP carries them;
// and the protocol of the handlers.

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
    package let client: ConnectedClient
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
    /// When the final head was sent, monotonic nanoseconds; 0 before it.
    @exclusivity(unchecked) var answeredAt: UInt64 = 0
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
    /// Tells what becomes of the request, in lines and spans; nil unless that is wanted.
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
    /// The carrier of the exchange; nil from its end on.
    private(set) var carrier: (any ExchangeCarrier)?
    var state = State.open
    /// Ends an answer that does not end by itself; nil for others.
    private var drainAction: (() -> Void)?
    private var roomWaiter: UnsafeContinuation<Void, Never>?

    /// - Parameter body: nil if the head announces none.
    init(
        id: UInt64,
        request: RequestHead,
        target: RequestTarget,
        framing: BodyFraming,
        body: RequestBody?,
        carrier: any ExchangeCarrier,
        of client: ConnectedClient,
        startedAt: UInt64,
        in context: LoopContext
    ) {
        self.id = id
        self.request = request
        self.target = target
        self.framing = framing
        self.carrier = carrier
        knownBody = body
        self.client = client
        self.startedAt = startedAt
        self.context = context
    }

    /// The body of the request; an empty one where none was announced.
    package var requestBody: RequestBody {
        if let knownBody { return knownBody }
        let body = RequestBody(nil, .none, expectsContinue: false)
        if carrier == nil { body.detach(.clientGone) }
        knownBody = body
        return body
    }

    package var peer: SocketAddress { client.peer }
    package var listener: ListenerInfo { client.listener }

    /// Keeps the outgoing fields for the next request, if that may have the same fields in the same memory.
    func keep(_ outgoing: OutgoingFields) { client.lastOutgoing = client.repeatsFields ? outgoing : nil }

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
        answeredAt = Monotonic.now()
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

// MARK: - Reports

extension Exchange {
    /// Answers with a problem document; cuts the answer where a head has already been sent.
    package func problem(_ problem: Problem) {
        guard !isHeadSent else { return fail() }
        let body = problem.body
        var head = problem.head(name: context.settings.name)
        if outcome.error.isEmpty { outcome.error = problem.detail }
        outcome.cache = .error
        // A client that reports the problem can then name the request's line in the log.
        if listener.role == .proxy, trace?.isLogged == true || context.log?.needsID == true {
            head.fields.set(RequestID.fieldName, requestID.text)
        }
        sendHead(head, body: .known(Int64(body.count)))
        queue(body)
        finish()
    }

    /// The target as logs and the journal show it.
    var shownTarget: String { LoggedReferer.text(client.connection.shown(request.target), context.secrets) }

    /// Tells the daemon's log of something that was refused, or has failed, and why.
    func tell(_ trouble: ClientTrouble, _ reason: String) {
        var facts = [
            ("client", client.name),
            ("target", shownTarget),
        ]
        facts.append(("service", outcome.route))
        // The log has the addresses that name servers gave; problem documents leave them out.
        facts.append(("error", outcome.error.isEmpty ? reason : outcome.error))
        context.daemonLog.tell(trouble, facts)
    }

    /// Puts the request id into the fields for an origin, if ids are forwarded; it replaces an id of the
    /// client that may not be used.
    func identify(_ fields: inout Fields) {
        guard context.passesIDs else { return }
        if case .taken = requestID, fields.contains(RequestID.fieldName) { return }
        fields.set(RequestID.fieldName, requestID.text)
    }

    /// Logs the bodies of the request and of its answer.
    /// - Parameter head: of the answer; nil where a problem document has answered.
    func tell(_ bodies: BodyLog, _ match: RouteMatch, _ head: ResponseHead?) {
        let names = [("service", match.route.label), ("endpoint", match.endpoint.name)]
        let target = [("target", shownTarget)]
        let status = [("status", status.map { "\($0)" } ?? "")]
        context.daemonLog.tellBodies(
            requestID.text,
            names + target + status + bodies.facts(request, head, context.contents)
        )
    }

    /// Begins the lines about this request, and its span.
    func beginTrace(_ hot: HotState) {
        let span = hot.sampler?.begin(request.fields, at: startedAt)
        var line: RequestTrace.Line?
        if hot.isTraced {
            let (log, id) = (context.daemonLog, requestID.text)
            line = { log.debug($0, $1, id, $2) }
        }
        let trace = RequestTrace(span: span, line)
        self.trace = trace
        trace.say(
            "request",
            [
                ("client", client.name), ("method", request.method.name),
                ("target", shownTarget),
                ("host", request.fields.first(.host) ?? ""),
            ] + (client.session?.facts ?? [])
        )
    }
}

// MARK: - Answers passed on as they come

extension Exchange {
    /// Sends the head of an answer to GET unchanged, except for the lines of the origin's connection.
    /// - Parameters:
    ///   - head: with one Content-Length, which says `length`, and with Date.
    ///   - lines: made for its status, reason and way; the version of the head is 1.1.
    ///   - hasContent: content follows at once, so that head and content are written together.
    /// - Returns: false, with nothing sent, if the request cannot take such an answer.
    func forwardHead(_ head: ResponseHead, length: UInt64, _ lines: ForwardedLines, hasContent: Bool) -> Bool {
        guard state == .open, request.method == .get, let carrier, let length = Int64(exactly: length) else {
            return false
        }
        status = head.status
        answeredAt = Monotonic.now()
        state = .body
        carrier.forwardHead(
            head,
            length: length,
            lines,
            to: request.version,
            isReusable: knownBody?.forbidsReuse != true,
            hasContent: hasContent
        )
        return true
    }

    /// Writes bytes from where they lie, and queues what the client does not take. False where so much is queued that
    /// the next ones should wait.
    /// - Throws: `ClientGone` when nothing can be sent any more.
    func pass(_ bytes: UnsafeRawBufferPointer) throws(ClientGone) -> Bool {
        guard let carrier, state == .body else { throw ClientGone() }
        carrier.pass(bytes)
        guard let carrier = self.carrier else { throw ClientGone() }
        return carrier.queuedBytes <= OutputQueue.highWatermark
    }

    /// Moves bytes of the body out of their source to the client, at most `count`, without a
    /// copy through this process.
    /// - Returns: how the source gave them; nil if they are to be read there, since they
    ///   cannot go to the client alone.
    func splice(_ count: Int, from source: SpliceSource) -> IOResult? {
        guard state == .body, let carrier else { return nil }
        return carrier.splice(count, from: source)
    }

    /// No more is queued than may be; true where the client has left, too.
    var hasRoom: Bool { queuedBytes <= OutputQueue.highWatermark }
}

// MARK: - Latencies

/// Loop-bound; the exchange holds it while it waits.
final class DelayedExchange: SynchronousResponder {
    private let exchange: Exchange
    private let handler: any ExchangeHandler
    private var timer: LoopTimer?

    private init(_ exchange: Exchange, _ handler: any ExchangeHandler) {
        self.exchange = exchange
        self.handler = handler
    }

    /// Leaves the exchange to the handler's waiting path, later. An answer that is made already
    /// (``Exchange/made``) is left to it soon, where the client leaves meanwhile. On the loop's thread.
    /// - Parameter nanoseconds: from now on.
    static func begin(_ exchange: Exchange, after nanoseconds: UInt64, by handler: any ExchangeHandler) {
        let delayed = DelayedExchange(exchange, handler)
        // The timer holds it until it fires or is dropped: the exchange lets go of it when the client leaves.
        let timer = LoopTimer(onThreadOf: exchange.context.loop) { delayed.timeHasCome() }
        delayed.timer = timer
        exchange.responder = delayed
        timer.start(after: nanoseconds)
    }

    private func timeHasCome() {
        exchange.responder = nil
        // A callback of the loop, outside any task: its isolation is entered once, by address.
        let address = UInt(bitPattern: Unmanaged.passUnretained(self).toOpaque())
        exchange.context.loop.assumeIsolated { loop in
            guard let pointer = UnsafeRawPointer(bitPattern: address) else { return }
            // The caller's frame holds it.
            Unmanaged<DelayedExchange>.fromOpaque(pointer).takeUnretainedValue().launch(on: loop)
        }
    }

    private func launch(on loop: isolated EventLoop) {
        exchange.launch(by: handler, on: loop)
        timer = nil
    }

    var beginsTask: Bool { true }

    func roomMade() {}

    func clientLeft() {
        if exchange.made == nil { timer = nil } else { timer?.start(after: 0) }
    }
}

@available(*, unavailable) extension DelayedExchange: Sendable {}

// MARK: - Handlers

/// Answers requests; loop-bound, one per loop and listener role.
package protocol ExchangeHandler: AnyObject, SendableMetatype {
    /// The hot path: synchronous, from the read callback, without a task or an allocation.
    ///
    /// Answers now through `sender` and returns what that came to, or returns `.notMine` and leaves the request to
    /// ``answer(_:on:)``. Asked only for requests without a body that expect nothing and upgrade nothing.
    func answerSynchronously(_ request: borrowing HotRequest, through sender: any HotSender) -> HotAnswer

    /// Pass-through: forwards a request synchronously, if nothing but its origin can answer it. True: a
    /// ``SynchronousResponder`` ends the exchange, now or later; false leaves it to ``answer(_:on:)``.
    func passThrough(_ exchange: Exchange) -> Bool

    /// The waiting path: runs as a task on the loop and ends the exchange by `finish`, `fail`, `problem` or `detach`.
    /// The task is cancelled when the client leaves. An exchange that it leaves open is answered 500, or cut.
    func answer(_ exchange: Exchange, on loop: isolated EventLoop) async

    /// Called when all connections of the loop have ended; no requests follow.
    func shutdown()
}

extension SynchronousResponder {
    package var beginsTask: Bool { false }
}

extension ExchangeHandler {
    package func shutdown() {}

    package func passThrough(_ exchange: Exchange) -> Bool { false }
}

/// Passes an origin's answer on to the client; loop-bound, and held by the exchange until its end.
package protocol SynchronousResponder: AnyObject {
    /// It leaves the exchange to a task later, so that it is not over when one has returned. Default: false.
    var beginsTask: Bool { get }
    /// The client has taken so much that there is room for more.
    func roomMade()
    /// The client has left, or was cut off, before the answer was complete.
    func clientLeft()
}
