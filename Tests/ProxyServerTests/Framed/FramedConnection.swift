// The second carrier: a connection that carries several exchanges at once in frames. It stands for HTTP/2, and shows that
// nothing above it knows of HTTP/1.1.

import CacheStore
import EventLoop
import HTTPWire
import ServiceCore

@testable import ProxyServer

/// Loop-bound. An end of the client's side ends whatever is under way, as there is no half of it.
final class FramedConnection: ClientConnection, IOHandler {
    /// What the clients of exchanges may send before somebody pulls it.
    private static let window = 64 << 10

    let output: OutputQueue
    private let input: ReadBuffer
    private var received: [UInt8] = []
    private var streams: [UInt32: FramedStream] = [:]
    /// Their last byte is queued.
    private var ended: [FramedStream] = []
    /// The head of the request that is read now.
    let head: DecodedHead
    private var isBlocked = false
    private var isOver = false

    init(on loop: isolated EventLoop, _ parts: ConnectionParts) {
        output = OutputQueue(copiesMemory: parts.transport.copiesMemory)
        input = ReadBuffer(pool: parts.context.blocks)
        head = DecodedHead(limit: parts.context.settings.head.head)
        super.init(on: loop, parts, carriage: .http2)
        transport.begin(on: loop, self)
        joinLoop()
        updateInterest()
    }

    // MARK: - Reading

    func ready(_ readiness: IOReadiness) { if readiness == .write { flush() } else { read() } }

    private func read() {
        switch input.read(from: transport) {
        case .bytes(let count):
            context.counters.add(.bytesIn, UInt64(count))
            received += input.bytes
            input.release()
            process()
        case .wouldBlock: updateInterest()
        case .end, .truncated, .failed: close()
        }
    }

    private func process() {
        while !isOver, let frame = Frame(received) {
            received.removeFirst(Frame.headLength + frame.content.count)
            take(frame)
        }
        updateInterest()
    }

    private func take(_ frame: Frame) {
        let stream = streams[frame.number]
        switch frame.kind {
        case .ask, .post: begin(frame)
        case .content: stream?.arrived(frame.content)
        case .end: stream?.contentEnded(FramedHead(frame.content))
        case .reset: if let stream { end(stream, isAborted: true) }
        case .head, .interim, .garbage: close()
        }
    }

    private func begin(_ frame: Frame) {
        let asked = FramedHead(frame.content)
        let parts = asked.first.split(separator: " ").map(String.init)
        guard parts.count == 2, streams[frame.number] == nil, keep(asked, Method(parts[0]), parts[1]) else {
            return close()
        }
        let stream = FramedStream(frame.number, of: self)
        streams[frame.number] = stream
        let hasContent = frame.kind == .post
        let request = HotRequest(head, of: client, isBare: !hasContent)
        if request.isBare {
            let answer = handler.answerSynchronously(request, through: stream)
            if answer != .notMine { return }
        }
        guard let target = try? RequestTarget.parse(parts[1], method: Method(parts[0])) else { return close() }
        let length = asked.fields.first { $0.name == "Content-Length" }.flatMap { UInt64($0.value) }
        let framing = !hasContent ? BodyFraming.none : length.map { .length($0) } ?? .chunked
        let expects = asked.fields.contains { $0.name == "Expect" }
        stream.begin(head.head, target, framing, expectsContinue: expects, by: handler)
    }

    private func keep(_ asked: FramedHead, _ method: Method, _ target: String) -> Bool {
        let lines = asked.fields.map { (Array($0.name.utf8), Array($0.value.utf8)) }
        guard Array(target.utf8).withUnsafeBytes({ head.begin(method, target: $0) }) else { return false }
        return lines.allSatisfy { name, value in
            name.withUnsafeBytes { name in value.withUnsafeBytes { head.append(name, $0) } }
        }
    }

    /// Watches for what is wanted, and reads nothing while content waits that nobody pulls.
    func updateInterest() {
        guard !isOver else { return }
        let mayRead = streams.values.allSatisfy { $0.waiting < Self.window }
        transport.watch(IOReadiness(read: mayRead, write: isBlocked))
        if mayRead, transport.readsAhead, transport.hasPending { context.runSoon(self) }
    }

    // MARK: - Writing

    func send(_ frame: Frame) {
        output.append(frame.bytes)
        outputGrew()
    }

    func outputGrew() { if !isBlocked, !isOver { context.flushSoon(self) } }

    override func runAgain() {
        flush()
        if !isOver, transport.readsAhead, transport.hasPending { read() }
    }

