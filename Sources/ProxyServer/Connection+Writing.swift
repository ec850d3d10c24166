// From answers to the socket: the hot path's one writev, the queue behind it, and what follows a complete answer.

package import CacheStore
import EventLoop
import Glibc
import HTTPWire

extension Connection {
    /// What an unread request body may cost before the connection is closed instead.
    static let unreadBodyLimit = 64 << 10

    // MARK: - The hot path

    /// Answers the request that ``ExchangeHandler/answerAtOnce(_:on:)`` was asked about: one `writev`, no allocation; a
    /// large body follows by one `sendfile`.
    ///
    /// - Parameters:
    ///   - prepared: the status line and field lines, each with its CRLF, without the empty line.
    ///   - dynamic: further field lines, such as Age and Cache-Status; copied where it is needed later. One of the two
    ///     holds Content-Length. Connection and the empty line are added here.
    ///   - body: nil for HEAD and for answers without a body.
    ///   - range: what of `body` is sent.
    ///   - owner: kept until the last byte is written.
    ///   - record: for the access log and the counters.
    package func sendAtOnce(
        prepared: [UInt8],
        dynamic: UnsafeRawBufferPointer,
        body: Chunk?,
        range: Range<Int>,
        owner: AnyObject,
        record: HotRecord = HotRecord()
    ) {
        guard phase == .waiting, output.isEmpty, hotResult == .none else { return }
        let end = headEnd
        let bodyCount = body == nil ? 0 : range.count
        if mayJoin(bodyCount), join(prepared, dynamic, end, bodyCount > 0 ? body : nil, range) {
            hasJoined = true
            hotResult = .complete
            return recordHot(record, bodyBytes: bodyCount)
        }
        flushJoined()
        let headCount = prepared.count + dynamic.count + end.count
        let file = body?.sendable(range)
        // What the socket did not take of the answers before this one goes first.
        var result =
            !output.isEmpty
            ? .wouldBlock
            : withUnsafeTemporaryAllocation(of: iovec.self, capacity: 4) { vectors in
                prepared.withUnsafeBytes { prepared in
                    vectors[0] = iovec(prepared)
                    vectors[1] = iovec(dynamic)
                    vectors[2] = iovec(end)
                    // The vectors live on the stack and point into buffers that the enclosing calls hold, and into the chunk.
                    guard let body, file == nil else { return write(vectors.baseAddress, 3, isBeforeFile: file != nil) }
                    return withExtendedLifetime(body) {
                        let part = body.bytes.part(range)
                        vectors[3] = iovec(part.part(0..<min(part.count, OutputQueue.callLimit)))
                        return write(vectors.baseAddress, 4)
                    }
                }
            }
        if let file, result == .bytes(headCount) { result = Self.send(file, range, after: headCount, to: descriptor) }
        let written: Int
        switch result {
        case .bytes(let count): written = count
        case .wouldBlock: written = 0
        case .end, .failed:
            hotResult = .broken
            return
        }
        sent &+= UInt64(written)
        context.counters.add(.bytesOut, UInt64(written))
        guard written < headCount + bodyCount else {
            hotResult = .complete
            return recordHot(record, bodyBytes: bodyCount)
        }
        hotResult = .pending
        // A log may be switched on before the last byte is out.
        if requestBegan == 0 { requestBegan = Monotonic.now() }
        queueRest(prepared, dynamic, end, body, range, written: written)
        pendingHot = PendingHot(
            entry: hotEntry(record),
            cache: record.cache,
            bodyBytes: bodyCount,
            owner: owner
        )
        if written < headCount + min(bodyCount, OutputQueue.callLimit) {
            isBlocked = true
        } else {
            context.runSoon(self)
        }
    }

    private func join(
        _ prepared: [UInt8],
        _ dynamic: UnsafeRawBufferPointer,
        _ end: UnsafeRawBufferPointer,
        _ body: Chunk?,
        _ range: Range<Int>
    ) -> Bool {
        prepared.withUnsafeBytes { prepared in
            // The chunk's bytes are valid as long as it is held, which the caller does.
            context.joined.append(
                prepared,
                dynamic,
                end,
                body.map { $0.bytes.part(range) } ?? UnsafeRawBufferPointer(start: nil, count: 0)
            )
        }
    }

    // The vectors are valid during the call.
    private func write(_ vectors: UnsafeMutablePointer<iovec>?, _ count: Int, isBeforeFile: Bool = false) -> IOResult {
        guard let vectors else { return .wouldBlock }
        return Socket.write(descriptor, vectors, count: count, isBeforeFile: isBeforeFile)
    }

