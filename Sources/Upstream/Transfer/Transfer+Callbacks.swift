// What libcurl asks a transfer while it is on the stack: only to decide, to append and to mark.

internal import CLibcurl
internal import EventLoop
import Glibc
internal import HTTPWire

extension Transfer {
    // MARK: - Connections

    /// Before a socket is opened.
    func mayConnect(to address: UnsafePointer<curl_sockaddr>) -> Bool {
        let length = min(Int(address.pointee.addrlen), MemoryLayout<sockaddr_storage>.size)
        guard let offset = MemoryLayout<curl_sockaddr>.offset(of: \.addr) else { return false }
        // The member `addr` is only the start: libcurl reserves room for the longest address behind it.
        let start = UnsafeRawPointer(address).advanced(by: offset).assumingMemoryBound(to: sockaddr.self)
        let target = SocketAddress(start, length: socklen_t(length))
        guard request.terms.target.allows(target) else {
            abort = .addressRefused(target.host)
            return false
        }
        return true
    }

    /// Before libcurl resolves by itself, which it must not: the addresses were given to it.
    func mayResolve() -> Bool {
        // A numeric host is no question for a name server.
        if destination?.isNumeric == true { return true }
        abort = .unresolved
        return false
    }

    /// The connection stands, and the request would go out now; also asked before libcurl sends it again.
    func mayRequest(on name: ConnectionName) -> Bool {
        guard let handle, let multi = client?.multi, abort == nil else { return false }
        attempts += 1
        connection = name
        if attempts > 1, !mayResend {
            abort = .resend
            return false
        }
        // Counts the connections made for this transfer.
        let isReused = c_curl_get_long(handle.raw, CURLINFO_NUM_CONNECTS) == 0
        if request.terms.target != .any, !allows(name) {
            abort = isReused ? .staleConnection : .addressRefused(name.remote)
            return false
        }
        if isReused, multi.isSpent(name) || destination?.isTLS == true && c_curl_get_tls_pending(handle.raw) > 0 {
            abort = .staleConnection
            return false
        }
        multi.noLongerIdle(name)
        deadlines.enter(request.hasBody ? .sending : .waiting, now: Monotonic.now())
        armTimer()
        return true
    }

    /// libcurl sends again on its own where a connection from its cache died.
    var mayResend: Bool {
        request.method.isIdempotent && !isBodyTouched && carrier?.reader.hasReceived == false
    }

    private func allows(_ name: ConnectionName) -> Bool {
        guard let address = SocketAddress(numericHost: name.remote, port: 0) else { return false }
        return request.terms.target.allows(address)
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
            guard (1...room.count).contains(count) else { return give(up: .requestBody) }
            bodySent += UInt64(count)
            deadlines.progress(now: Monotonic.now())
            if request.bodyFraming == .length(bodySent) { bodyRead() }
        case .wait:
            isSendPaused = true
            updateSuspension()
        case .end:
            // Short of its length: what the origin has got must not pass as the whole.
            if case .length = request.bodyFraming { return give(up: .requestBody) }
            bodyRead()
        case .failed: return give(up: .requestBody)
        }
        return read
    }

    private func give(up reason: Abort) -> BodyRead {
        if abort == nil { abort = reason }
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