    private func flush() {
        guard !isOver else { return }
        let before = output.written
        let outcome = output.write(to: transport, limit: OutputQueue.callLimit)
        context.counters.add(.bytesOut, output.written &- before)
        isBlocked = outcome == .blocked
        switch outcome {
        case .failed: return close()
        case .limited: context.runSoon(self)
        case .drained, .blocked: break
        }
        for stream in Array(streams.values) { stream.exchange?.roomMade(output.count) }
        if outcome == .drained {
            for stream in ended { end(stream, isAborted: stream.isCut) }
            ended = []
            if streams.isEmpty, context.isDraining || isTold { close() }
        }
        updateInterest()
    }

    /// The last byte of an answer is queued.
    func answerEnded(_ stream: FramedStream) {
        ended.append(stream)
        outputGrew()
    }

    // MARK: - Ends

    private func end(_ stream: FramedStream, isAborted: Bool) {
        guard streams.removeValue(forKey: stream.number) != nil else { return }
        stream.end(isAborted: isAborted)
        updateInterest()
    }

    private func close() {
        guard !isOver else { return }
        isOver = true
        transport.stop()
        input.release()
        for stream in Array(streams.values) { end(stream, isAborted: true) }
        transport.close(resets: false)
        leaveLoop()
    }

    /// It was told why it is not admitted.
    private var isTold = false

    override func turnAway(_ problem: Problem) {
        isTold = true
        send(Frame(kind: .head, number: 0, content: FramedHead("\(problem.status) \(problem.title)").bytes))
    }

    override func drainBegan() { if streams.isEmpty { close() } }

    override var waitedFor: WaitedFor? {
        streams.isEmpty ? nil : WaitedFor(kind: .request, client: client.name, since: 0)
    }

    override func cut() { close() }
}

// MARK: - One exchange

/// Loop-bound, held by its connection until its last byte is written.
final class FramedStream: ExchangeCarrier, RequestContent, HotSender {
    let number: UInt32
    private let connection: FramedConnection
    private(set) var exchange: Exchange?
    private(set) var isCut = false
    private var isOver = false
    /// Bytes of content sent, and what is left of a length that was announced.
    private var sent = 0
    private var left: Int64?
    private var allowsContent = true

    init(_ number: UInt32, of connection: FramedConnection) {
        self.number = number
        self.connection = connection
    }

    func begin(
        _ head: RequestHead,
        _ target: RequestTarget,
        _ framing: BodyFraming,
        expectsContinue: Bool,
        by handler: any ExchangeHandler
    ) {
        let body = framing == .none ? nil : RequestBody(self, framing, expectsContinue: expectsContinue)
        let exchange = Exchange(
            id: connection.context.nextExchange(),
            request: head,
            target: target,
            framing: framing,
            body: body,
            carrier: self,
            of: connection.client,
            startedAt: Monotonic.now(),
            in: connection.context
        )
        self.exchange = exchange
        if handler.passThrough(exchange) { return }
        DelayedExchange.begin(exchange, after: 0, by: handler)
    }

    func end(isAborted: Bool) {
        guard !isOver else { return }
        isOver = true
        let exchange = exchange
        self.exchange = nil
        guard let exchange else { return }
        let extent = AnswerExtent(bytes: sent, unsent: 0, began: exchange.startedAt)
        connection.records.record(exchange, extent, isAborted: isAborted || exchange.state == .failed)
        exchange.connectionEnded()
    }

    // MARK: - The request's content

    private var content: [UInt8] = []
    private(set) var isComplete = false
    private(set) var trailers = Fields()
    private var hasAll = false

    var waiting: Int { content.count }

    func arrived(_ bytes: [UInt8]) {
        content += bytes
        exchange?.knownBody?.inputArrived()
    }

    func contentEnded(_ trailers: FramedHead) {
        hasAll = true
        for (name, value) in trailers.fields { self.trailers.append(name, value) }
        isComplete = content.isEmpty
        exchange?.knownBody?.inputArrived()
    }

    func read(into target: UnsafeMutableRawBufferPointer) throws(WireError) -> Int {
        let count = min(content.count, target.count)
        target.copyBytes(from: content[..<count])
        content.removeFirst(count)
        isComplete = hasAll && content.isEmpty
        connection.updateInterest()
        return count
    }

    var hasArrived: Bool { hasAll || !content.isEmpty }
    var sawEnd: Bool { isOver }
    func readMore() { connection.updateInterest() }
    func endsWithoutRest() {}
    func sendContinue() { sendInterim(ResponseHead(status: 100)) }

    // MARK: - The answer

    var queuedBytes: Int { connection.output.count }

    private func send(_ kind: Frame.Kind, _ status: Int, _ fields: Fields) {
        let head = FramedHead("\(status)", fields.lines.map { ($0.name, $0.value) })
        connection.send(Frame(kind: kind, number: number, content: head.bytes))
    }