    /// What head and body came to, once all of the head is out.
    private static func send(
        _ file: MemoryFile,
        _ range: Range<Int>,
        after headCount: Int,
        to descriptor: Int32
    ) -> IOResult {
        let count = min(range.count, OutputQueue.callLimit)
        switch Socket.sendFile(descriptor, file: file.descriptor, offset: Int64(range.lowerBound), count: count) {
        case .bytes(let sent): return .bytes(headCount + sent)
        case .wouldBlock: return .bytes(headCount)
        case .end: return .end
        case .failed(let code): return .failed(code)
        }
    }

    /// The last lines of a head: Connection where it says something, and the empty line.
    private var headEnd: UnsafeRawBufferPointer {
        let text: StaticString =
            switch (keepAlive, version) {
            case (true, .http11): "\r\n"
            case (true, .http10): "Connection: keep-alive\r\n\r\n"
            case (false, _): "Connection: close\r\n\r\n"
            }
        // A literal of more than one scalar is stored as UTF-8 that lives as long as the process.
        return UnsafeRawBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount)
    }

    private func queueRest(
        _ prepared: [UInt8],
        _ dynamic: UnsafeRawBufferPointer,
        _ end: UnsafeRawBufferPointer,
        _ body: Chunk?,
        _ range: Range<Int>,
        written: Int
    ) {
        var skip = written
        if skip < prepared.count { output.append(prepared, from: skip) }
        skip = max(0, skip - prepared.count)
        let rest = Array(dynamic) + Array(end)
        if skip < rest.count { output.append(rest, from: skip) }
        skip = max(0, skip - rest.count)
        if let body { output.append(body, range.lowerBound + min(skip, range.count)..<range.upperBound) }
    }

    // MARK: - The queue

    /// Something was queued: it leaves now where it is much, else with what else this turn brings.
    func outputGrew() {
        guard !isBlocked else { return }
        if output.count >= 64 << 10 { flush() } else { context.flushSoon(self) }
    }

    /// Part of an answer that comes from elsewhere: much of it leaves from where it lies, behind what is queued, and what
    /// the socket does not take is queued. The connection may end by it.
    func pass(_ bytes: UnsafeRawBufferPointer) {
        guard bytes.count >= OutputQueue.copyLimit, phase == .answering, !isBlocked else {
            return output.append(copying: bytes)
        }
        let before = output.written
        let (outcome, taken) = output.write(to: descriptor, followedBy: bytes)
        noteWritten(since: before)
        if outcome == .failed { return clientLeft() }
        guard taken < bytes.count else { return }
        output.append(copying: bytes.part(taken..<bytes.count))
        guard outcome == .blocked else { return }
        isBlocked = true
        waitingSince = Monotonic.coarse()
        updateInterest()
    }

    func noteWritten(since before: UInt64) {
        let written = output.written &- before
        guard written > 0 else { return }
        sent &+= written
        context.counters.add(.bytesOut, written)
        waitingSince = Monotonic.coarse()
    }

    func flush() {
        guard phase != .closed, phase != .taken, phase != .lingering else { return }
        let before = output.written
        let outcome = output.write(to: descriptor, limit: OutputQueue.callLimit)
        noteWritten(since: before)
        switch outcome {
        case .failed: return clientLeft()
        case .drained:
            isBlocked = false
            drained()
        case .blocked:
            if !isBlocked { waitingSince = Monotonic.coarse() }
            isBlocked = true
            current?.roomMade(output.count)
        case .limited:
            isBlocked = false
            context.runSoon(self)
        }
        updateInterest()
    }

    private func drained() {
        if phase == .answering {
            current?.roomMade(0)
        } else if phase == .flushing {
            answerDone()
        }
    }

    /// The exchange has queued its last byte.
    func answerEnded() {
        guard phase == .answering else { return }
        phase = .flushing
        waitingSince = Monotonic.coarse()
        flush()
    }

    // MARK: - After an answer

    /// The last byte of the answer has been written.
    private func answerDone() {
        finishRecord(isAborted: false)
        let body = current?.requestBody
        let exchange = current
        current = nil
        exchange?.connectionEnded()
        guard keepAlive, !sawEnd || !input.isEmpty else { return linger() }
        guard let body, !body.isComplete else { return nextRequest() }
        guard body.mayBeDrained(limit: Self.unreadBodyLimit) else { return linger() }
        leftover = body
        leftoverBudget = Self.unreadBodyLimit
        phase = .draining
        waitingSince = Monotonic.coarse()
        body.reattach(to: self)
        drainLeftover()
    }

    func nextRequest() {
        guard !context.isDraining, !sawEnd || !input.isEmpty else { return linger() }
        phase = .waiting
        waitingSince = Monotonic.coarse()
        if !input.isEmpty, !isProcessing { context.runSoon(self) }
    }
}

extension iovec {
    /// The buffer must outlive every use of the vector.
    fileprivate init(_ bytes: UnsafeRawBufferPointer) {
        self.init(iov_base: UnsafeMutableRawPointer(mutating: bytes.baseAddress), iov_len: bytes.count)
    }
}
