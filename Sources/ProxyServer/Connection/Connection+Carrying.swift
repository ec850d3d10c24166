// What a connection does for the exchange under way: heads, content and ends as HTTP/1.1 has them, and
// the bytes of the request.

import CacheStore
import EventLoop
import HTTPWire

extension Connection: ExchangeCarrier {
    var queuedBytes: Int { output.count }

    // MARK: - Heads

    func sendInterim(_ head: ResponseHead) {
        var bytes: [UInt8] = []
        Serializer.write(head, into: &bytes)
        output.append(bytes)
        outputGrew()
    }

    func sendHead(_ head: ResponseHead, body: AnswerLength, to request: RequestHead, isReusable: Bool) {
        var head = head
        if head.status != 101 {
            if !isReusable || context.isDraining { state.keepAlive = false }
            framing = HTTP1Framing(&head, body, to: request.method, request.version, keepAlive: &state.keepAlive)
            if !head.fields.contains(.date) { head.fields.append(.date, context.dateText()) }
        }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(head.fields.wireLength + 64)
        Serializer.write(head, into: &bytes)
        output.append(bytes)
        outputGrew()
    }

    func forwardHead(
        _ head: ResponseHead,
        length: Int64,
        _ lines: ForwardedLines,
        to version: HTTPVersion,
        isReusable: Bool,
        hasContent: Bool
    ) {
        framing = HTTP1Framing(length: length)
        if !isReusable || context.isDraining { state.keepAlive = false }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(lines.statusLine.count + head.fields.wireLength + lines.bytes.count + 64)
        bytes.append(contentsOf: lines.statusLine)
        head.fields.forEachRun(without: Self.ofConnection) { bytes.append(contentsOf: $0) }
        bytes.append(contentsOf: lines.bytes)
        bytes.append(contentsOf: HTTP1Framing.headEnd(to: version, keepAlive: state.keepAlive))
        output.append(bytes)
        if !hasContent { outputGrew() }
    }

    private static let ofConnection = FieldSet(.connection, .keepAlive)

    func sendContinue() {
        guard state.phase == .answering, current?.isHeadSent == false else { return }
        output.append(Array("HTTP/1.1 100 Continue\r\n\r\n".utf8))
        flush()
    }

    // MARK: - Content

    func send(_ piece: BodyPiece) {
        switch piece {
        case .bytes(let chunk, let range):
            frameContent(range.count) { output.append(chunk, range.prefix($0)) }
        case .file(let file, let offset, let count):
            frameContent(count) { output.append(.file(file, offset: offset, count: $0)) }
        }
    }

    func send(_ bytes: [UInt8]) {
        frameContent(bytes.count) { count in output.append(count == bytes.count ? bytes : Array(bytes[..<count])) }
    }

    func sendUnframed(_ piece: BodyPiece) {
        state.keepAlive = false
        output.append(piece)
        outputGrew()
    }

    func pass(_ bytes: UnsafeRawBufferPointer) {
        var isLast = false
        if let left = framing.lengthLeft { isLast = left <= Int64(bytes.count) }
        frameContent(bytes.count) { pass(bytes.part(0..<$0), isLast: isLast) }
    }

    func splice(_ count: Int, from socket: Int32) -> IOResult? {
        guard let left = framing.lengthLeft, left >= Int64(count), let pipe = freePipe,
            let result = pipe.fill(from: socket, count: min(count, OutputQueue.highWatermark))
        else { return nil }
        if case .bytes(let moved) = result {
            _ = framing.frameContent(moved)
            pass(moved, outOf: pipe)
        }
        return result
    }

    /// Frames `count` bytes of content, and drops bytes beyond the declared length.
    private func frameContent(_ count: Int, _ append: (Int) -> Void) {
        switch framing.frameContent(count) {
        case .nothing: return
        case .content(let allowed): append(allowed)
        case .chunk(let head):
            output.append(head)
            append(count)
            output.append([0x0D, 0x0A])
        }
        outputGrew()
    }