    func sendInterim(_ head: ResponseHead) { send(.interim, head.status, head.fields) }

    func sendHead(_ head: ResponseHead, body: AnswerLength, to request: RequestHead, isReusable: Bool) {
        var fields = head.fields
        allowsContent = request.method != .head && head.status != 204 && head.status != 304
        switch body {
        case .known(let length):
            if head.status != 204, head.status != 304 { fields.set(.contentLength, String(length)) }
            left = length
        case .none: if allowsContent { fields.set(.contentLength, "0") }
        case .unknown: fields.remove(.contentLength)
        }
        if !allowsContent { left = nil }
        if !fields.contains(.date) { fields.append(.date, connection.context.dateText()) }
        send(.head, head.status, fields)
    }

    func forwardHead(
        _ head: ResponseHead,
        length: Int64,
        _ lines: ForwardedLines,
        to version: HTTPVersion,
        isReusable: Bool,
        hasContent: Bool
    ) {
        var fields = head.fields
        for field in [KnownField.connection, .keepAlive] { fields.remove(field) }
        lines.bytes.withUnsafeBytes { bytes in
            bytes.forEachFieldLine { name, value, _ in fields.append(nameBytes: name, valueBytes: value) }
        }
        left = length
        send(.head, head.status, fields)
    }

    /// What of so many bytes may be sent.
    private func allowed(_ count: Int) -> Int {
        guard allowsContent else { return 0 }
        let allowed = left.map { Int(min($0, Int64(count))) } ?? count
        left = left.map { $0 - Int64(allowed) }
        sent += allowed
        return allowed
    }

    func send(_ piece: BodyPiece) {
        var piece = piece
        switch piece {
        case .bytes(let chunk, let range): piece = .bytes(chunk, range.prefix(allowed(range.count)))
        case .file(let file, let offset, let count): piece = .file(file, offset: offset, count: allowed(count))
        }
        frame(piece)
    }

    /// Longer pieces are longer frames here: what they lie in is sent from where it is.
    private func frame(_ piece: BodyPiece) {
        guard piece.count > 0 else { return }
        connection.output.append(Frame.head(.content, number, piece.count))
        connection.output.append(piece)
        connection.outputGrew()
    }

    func send(_ bytes: [UInt8]) {
        let count = allowed(bytes.count)
        if count > 0 { connection.send(Frame(kind: .content, number: number, content: Array(bytes[..<count]))) }
    }

    func send(_ part: BrokenPart) {
        isCut = true
        connection.send(Frame(kind: .garbage, number: number))
    }

    func pass(_ bytes: UnsafeRawBufferPointer) { send(Array(bytes)) }

    var isWhole: Bool { (left ?? 0) <= 0 }

    func finish(trailers: Fields) {
        let lines = FramedHead("", trailers.lines.map { ($0.name, $0.value) })
        connection.send(Frame(kind: .end, number: number, content: trailers.isEmpty ? [] : lines.bytes))
        connection.answerEnded(self)
    }

    func abort(_ kind: ExchangeAbort) {
        isCut = true
        connection.send(Frame(kind: .reset, number: number))
        connection.answerEnded(self)
    }

    /// The connection has other exchanges.
    func takeUnsent() -> [UInt8]? { nil }
    func detach(unsent: [UInt8]) -> DetachedTransport? { nil }

    func endWithClient() {}

    // MARK: - The hot path

    var dateText: String { connection.context.dateText() }

    func sendAtOnce(
        prepared: UnsafeRawBufferPointer,
        dynamic: UnsafeRawBufferPointer,
        body: HotBody,
        owner: Unmanaged<AnyObject>,
        record: HotRecord
    ) -> HotAnswer {
        let text = Array(prepared) + Array(dynamic)
        var fields = Fields()
        let end = text.firstIndex(of: UInt8(ascii: "\n")) ?? 0
        text.withUnsafeBytes { bytes in
            bytes.part(end + 1..<bytes.count).forEachFieldLine { name, value, _ in
                fields.append(nameBytes: name, valueBytes: value)
            }
        }
        send(.head, record.status, fields)
        sent = body.count
        frame(body.rest(after: 0, owner: owner.takeUnretainedValue()))
        connection.send(Frame(kind: .end, number: number))
        let request = HotRequest(connection.head, of: connection.client, isBare: true)
        var entry = connection.records.borrowedEntry(record, request)
        entry.own()
        let extent = AnswerExtent(bytes: sent, unsent: 0, began: Monotonic.now())
        connection.records.record(entry, record.kind, extent, isAborted: false)
        connection.answerEnded(self)
        return .queued
    }
}

@available(*, unavailable) extension FramedStream: Sendable {}
