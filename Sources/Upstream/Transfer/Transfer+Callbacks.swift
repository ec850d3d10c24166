// What its carrier asks a transfer, perhaps with libcurl on the stack: only to decide, to append and to mark.

internal import EventLoop
internal import HTTPWire

extension Transfer {
    /// The request may go out once more where a connection died that had been used before: it means the same sent twice, and nothing
    /// has come for it.
    var mayResend: Bool {
        request.method.isIdempotent && !isBodyTouched && carrier?.reader.hasReceived == false
    }

    // MARK: - The request's body

    func readBody(into buffer: UnsafeMutableRawBufferPointer) -> BodyRead {
        guard abort == nil else { return .failed }
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
            guard (1...room.count).contains(count) else { return giveUp() }
            bodySent += UInt64(count)
            deadlines.progress(now: Monotonic.now())
            if request.bodyFraming == .length(bodySent) { bodyRead() }
        case .wait:
            isSendPaused = true
            updateSuspension()
        case .end:
            // Short of its length: what the origin has got must not pass as the whole.
            if case .length = request.bodyFraming { return giveUp() }
            bodyRead()
        case .failed: return giveUp()
        }
        return read
    }

    private func giveUp() -> BodyRead {
        if abort == nil { abort = .failed(requestBodyError) }
        return .failed
    }

    private func bodyRead() {
        guard deadlines.phase == .sending else { return }
        deadlines.enter(.waiting, now: Monotonic.now())
        armTimer()
    }

    // MARK: - The response

    func headReceived() {
        deadlines.enter(.receiving, now: Monotonic.now())
        armTimer()
    }

    /// Whether bytes go to the delegate as they come: nothing waits before them, and it takes them while libcurl is on the
    /// stack.
    var handsOnAtOnce: Bool {
        guard let carrier, abort == nil, delegate?.takesBytesAtOnce == true else { return false }
        return carrier.reader.isHandedOn
    }

    /// False: the delegate wants no bytes now.
    func handOn(_ bytes: UnsafeRawBufferPointer) -> Bool {
        guard !isHeld, let delegate else { return false }
        if delegate.transfer(self, received: bytes) == .pause { hold() }
        return true
    }

    var movesContent: Bool { delegate?.movesContent ?? false }

    /// Has the delegate take content from where it waits; nil: it does not now.
    func move(_ count: Int, from socket: Int32) -> IOResult? {
        guard !isHeld, let delegate, let moved = delegate.transfer(self, moves: count, from: socket) else { return nil }
        if moved.flow == .pause { hold() }
        return moved.result
    }

    func bodyReceived() { deadlines.progress(now: Monotonic.now()) }
}
