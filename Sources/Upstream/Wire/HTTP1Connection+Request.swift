// Sends a request: its head and the first bytes of its body in one write, then the body as its source provides it.

import EventLoop
import HTTPWire

/// How far a request has been written down for sending.
///
/// Transitions: awaitingContinue → body → sent; from each to unwanted and broken.
enum RequestProgress {
    case body
    /// The origin is to say that it wants the body (RFC 9110 section 10.1.1).
    case awaitingContinue
    /// To its end.
    case sent
    /// The rest does not go out: the origin has answered before it, or its source has failed.
    case unwanted
    /// The socket takes no more of the request. The kernel reports the error only once, so a later end of input must
    /// not be taken for the origin's proper end.
    case broken
}

extension HTTP1Connection {
    /// For so long an origin may keep silent about `Expect: 100-continue`, in nanoseconds: libcurl's default, too.
    private static let longestWait: UInt64 = 1_000_000_000

    /// The socket has taken the whole request.
    var isRequestSent: Bool { progress == .sent && outgoing == nil }
    /// Nothing more of the request goes out.
    var isRequestOver: Bool { isRequestSent || progress == .unwanted || progress == .broken }

    func sendRequest(_ transfer: Transfer) {
        guard let place = transfer.destination else { return }
        let buffer = outgoing ?? pool.takeBuffer()
        buffer.removeAll()
        buffer.append(head: transfer.request, transfer.target, place)
        outgoing = buffer
        guard transfer.request.hasBody else {
            progress = .sent
            return flush()
        }
        progress = transfer.request.expectsContinue ? .awaitingContinue : .body
        transfer.askSourceLater()
        if progress == .awaitingContinue { startWaiting() }
    }

    /// Goes on with the request: from the source, the loop, or both.
    func send(_ transfer: Transfer) {
        guard state == .open, !transfer.isConcluded else { return }
        fill(transfer)
        guard transfer.state != .ended, !transfer.isConcluded, self.transfer === transfer else { return }
        flush()
        if outgoing == nil { watchWriting(progress == .body && !transfer.isSendPaused) }
        concludeIfComplete(transfer)
    }

    /// Reads from the source as much as there is and as fits into the buffer.
    private func fill(_ transfer: Transfer) {
        let isChunked = transfer.request.bodyFraming == .chunked
        while progress == .body, !transfer.isSendPaused {
            let buffer = outgoing ?? pool.takeBuffer()
            outgoing = buffer
            guard let room = buffer.bodyRoom(isChunked: isChunked) else { return }
            let read = transfer.readBody(into: room)
            // The source may have ended the transfer, and the connection with it.
            guard transfer.state != .ended, self.transfer === transfer else { return }
            switch read {
            case .bytes(let count): buffer.append(body: count, isChunked: isChunked)
            case .wait: return
            case .end:
                if isChunked { buffer.appendLastChunk() }
                progress = .sent
            case .failed:
                // The bytes so far are sent, so that the origin's log shows the truncated request.
                flush()
                giveUpSending(.unwanted)
                return transfer.concludeAtOnce(.failure(transfer.requestBodyError))
            }
        }
    }

    /// Sends what the socket takes.
    private func flush() {
        guard let buffer = outgoing else { return }
        while !buffer.isEmpty {
            switch WireSocket.send(descriptor, buffer.bytes) {
            case .bytes(let count): buffer.consume(count)
            case .wouldBlock, .end: return watchWriting(true)
            case .failed:
                // The origin may have answered before it closed: received bytes are read first.
                giveUpSending(.broken)
                return WireSocket.end(descriptor)
            }
        }
        outgoing = nil
        pool.giveBack(buffer)
    }

    /// The rest of the request is not sent.
    func giveUpSending(_ reason: RequestProgress) {
        progress = reason
        reader.forbidReuse()
        if let outgoing { pool.giveBack(outgoing) }
        outgoing = nil
        watchWriting(false)
        transfer?.stopAsking()
    }

    // MARK: - Expect: 100-continue

    private func startWaiting() {
        // Unowned: the timer is this object's own and ends with it.
        let timer =
            continueTimer
            ?? LoopTimer(onThreadOf: pool.loop) { [unowned self, pool] in
                pool.event {
                    if let transfer { sendBody(transfer) }
                }
            }
        continueTimer = timer
        timer.start(after: Self.longestWait)
    }

    /// Sends the body: the origin asked for it with a 100, or has not answered.
    func sendBody(_ transfer: Transfer) {
        guard progress == .awaitingContinue else { return }
        continueTimer?.cancel()
        progress = .body
        send(transfer)
    }
}

extension UpstreamRequest {
    fileprivate var expectsContinue: Bool {
        fields.withFirst(.expect) { $0.equalsIgnoringCase("100-continue") } ?? false
    }
}
