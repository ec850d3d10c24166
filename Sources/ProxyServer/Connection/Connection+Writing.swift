// From answers to the socket: what a connection does for the exchange under way, the queue behind it, and what follows
// a complete answer.

import CacheStore
import EventLoop
import Glibc
import HTTPWire

extension Connection: HotSender {
    /// A body up to here is copied behind its head: the kernel takes one buffer with less ado than several.
    private static let oneBufferLimit = 4 << 10

    // MARK: - The hot path

    package var dateText: String { context.dateText() }

    package func sendAtOnce(
        prepared: UnsafeRawBufferPointer,
        dynamic: UnsafeRawBufferPointer,
        body: HotBody,
        owner: Unmanaged<AnyObject>,
        record: HotRecord
    ) -> HotAnswer {
        guard state.phase == .waiting, output.isEmpty else { return .refused }
        let end = HTTP1Framing.headEnd(to: version, keepAlive: state.keepAlive)
        let bodyCount = body.count
        if mayJoin(bodyCount), let bytes = body.bytes, context.joined.append(prepared, dynamic, end, bytes) {
            hasJoined = true
            recordHot(record, bodyBytes: bodyCount)
            return .sent
        }
        flushJoined()
        let headCount = prepared.count + dynamic.count + end.count
        let file = body.filePart(copiesMemory: output.copiesMemory)
        let bytes = file == nil ? body.bytes : nil
        // What the socket did not take of the answers before this one goes first.
        var result = output.isEmpty ? write(prepared, dynamic, end, bytes) : .wouldBlock
        var written = result.count
        if let file, written == headCount {
            let count = min(bodyCount, OutputQueue.callLimit)
            result = transport.sendFile(file.descriptor, offset: file.offset, count: count)
            written += result.count
        }
        sent &+= UInt64(written)
        context.counters.add(.bytesOut, UInt64(written))
        if written == headCount + bodyCount {
            recordHot(record, bodyBytes: bodyCount)
            return .sent
        }
        // The caller holds it now, the queue and the record from here on.
        let owner = owner.takeUnretainedValue()
        queueRest(prepared, dynamic, end, written: written)
        output.append(body.rest(after: max(0, written - headCount), owner: owner))
        var entry = records.borrowedEntry(record, HotRequest(parser, buffer: input.bytes, of: client))
        entry.own()
        pendingHot = PendingHot(
            entry: entry,
            kind: record.kind,
            bodyBytes: bodyCount,
            owner: owner
        )
        // A file that has become shorter than its body can only be cut.
        if result.isFailure { return .broken }
        if written < headCount + min(bodyCount, OutputQueue.callLimit) {
            state.isBlocked = true
        } else {
            context.runSoon(self)
        }
        return .queued
    }

    /// Writes the parts of an answer; no body means that it follows from a file. The caller and the
    /// owner keep the bytes alive.
    private func write(
        _ prepared: UnsafeRawBufferPointer,
        _ dynamic: UnsafeRawBufferPointer,
        _ end: UnsafeRawBufferPointer,
        _ body: UnsafeRawBufferPointer?
    ) -> IOResult {
        // The end of the connection leaves together with its last answer.
        let isLast = !state.keepAlive
        if let body, body.count <= Self.oneBufferLimit, !isLast,
            let result = context.writeJoined(prepared, dynamic, end, body, to: transport)
        {
            return result
        }
        return withUnsafeTemporaryAllocation(of: iovec.self, capacity: 4) { vectors in
            // The vectors live on the stack.
            vectors[0] = iovec(prepared)
            vectors[1] = iovec(dynamic)
            vectors[2] = iovec(end)
            guard let body else { return write(vectors.baseAddress, 3, isFollowed: true) }
            let isWhole = body.count <= OutputQueue.callLimit
            vectors[3] = iovec(body.part(0..<min(body.count, OutputQueue.callLimit)))
            return write(vectors.baseAddress, body.isEmpty ? 3 : 4, isFollowed: isLast && isWhole)
        }
    }

    // The vectors are valid during the call.
    private func write(_ vectors: UnsafeMutablePointer<iovec>?, _ count: Int, isFollowed: Bool = false) -> IOResult {
        guard let vectors else { return .wouldBlock }
        return transport.write(vectors, count: count, isFollowed: isFollowed)
    }

    /// Queues the unsent rest of a head.
    private func queueRest(
        _ prepared: UnsafeRawBufferPointer,
        _ dynamic: UnsafeRawBufferPointer,
        _ end: UnsafeRawBufferPointer,
        written: Int
    ) {
        var skip = written
        if skip < prepared.count { output.append(Array(prepared), from: skip) }
        skip = max(0, skip - prepared.count)
        let rest = Array(dynamic) + Array(end)
        if skip < rest.count { output.append(rest, from: skip) }
    }

    /// A complete answer of the hot path: nothing is allocated.
    private func recordHot(_ record: HotRecord, bodyBytes: Int) {
        guard records.isRecorded else { return }
        let now = Monotonic.now()
        let took = now &- requestBegan
        waitingSince = now
        context.counters.answers.addWhole(record.kind, bytes: bodyBytes, took: took)
        guard context.isTelling else { return }
        var entry = records.borrowedEntry(record, HotRequest(parser, buffer: input.bytes, of: client))
        entry.bytes = bodyBytes
        entry.duration = took
        records.tell(entry, record.kind)
    }

    // MARK: - Answers put together

    /// A longer body is not copied into the buffer, but written from where it is, after the buffer's bytes.
    static let joinLimit = 16 << 10

    /// Whether the answer to the request under way may wait for those behind it in the buffer.
    func mayJoin(_ bodyCount: Int) -> Bool {
        (isFollowed || hasJoined) && bodyCount <= Self.joinLimit && state.keepAlive
    }

