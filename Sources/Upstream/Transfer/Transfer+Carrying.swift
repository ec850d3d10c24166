// What every carrier promises, written once: how often a request goes out, its body, its deadlines, what waits, and how
// it ends.

import EventLoop
import HTTPWire

/// A carrier may call these with its engine on the stack (libcurl's, for instance): they decide, append and mark.
/// Delegates hear later, but for bytes that they take at once and for ``concludeAtOnce(_:)``.
extension Transfer {
    // MARK: - The request goes out

    /// The request has gone out, and is to go out once more because its connection, used before, ended without a byte
    /// of a response: it may have ended before it was given this request. Only what means the same sent twice (RFC 9110
    /// section 9.2.2), and no body of which a part may have arrived.
    var mayResend: Bool { request.method.isIdempotent && !isBodyTouched && slot?.reader.hasReceived == false }

    /// Asked before the request goes out on a connection, the first one or another.
    var mayGoOut: Bool { timesSent == 0 || mayResend }

    /// The request goes out now.
    func goesOut() {
        timesSent += 1
        deadlines.enter(request.hasBody ? .sending : .waiting, now: Monotonic.now())
        armTimer()
    }

    /// Nothing of a response came on a connection that had been used before: the request goes out once more, over a
    /// fresh one, where it may. Its carrier has let go of the old connection where this is true.
    /// - Parameter letGo: closes the old connection.
    func resend(_ letGo: () -> Void) {
        guard mayResend, timesSent == 1, let client else { return concludeAtOnce(.failure(resendError)) }
        letGo()
        client.resolve(self, isFresh: true)
    }

    // MARK: - The request's body

    /// The next bytes of the body, for a carrier that has room for them.
    func readBody(into buffer: UnsafeMutableRawBufferPointer) -> BodyRead {
        guard !isGivenUp else { return .failed }
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
            guard (1...room.count).contains(count) else { return failBody() }
            bodySent += UInt64(count)
            deadlines.progress(now: Monotonic.now())
            if request.bodyFraming == .length(bodySent) { bodyRead() }
        case .wait:
            isSendPaused = true
            updateSuspension()
        case .end:
            // Short of its length: what the origin has got must not pass as the whole.
            if case .length = request.bodyFraming { return failBody() }
            bodyRead()
        case .failed: return failBody()
        }
        return read
    }

    private func failBody() -> BodyRead {
        hasBodyFailed = true
        return .failed
    }

    private func bodyRead() {
        guard deadlines.phase == .sending else { return }
        deadlines.enter(.waiting, now: Monotonic.now())
        armTimer()
    }

    /// Schedules the first read from the source, not within this call.
    func askSourceLater() {
        isSendPaused = true
        isBodyAnnounced = true
        markLater()
    }

    /// Stops reading from the source.
    func stopAsking() {
        guard isSendPaused else { return }
        isSendPaused = false
        updateSuspension()
    }

    // MARK: - The response

    func headReceived() {
        deadlines.enter(.receiving, now: Monotonic.now())
        armTimer()
    }

    func bodyReceived() { deadlines.progress(now: Monotonic.now()) }

    /// Whether bytes go to the delegate as they come: nothing waits before them, and it takes them while its carrier's
    /// engine is on the stack.
    var handsOnAtOnce: Bool {
        guard let slot, !isGivenUp, delegate?.acceptsReentrantBytes == true else { return false }
        return slot.reader.isHandedOn
    }

    /// False: the delegate wants no bytes now.
    func handOn(_ bytes: UnsafeRawBufferPointer) -> Bool {
        guard !isHeld, let delegate else { return false }
        if delegate.transfer(self, received: bytes) == .pause { hold() }
        return true
    }

    var supportsSplice: Bool { delegate?.supportsSplice ?? false }

    /// Lets the delegate splice content from the socket; nil if it does not do so now.
    func splice(_ count: Int, from socket: Int32) -> IOResult? {
        guard !isHeld, let delegate, let moved = delegate.transfer(self, moves: count, from: socket) else { return nil }
        if moved.flow == .pause { hold() }
        return moved.result
    }

    /// Bytes that should be read at a time, at most.
    var maximumAtOnce: Int { delegate?.maximumAtOnce ?? .max }

    // MARK: - The end

    /// How it ended; the delegate is told later, behind the bytes that wait for it.
    func conclude(_ outcome: Result<Fields, UpstreamError>) {
        self.outcome = outcome
        markLater()
    }

    /// The same from an event of a connection: the delegate is told within this call, unless something waits for it.
    func concludeAtOnce(_ outcome: Result<Fields, UpstreamError>) {
        self.outcome = outcome
        if slot?.reader.isHandedOut ?? true { end(outcome) } else { mark() }
    }

    private func markLater() {
        mark()
        client?.wakeLater()
    }
}
