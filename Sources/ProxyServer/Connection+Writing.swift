// From answers to the socket: the hot path's one writev, the queue behind it, and what follows a complete answer.

import CacheStore
package import EventLoop
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
    ///   - prepared: the status line and field lines, each with its CRLF, without the empty line; copied where it is needed
    ///     later, as `dynamic` is.
    ///   - dynamic: further field lines, such as Age and Cache-Status. One of the two holds Content-Length. Connection and
    ///     the empty line are added here.
    ///   - body: nil for HEAD and for answers without a body.
    ///   - file: what `body` lies in, where that is one.
    ///   - owner: whose bytes `body` are; kept until the last byte is written.
    ///   - record: for the access log and the counters.
    package func sendAtOnce(
        prepared: UnsafeRawBufferPointer,
        dynamic: UnsafeRawBufferPointer,
        body: UnsafeRawBufferPointer?,
        file: MemoryFile? = nil,
        owner: AnyObject,
        record: HotRecord = HotRecord()
    ) {
        guard phase == .waiting, output.isEmpty, hotResult == .none else { return }
        let end = headEnd
        let bodyCount = body?.count ?? 0
        if mayJoin(bodyCount),
            context.joined.append(prepared, dynamic, end, body ?? UnsafeRawBufferPointer(start: nil, count: 0))
        {
            hasJoined = true
            hotResult = .complete
            return recordHot(record, bodyBytes: bodyCount)
        }
        flushJoined()
        let headCount = prepared.count + dynamic.count + end.count
        let file = bodyCount >= Chunk.leastFile ? file : nil
        // What the socket did not take of the answers before this one goes first.
        var result =
            !output.isEmpty
            ? .wouldBlock
            : withUnsafeTemporaryAllocation(of: iovec.self, capacity: 4) { vectors in
                // The vectors live on the stack and point into buffers that the caller and the owner hold.
                withExtendedLifetime(owner) {
                    vectors[0] = iovec(prepared)
                    vectors[1] = iovec(dynamic)
                    vectors[2] = iovec(end)
                    guard let body, file == nil else { return write(vectors.baseAddress, 3, isBeforeFile: file != nil) }
                    vectors[3] = iovec(body.part(0..<min(bodyCount, OutputQueue.callLimit)))
                    return write(vectors.baseAddress, 4)
                }
            }
        if let file, let body, result == .bytes(headCount) {
            result = Self.send(body, in: file, after: headCount, to: descriptor)
        }
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
        queueRest(prepared, dynamic, end, body.map { Chunk(of: $0, in: owner, file: file) }, written: written)
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

    // The vectors are valid during the call.
    private func write(_ vectors: UnsafeMutablePointer<iovec>?, _ count: Int, isBeforeFile: Bool = false) -> IOResult {
        guard let vectors else { return .wouldBlock }
        return Socket.write(descriptor, vectors, count: count, isBeforeFile: isBeforeFile)
    }

    /// What head and body came to, once all of the head is out.
    private static func send(
        _ body: UnsafeRawBufferPointer,
        in file: MemoryFile,
        after headCount: Int,
        to descriptor: Int32
    ) -> IOResult {
        let count = min(body.count, OutputQueue.callLimit)
        switch Socket.sendFile(descriptor, file: file.descriptor, offset: file.offset(of: body), count: count) {
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
        _ prepared: UnsafeRawBufferPointer,
        _ dynamic: UnsafeRawBufferPointer,
        _ end: UnsafeRawBufferPointer,
        _ body: Chunk?,
        written: Int
    ) {
        var skip = written
        if skip < prepared.count { output.append(Array(prepared), from: skip) }
        skip = max(0, skip - prepared.count)
        let rest = Array(dynamic) + Array(end)
        if skip < rest.count { output.append(rest, from: skip) }
        skip = max(0, skip - rest.count)
        if let body { output.append(body, min(skip, body.capacity)..<body.capacity) }
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