    /// Sends the joined answers; bytes that the socket does not take are queued, ahead of later output.
    func flushJoined() {
        guard hasJoined else { return }
        hasJoined = false
        let joined = context.joined
        defer { joined.removeAll() }
        guard !state.isOver else { return }
        let bytes = joined.bytes
        var written = 0
        switch transport.write(bytes) {
        case .bytes(let count): written = count
        case .wouldBlock: break
        // The next write or read finds the connection gone.
        case .end, .truncated, .failed: return
        }
        sent &+= UInt64(written)
        context.counters.add(.bytesOut, UInt64(written))
        guard written < bytes.count else { return }
        output.append(Array(bytes[written...]))
        state.isBlocked = true
    }

    // MARK: - The queue

    /// Called when output was queued: much of it is written now, little of it at the end of this turn with the rest.
    func outputGrew() {
        guard !state.isBlocked, !output.isEmpty else { return }
        if output.count >= 64 << 10 { flush() } else { context.flushSoon(self) }
    }

    func noteWritten(since before: UInt64) { noteWritten(Int(output.written &- before)) }

    func noteWritten(_ written: Int) {
        guard written > 0 else { return }
        sent &+= UInt64(written)
        context.counters.add(.bytesOut, UInt64(written))
        waitingSince = Monotonic.coarse()
    }

    func flush() {
        guard state.mayWrite else { return }
        let before = output.written
        let outcome = output.write(to: transport, limit: OutputQueue.callLimit)
        noteWritten(since: before)
        switch outcome {
        case .failed: return clientLeft()
        case .drained:
            state.isBlocked = false
            drained()
        case .blocked:
            if !state.isBlocked { waitingSince = Monotonic.coarse() }
            state.isBlocked = true
            current?.roomMade(output.count)
        case .limited:
            state.isBlocked = false
            context.runSoon(self)
        }
        updateInterest()
    }

    private func drained() {
        if state.phase == .answering {
            current?.roomMade(0)
        } else if state.phase == .flushing {
            answerDone()
        }
    }

    /// The exchange has queued its last byte.
    func answerEnded() {
        guard state.answerEnded() else { return }
        waitingSince = Monotonic.coarse()
        flush()
    }

    // MARK: - After an answer

    /// The last byte of the answer has been written.
    private func answerDone() {
        finishRecord(isAborted: current?.state == .failed)
        var unread = ConnectionState.Unread.nothing
        if let body = current?.knownBody, !body.isComplete {
            unread = body.mayBeDrained(limit: RequestBody.unreadLimit) ? .little : .much
        }
        let exchange = current
        current = nil
        exchange?.connectionEnded()
        let action = state.answerWritten(
            unread: unread,
            hasInput: !input.isEmpty,
            isDraining: context.endsIdle
        )
        if action != .drain {
            content = nil
        } else {
            leftoverBudget = RequestBody.unreadLimit
            waitingSince = Monotonic.coarse()
        }
        perform(action)
    }
}

extension IOResult {
    /// Bytes that were written.
    var count: Int { if case .bytes(let count) = self { count } else { 0 } }

    /// Nothing more can be written.
    fileprivate var isFailure: Bool {
        switch self {
        case .bytes, .wouldBlock: false
        case .end, .truncated, .failed: true
        }
    }
}

extension iovec {
    /// The buffer must outlive every use of the vector.
    fileprivate init(_ bytes: UnsafeRawBufferPointer) {
        self.init(iov_base: UnsafeMutableRawPointer(mutating: bytes.baseAddress), iov_len: bytes.count)
    }
}

// MARK: - For the exchange under way

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

    func send(_ part: BrokenPart) {
        state.keepAlive = false
        if case .surplus(let piece) = part { output.append(piece) } else { output.append(HTTP1Framing.bytes(of: part)) }
        outputGrew()
    }

    func pass(_ bytes: UnsafeRawBufferPointer) {
        var isLast = false
        if let left = framing.lengthLeft { isLast = left <= Int64(bytes.count) }
        frameContent(bytes.count) { pass(bytes.part(0..<$0), isLast: isLast) }
    }

    func splice(_ count: Int, from source: SpliceSource) -> IOResult? {
        guard let left = framing.lengthLeft, left >= Int64(count), let pipe = freePipe,
            let result = source.fill(pipe, count: min(count, OutputQueue.highWatermark))
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

    /// The tunnel keeps the connection's slot and its log line to the end.
    func detach(unsent: [UInt8]) -> DetachedTransport? {
        guard !state.isOver, let exchange = current else { return nil }
        let received = Array(input.bytes)
        var waitedFor = WaitedFor(kind: .tunnel, client: client.name, since: exchange.startedAt)
        waitedFor.request = WaitedFor.text(exchange.request.method.name, .string(exchange.request.target))
        _ = state.end(.taken)
        letGo()
        context.remove(self)
        func record(_ sent: Int) {
            records.record(exchange, AnswerExtent(bytes: sent, unsent: 0, began: requestBegan), isAborted: false)
        }
        return DetachedTransport(transport, received: received, unsent: unsent, waitedFor: waitedFor) {
            [self] sent, error in
            if let error { exchange.outcome.error = error }
            record(sent)
            leaveLoop()
        } handedOver: { [self] in
            record(0)
            context.counters.add(.connectionsClosed)
            return client
        }
    }

    // MARK: - The client

    func endWithClient() { if state.sawEnd { context.runSoon(self) } }

    // MARK: - The request's body

    /// The bytes are no acceptable body; no request can follow them.
    func refuseContent(_ error: WireError) {
        state.keepAlive = false
        context.counters.add(.errorWire)
        tell(.malformed, error)
    }
}
