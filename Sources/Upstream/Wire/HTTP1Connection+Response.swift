// Receives a response: bytes are read once, parsed in place, and delivered from there.

import EventLoop
import Glibc
import HTTPWire

extension HTTP1Connection {
    /// The socket has bytes, its end, or an error.
    func receive(_ transfer: Transfer) {
        if reader.isComplete { return excess(transfer) }
        // A paused consumer gets all pending bytes, and the end, when it resumes.
        if transfer.isConcluded || transfer.mustPause(buffered: reader.bytes.count) { return watchReading(false) }
        if move(transfer) { return }
        guard !reader.isHeadComplete, transfer.supportsSplice else {
            _ = read(transfer, atMost: pool.buffer.count)
            return
        }
        // Content that can be moved is not to be read with the head before it.
        guard read(transfer, atMost: Self.minimumSpliced), mayReceive(transfer), !move(transfer), mayReceive(transfer)
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
        // Smaller reads are of no use.
        let length = most <= Self.minimumSpliced ? most : min(most, transfer.maximumAtOnce)
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

    /// Splices long content from socket to socket, if the delegate can do that. False if it must be read.
    private func move(_ transfer: Transfer) -> Bool {
        guard transfer.state == .running, !transfer.isConcluded, self.transfer === transfer,
            let left = reader.lengthLeft, left >= Self.minimumSpliced,
            let result = transfer.splice(Int(clamping: left), from: descriptor)
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
    private static let minimumSpliced = 32_768

    /// Processes the bytes that were read. Each call of the delegate may end the transfer; then this
    /// connection may carry another one.
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

    /// Parses interim heads and the final one, and delivers them. Returns the bytes after them, or nil if there
    /// is nothing more to process.
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

    /// The final head came before the end of the request. After a success the rest is still sent,
    /// since the origin expects it.
    private func answeredEarly(_ status: Int, _ transfer: Transfer) {
        if status >= 300 { giveUpSending(.unwanted) } else { sendBody(transfer) }
    }

    /// The origin has switched protocols: the delegate gets the socket and the bytes after the head. The whole request
    /// must have been sent first, or its rest would be taken for bytes of the new protocol.
    private func handOver(_ rest: UnsafeRawBufferPointer, _ transfer: Transfer) {
        guard isRequestSent, let head = reader.takeHead() else { return refuse(transfer) }
        transfer.switched(head, to: SwitchedConnection(detach(), received: Array(rest)))
    }

    // MARK: - The end

    func concludeIfComplete(_ transfer: Transfer) {
        guard reader.isComplete, isRequestOver, !transfer.isConcluded else { return }
        transfer.concludeAtOnce(.success(reader.trailers))
    }

    private func refuse(_ transfer: Transfer) {
        reader.forbidReuse()
        // The transfer may live on until its consumer resumes.
        if !isRequestOver { giveUpSending(.unwanted) }
        transfer.concludeAtOnce(.failure(transfer.refusal(reader.failure)))
    }

    /// Bytes came after the response while the transfer lives on: its consumer has paused, or the
    /// request is still being sent.
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
