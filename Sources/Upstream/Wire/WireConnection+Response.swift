// A response on its way in: read once, judged where it lies, and handed on from there.

internal import EventLoop
import Glibc
internal import HTTPWire

extension WireConnection {
    /// The socket has bytes, its end, or an error.
    func receive(_ transfer: Transfer) {
        if reader.isComplete { return excess(transfer) }
        // Who holds back hears of all that comes, its end included, once it goes on.
        if transfer.isConcluded || transfer.mustPause(buffered: reader.bytes.count) { return watchReading(false) }
        if move(transfer) { return }
        guard !reader.isHeadComplete, transfer.movesContent else {
            _ = read(transfer, atMost: pool.buffer.count)
            return
        }
        // Content that can be moved is not to be read with the head before it.
        guard read(transfer, atMost: Self.leastMoved), mayReceive(transfer), !move(transfer), mayReceive(transfer)
        else {
            return
        }
        _ = read(transfer, atMost: pool.buffer.count)
    }

    /// The transfer still wants what waits in the socket.
    private func mayReceive(_ transfer: Transfer) -> Bool {
        self.transfer === transfer && transfer.state == .running && !transfer.isConcluded && !reader.isComplete
            && !transfer.mustPause(buffered: reader.bytes.count)
    }

    /// Reads once.
    /// - Returns: whether as much was there.
    private func read(_ transfer: Transfer, atMost most: Int) -> Bool {
        // Nobody wants less than that at a time.
        let length = most <= Self.leastMoved ? most : min(most, transfer.mostAtOnce)
        let room = UnsafeMutableRawBufferPointer(rebasing: pool.buffer.prefix(length))
        switch Socket.read(descriptor, into: room) {
        case .bytes(let count):
            take(UnsafeRawBufferPointer(rebasing: room[..<count]), transfer)
            return count == length
        case .wouldBlock: break
        case .end: ended(transfer, osError: 0)
        case .failed(let code): ended(transfer, osError: code)
        }
        return false
    }

    /// Has long content go on from socket to socket, where its taker can do that. False where it is to be read.
    private func move(_ transfer: Transfer) -> Bool {
        guard transfer.state == .running, !transfer.isConcluded, self.transfer === transfer,
            let left = reader.lengthLeft, left >= Self.leastMoved,
            let result = transfer.move(Int(clamping: left), from: descriptor)
        else { return false }
        // The delegate may have ended the transfer.
        guard transfer.state != .ended else { return true }
        switch result {
        case .bytes(let count):
            reader.skip(count)
            transfer.bodyReceived()
            concludeIfComplete(transfer)
        // Nothing that can be moved; urgent data (RFC 9293 section 3.8.5) can only be read past.
        case .wouldBlock: return false
        case .end: ended(transfer, osError: 0)
        case .failed(let code): ended(transfer, osError: code)
        }
        return true
    }

    /// Fewer bytes than this cost less when they are read.
    private static let leastMoved = 32_768

    /// Takes what was read. The delegate is called on the way, and may end the transfer each time; this connection may
    /// carry another one by then.
    private func take(_ bytes: UnsafeRawBufferPointer, _ transfer: Transfer) {
        var rest = bytes
        if !reader.isHeadComplete {
            guard let body = takeHeads(bytes, transfer) else { return }
            rest = body
        }
        var position = 0
        reading: while true {
            guard let step = reader.next(rest, from: position) else { return refuse(transfer) }
            switch step {
            case .data(let range):
                let content = UnsafeRawBufferPointer(rebasing: rest[range])
                let isPiece = reader.bytes.isEmpty && (range.count >= Self.piece || reader.framing != .chunked)
                if !isPiece || !transfer.handOn(content) { reader.keep(content) }
                guard transfer.state != .ended else { return }
                position = range.upperBound
            case .needMore, .finished: break reading
            }
        }
        if !reader.bytes.isEmpty { transfer.handOn() }
        guard transfer.state != .ended else { return }
        if !rest.isEmpty, !reader.isComplete { transfer.bodyReceived() }
        concludeIfComplete(transfer)
    }

