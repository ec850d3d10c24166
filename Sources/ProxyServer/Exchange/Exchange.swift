// One request and its answer, as the cores see them: no socket, only heads, bodies and an end.

package import CacheStore
package import EventLoop
package import HTTPWire
import ServiceCore

/// Loop-bound.
///
/// States: open → body (the head is sent) → finished; open or body → failed (cut, or the client left); open or body →
/// taken (a tunnel has the socket). The last three are final.
package final class Exchange {
    enum State { case open, body, finished, failed, taken }

    /// Unique while the daemon runs.
    package let id: UInt64
    package let request: RequestHead
    package let target: RequestTarget
    package let framing: BodyFraming
    package let peer: SocketAddress
    package let listener: ListenerFacts
    /// When the head was complete, monotonic nanoseconds.
    package let startedAt: UInt64
    /// The body that came with the request; none until somebody asks for it where none was announced.
    private(set) var knownBody: RequestBody?
    /// What the access log and the counters will say.
    // Unchecked, as `status`, `bodyBytes` and `isRecorded`: nobody is called while they are changed, and a check would be paid for with every use.
    @exclusivity(unchecked) package var outcome = ExchangeOutcome()
    /// Nothing can be sent any more, because the client has left.
    package private(set) var isClientGone = false
    /// The status of the final head, once sent.
    @exclusivity(unchecked) package internal(set) var status: Int?
    /// Bytes of the body queued so far, without chunk framing.
    @exclusivity(unchecked) package internal(set) var bodyBytes = 0
    /// Bytes that wait to be taken by the client.
    package var queuedBytes: Int { connection?.output.count ?? 0 }
    /// What the connections of this loop share, such as counters.
    package let context: LoopContext

    /// By which the lines of both logs, and the origin's, are known to be about this request.
    private(set) lazy var requestID: RequestID =
        request.takenID.map { .taken($0) } ?? .made(context.nextRequestID())
    /// What the request is for, where that was found before its task began.
    var match: RouteMatch?
    /// Tells what becomes of the request; nil unless that is wanted.
    var trace: RequestTrace?
    var task: Task<Void, Never>?
    @exclusivity(unchecked) var isRecorded = false
    /// The client counts as gone once it has ended its side: what it asked for ends with it. Else it may read its answer.
    var endsWithClient = false
    /// Hears of the client's room and of its leaving while an answer is passed on; nil at the end.
    var relay: (any ExchangeRelay)?
    private(set) var connection: Connection?
    var state = State.open
    var coding = Coding.none
    private var roomWaiter: UnsafeContinuation<Void, Never>?

    init(
        id: UInt64,
        request: RequestHead,
        target: RequestTarget,
        framing: BodyFraming,
        connection: Connection,
        expectsContinue: Bool
    ) {
        self.id = id
        self.request = request
        self.target = target
        self.framing = framing
        self.connection = connection
        if framing != .none {
            knownBody = RequestBody(connection: connection, framing: framing, expectsContinue: expectsContinue)
        }
        peer = connection.peer
        listener = connection.listener
        startedAt = connection.requestBegan
        context = connection.context
    }

    /// The body of the request; an empty one where none was announced.
    package var requestBody: RequestBody {
        if let knownBody { return knownBody }
        let body = RequestBody(connection: connection, framing: framing, expectsContinue: false)
        if connection == nil { body.detach(.clientGone) }
        knownBody = body
        return body
    }

    /// What became of the fields of the connection's last request that was passed on.
    var lastOutgoing: OutgoingFields? { connection?.lastOutgoing }

    /// Keeps that for the next request, where the parser keeps the fields, too: else they could not be the same again.
    func keep(_ outgoing: OutgoingFields) {
        guard let connection else { return }
        connection.lastOutgoing = connection.parser.pointee.keepsFields ? outgoing : nil
    }

    /// From now on the client's end of its side counts as leaving, also where it has come already.
    func endWithClient() {
        endsWithClient = true
        if let connection, connection.sawEnd { context.runSoon(connection) }
    }

    /// Whether a final head has been sent.
    package var isHeadSent: Bool { state != .open }

    // MARK: - The head

    /// Passes an interim response on (1xx other than 101); dropped for HTTP/1.0 clients and after the final head.
    /// A 100 is passed on only to a client that waits for one and has had none.
    package func sendInterim(_ head: ResponseHead) {
        guard state == .open, request.version == .http11, 100..<200 ~= head.status, head.status != 101 else { return }
        if head.status == 100, knownBody?.claimContinue() != true { return }
        var head = head
        head.version = .http11
        var bytes: [UInt8] = []
        Serializer.write(head, into: &bytes)
        connection?.output.append(bytes)
        connection?.outputGrew()
    }

    /// Sends the head, and chooses the framing: Content-Length, chunked, or the end of the connection.
    ///
    /// `head` holds end-to-end fields only; Content-Length, Transfer-Encoding, Connection and a missing Date are set
    /// here. To HEAD, and with 304, a Content-Length of the head is kept where `body` is `.none`. A 101 goes out as it is.
    package func sendHead(_ head: ResponseHead, body: AnswerLength) {
        guard state == .open, let connection else { return }
        var head = head
        head.version = .http11
        status = head.status
        state = .body
        if head.status != 101 { frame(&head, body, connection) }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(head.fields.wireLength + 64)
        Serializer.write(head, into: &bytes)
        connection.output.append(bytes)
        connection.outputGrew()
    }

    private func frame(_ head: inout ResponseHead, _ body: AnswerLength, _ connection: Connection) {
        let isTunnel = request.method == .connect && 200..<300 ~= head.status
        let allowsContent = head.status >= 200 && head.status != 204 && head.status != 304 && !isTunnel
        head.fields.remove(.transferEncoding)
        head.fields.remove(.connection)
        head.fields.remove(.keepAlive)
        if !allowsContent, head.status != 304 { head.fields.remove(.contentLength) }
        switch (allowsContent, request.method == .head, body) {
        case (false, _, _), (_, true, .none), (_, true, .unknown): coding = .none
        case (_, true, .known(let length)): head.fields.set(.contentLength, String(length))
        case (_, _, .none):
            head.fields.set(.contentLength, "0")
            coding = .length(left: 0)
        case (_, _, .known(let length)):
            head.fields.set(.contentLength, String(length))
            coding = .length(left: length)
        case (_, _, .unknown):
            head.fields.remove(.contentLength)
            if request.version == .http11 {
                head.fields.set(.transferEncoding, "chunked")
                coding = .chunked
            } else {
                coding = .untilClose
                connection.keepAlive = false
            }
        }
        // What follows a refused CONNECT may be meant for the tunnel: it must never be read as a request.
        let isRefusedTunnel = request.method == .connect && !isTunnel
        if knownBody?.forbidsReuse == true || context.isDraining || isRefusedTunnel { connection.keepAlive = false }
        if !isTunnel {
            if !connection.keepAlive {
                head.fields.append(.connection, "close")
            } else if request.version == .http10 {
                head.fields.append(.connection, "keep-alive")
            }
        }
        if !head.fields.contains(.date) { head.fields.append(.date, context.dateText()) }
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
        guard let connection, state == .body else { throw ClientGone() }
        switch piece {
        case .bytes(let chunk, let range):
            enclose(range.count) { connection.output.append(chunk, range.prefix($0)) }
        case .file(let file, let offset, let count):
            enclose(count) { connection.output.append(.file(file, offset: offset, count: $0)) }
        }
        // The connection may have ended while it was written to.
        guard let connection = self.connection else { throw ClientGone() }
        return connection.output.count <= OutputQueue.highWatermark
    }

    /// Queues bytes and waits while more than 256 KiB are queued.
    /// - Throws: `ClientGone` when nothing can be sent any more.
    package func send(_ bytes: [UInt8]) async throws(ClientGone) {
        guard state == .body else { throw ClientGone() }
        queue(bytes)
        try await waitForRoom()
    }

    func queue(_ bytes: [UInt8]) {
        enclose(bytes.count) { count in
            connection?.output.append(count == bytes.count ? bytes : Array(bytes[..<count]))
        }
    }

    /// Adds what the framing wants around `count` bytes, and drops what a declared length does not cover.
    func enclose(_ count: Int, _ append: (Int) -> Void) {
        guard count > 0, let connection else { return }
        switch coding {
        case .none: return
        case .length(let left):
            let allowed = Int(min(left, Int64(count)))
            coding = .length(left: left - Int64(allowed))
            bodyBytes += allowed
            append(allowed)
        case .chunked:
            var head: [UInt8] = []
            Serializer.chunkHeader(count, into: &head)
            connection.output.append(head)
            append(count)
            connection.output.append([0x0D, 0x0A])
            bodyBytes += count
        case .untilClose:
            append(count)
            bodyBytes += count
        }
        connection.outputGrew()
    }

    /// Waits while more than so many bytes are queued.
    func waitForRoom(atMost limit: Int = OutputQueue.highWatermark) async throws(ClientGone) {
        while let connection, connection.output.count > limit {
            await withUnsafeContinuation { (continuation: UnsafeContinuation<Void, Never>) in
                roomWaiter = continuation
            }
        }
        if connection == nil { throw ClientGone() }
    }

    /// The connection has written some of what is queued.
    func roomMade(_ queued: Int) {
        guard queued <= OutputQueue.lowWatermark else { return }
        relay?.roomMade()
        guard let waiter = roomWaiter else { return }
        roomWaiter = nil
        waiter.resume()
    }

    // MARK: - The end

    /// The answer is complete. Where fewer bytes were sent than declared it is cut instead.
    package func finish(trailers: Fields = Fields()) {
        guard state == .body, let connection else { return }
        switch coding {
        case .length(let left) where left > 0: return fail()
        case .chunked:
            var bytes: [UInt8] = []
            Serializer.lastChunk(trailers: trailers, into: &bytes)
            connection.output.append(bytes)
        case .none, .length, .untilClose: break
        }
        state = .finished
        connection.answerEnded()
    }

    /// Cuts the answer: the client cannot take what it has for complete.
    package func fail() {
        guard state == .open || state == .body, let connection else { return }
        var resets = state == .open
        if case .untilClose = coding { resets = true }
        state = .failed
        connection.cutAnswer(resets: resets)
    }

    /// The handler has returned: what it left open is ended.
    func handlerReturned() {
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
        connection = nil
        let relay = relay
        self.relay = nil
        if state == .open || state == .body {
            state = .failed
            isClientGone = true
            task?.cancel()
            relay?.clientLeft()
        }
        let waiter = roomWaiter
        roomWaiter = nil
        waiter?.resume()
        knownBody?.detach(.clientGone)
    }
}

@available(*, unavailable) extension Exchange: Sendable {}

extension Exchange {
    /// How the body goes out.
    enum Coding {
        /// HEAD, 204, 304 and the like: what is sent is dropped.
        case none
        case length(left: Int64)
        case chunked
        case untilClose
    }
}