    /// Sends a part of a forwarded answer. A large part is written without a copy, after the queued bytes, and the rest
    /// is queued. This may end the connection.
    /// - Parameter isLast: no part follows that a small one could be written together with.
    private func pass(_ bytes: UnsafeRawBufferPointer, isLast: Bool) {
        guard isLast || bytes.count >= OutputQueue.copyLimit, state.phase == .answering, !state.isBlocked else {
            return output.append(copying: bytes)
        }
        let before = output.written
        let (outcome, taken) = output.write(to: transport, followedBy: bytes)
        noteWritten(since: before)
        // Bytes are queued after a failure, too, so that the access log does not count them as sent.
        if taken < bytes.count { output.append(copying: bytes.part(taken..<bytes.count)) }
        if outcome == .failed { return clientLeft() }
        guard outcome == .blocked, taken < bytes.count else { return }
        state.isBlocked = true
        waitingSince = Monotonic.coarse()
        updateInterest()
    }

    /// The loop's pipe, for splicing to the client; nil while other output is queued, or if the loop has no pipe.
    private var freePipe: SocketPipe? {
        state.phase == .answering && !state.isBlocked && output.isEmpty && transport.takesPipes ? context.pipe : nil
    }

    /// Sends the bytes in the pipe, and queues those that the socket does not take. This may end the connection.
    private func pass(_ count: Int, outOf pipe: SocketPipe) {
        var left = count
        var last = IOResult.wouldBlock
        repeat {
            last = transport.empty(pipe, count: left)
            left -= last.count
        } while left > 0 && last.count > 0
        noteWritten(count - left)
        context.counters.add(.bytesSpliced, UInt64(count - left))
        guard left > 0 else { return }
        let rest = pipe.read(left)
        // Bytes are queued after a failure, too, so that the access log does not count them as sent.
        output.append(rest)
        if rest.count < left { context.dropPipe() }
        guard last == .wouldBlock, rest.count == left else { return clientLeft() }
        state.isBlocked = true
        waitingSince = Monotonic.coarse()
        updateInterest()
    }

    // MARK: - The end of an answer

    var isWhole: Bool { framing.isWhole }

    func finish(trailers: Fields) {
        output.append(framing.end(trailers: trailers))
        answerEnded()
    }

    func abort(_ kind: ExchangeAbort) {
        guard kind == .close else { return cutAnswer(resets: kind == .reset || framing.endsWithConnection) }
        state.keepAlive = false
        answerEnded()
    }

    func takeUnsent() -> [UInt8]? {
        flush()
        return state.isOver ? nil : output.takeBytes()
    }

    /// The tunnel keeps the connection's place and its log line to the end.
    func detach(unsent: [UInt8]) -> DetachedTransport? {
        guard !state.isOver, let exchange = current else { return nil }
        let received = Array(input.bytes)
        var waitedFor = WaitedFor(kind: .tunnel, client: records.client, since: exchange.startedAt)
        waitedFor.request = WaitedFor.text(exchange.request.method.name, .string(exchange.request.target))
        _ = state.end(.taken)
        letGo()
        context.remove(self)
        return DetachedTransport(transport, received: received, unsent: unsent, waitedFor: waitedFor) {
            [self] sent, error in
            if let error { exchange.outcome.error = error }
            let extent = AnswerExtent(bytes: sent, unsent: 0, began: requestBegan)
            records.record(exchange, extent, isAborted: false)
            releasePlace()
        }
    }

    // MARK: - The client

    func endWithClient() { if state.sawEnd { context.runSoon(self) } }

    func keep(_ outgoing: OutgoingFields) { lastOutgoing = parser.pointee.keepsFields ? outgoing : nil }

    // MARK: - The request's body

    var sawEnd: Bool { state.sawEnd }

    func inputChanged() { updateInterest() }

    func endsWithoutRest() { context.runSoon(self) }

    func refused(_ error: WireError) {
        state.keepAlive = false
        context.counters.add(.errorWire)
        tell(.malformed, error)
    }
}