    /// Chunks that are shorter than this are handed on together where they come together, in bytes.
    private static let piece = 16_384

    /// Takes interim heads and the final one, and hands them on; the bytes behind them, or nil where none are to be looked at.
    private func takeHeads(_ bytes: UnsafeRawBufferPointer, _ transfer: Transfer) -> UnsafeRawBufferPointer? {
        var rest = bytes
        while !reader.isHeadComplete {
            guard !rest.isEmpty else { return nil }
            switch reader.take(head: rest) {
            case .needMore: return nil
            case .refused:
                refuse(transfer)
                return nil
            case .interim(let status, let length):
                rest = UnsafeRawBufferPointer(rebasing: rest[length...])
                transfer.handOn()
                if transfer.state != .ended, status == 100 { sendBody(transfer) }
                guard transfer.state != .ended else { return nil }
            case .final(let status, let length):
                rest = UnsafeRawBufferPointer(rebasing: rest[length...])
                if status == 101 {
                    handOver(rest, transfer)
                    return nil
                }
                transfer.headReceived()
                transfer.contentIsNext = !rest.isEmpty && reader.lengthLeft ?? 0 > 0
                if !isRequestOver { answeredEarly(status, transfer) }
                guard transfer.state != .ended else { return nil }
                transfer.handOn()
                guard transfer.state != .ended else { return nil }
            }
        }
        return rest
    }

    /// The final head came before the end of the request. After a success the rest still goes out: the origin counts on it.
    private func answeredEarly(_ status: Int, _ transfer: Transfer) {
        if status >= 300 { giveUpSending(.unwanted) } else { sendBody(transfer) }
    }

    /// The origin has switched to another protocol: the socket goes to the delegate, with what came behind the head. Not before the
    /// whole request has gone out, which would follow in that protocol.
    private func handOver(_ rest: UnsafeRawBufferPointer, _ transfer: Transfer) {
        guard isRequestSent, let head = reader.takeHead() else { return refuse(transfer) }
        transfer.switched(head, to: SwitchedConnection(surrender(), received: Array(rest)))
    }

    // MARK: - The end

    func concludeIfComplete(_ transfer: Transfer) {
        guard reader.isComplete, isRequestOver, !transfer.isConcluded else { return }
        transfer.concludeAtOnce(.success(reader.trailers))
    }

    private func refuse(_ transfer: Transfer) {
        reader.forbidReuse()
        // The transfer may stay until its consumer goes on.
        if !isRequestOver { giveUpSending(.unwanted) }
        transfer.concludeAtOnce(.failure(transfer.refusal(reader.failure)))
    }

    /// Something came behind the response, while the transfer is still here: its consumer holds back, or the request goes on.
    private func excess(_ transfer: Transfer) {
        reader.forbidReuse()
        watchReading(false)
        if !isRequestOver { giveUpSending(.unwanted) }
        concludeIfComplete(transfer)
    }

    private func ended(_ transfer: Transfer, osError: Int32) {
        watch([])
        reader.forbidReuse()
        if osError == 0, progress != .broken, reader.end() {
            if !isRequestOver { giveUpSending(.unwanted) }
            return transfer.concludeAtOnce(.success(reader.trailers))
        }
        if isReused, !reader.hasReceived { return transfer.resend { end() } }
        transfer.concludeAtOnce(.failure(closedError(transfer.place, osError)))
    }

    private func closedError(_ place: String, _ osError: Int32) -> UpstreamError {
        let text =
            if osError != 0 {
                String(cString: strerror(osError))
            } else if reader.isHeadComplete {
                "its end was still to come"
            } else {
                reader.hasReceived ? "only a part of one came" : "not a byte came"
            }
        return ConnectionFailure.closed(place, remoteAddress, isHeadComplete: reader.isHeadComplete, text: text)
    }
}
