// A transport whose bytes go through a TLS session, over another transport.

package import EventLoop
package import Glibc

/// What the TLS transports of a loop share: room for what they encrypt, which is empty between their calls. Loop-bound.
package final class TLSRoom {
    /// Encrypted bytes of the call under way.
    let output = TLSOutput()
    /// Small pieces on their way into one record, and bytes of a file. Owned, freed with this object.
    let plain = UnsafeMutableRawBufferPointer.allocate(byteCount: TLSTransport.largestBatch, alignment: 16)

    package init() {}

    deinit { plain.deallocate() }
}

@available(*, unavailable) extension TLSRoom: Sendable {}

/// A TLS session as a transport; loop-bound.
///
/// Bytes count as written when all records that they are in are out. A caller that got `.wouldBlock` or a smaller count
/// comes back with the same bytes, as it does with any transport: those that are encrypted by then are not encrypted again.
package final class TLSTransport: ByteTransport {
    /// The most that is encrypted before it is written, in bytes: a peer that takes everything gets few large writes.
    static let largestBatch = 64 << 10
    /// The same for a peer that does not, whose records wait in memory: one record.
    static let recordSize = 16 << 10
    /// The most that may wait in memory, in bytes: a batch, and answers of the session itself, which a peer asks for
    /// with each request to renew the keys.
    private static let largestUnsent = 2 * largestBatch

    private let inner: any ByteTransport
    /// The session; what was agreed on is known when the handshake is done.
    package let session: TLSSession
    /// Why the session failed; nil as long as it has not.
    package private(set) var failure: TLSFailure?
    /// Whether the peer has sent anything but its part of the handshake.
    package private(set) var hasReceived = false
    /// Whether the peer's bytes have stopped without its saying so.
    package private(set) var isTruncated = false
    private let room: TLSRoom
    private let counters: [TLSCounters]
    /// Encrypted bytes that the inner transport has not taken.
    private let unsent = TLSOutput()
    /// How many bytes of the caller are in `unsent`, and were not yet told to be written.
    private var ahead = 0
    private var batch = TLSTransport.largestBatch
    private var isShakingHands = true
    /// The end of the sending side follows what is unsent.
    private var endsLater = false
    /// The inner transport calls this one.
    private var hasBegun = false
    /// A read of the call under way got less than it had room for: another would find nothing.
    private var isDrained = false
    private var wanted: IOReadiness = []
    // Unowned and unchecked: the owner of a transport ends it before its handler goes.
    private unowned(unsafe) var handler: (any IOHandler)?

    /// A session with a client.
    /// - Parameters:
    ///   - inner: taken over; it has not begun.
    ///   - room: that of the loop.
    ///   - address: of this end, whose certificate a client gets that asks for no name.
    ///   - received: what the client has sent already.
    package init(
        serving context: TLSContext,
        over inner: any ByteTransport,
        in room: TLSRoom,
        at address: @autoclosure @escaping () -> HostName? = nil,
        received: [UInt8] = [],
        counters: [TLSCounters] = []
    ) throws(CertificateError) {
        (self.inner, self.room, self.counters) = (inner, room, counters)
        session = try TLSSession(serving: context, at: address(), received: received, output: room.output)
        session.wire = self
    }

    /// A session with a server.
    package init(
        asking context: TLSContext,
        for host: HostName,
        over inner: any ByteTransport,
        in room: TLSRoom
    ) throws(CertificateError) {
        (self.inner, self.room, counters) = (inner, room, [])
        session = try TLSSession(asking: context, for: host, output: room.output)
        session.wire = self
    }

    // MARK: Readiness

    package func begin(on loop: isolated EventLoop, _ handler: any IOHandler) {
        self.handler = handler
        wanted = []
        // What is watched for the handler before this one stays so until this one says what it wants, or until it is told of
        // what it did not want: for most of them that is the same.
        if hasBegun { return }
        hasBegun = true
        inner.begin(on: loop, self)
        watch([])
    }

    package func watch(_ wanted: IOReadiness) {
        self.wanted = wanted
        // What is unsent goes out whether or not the owner writes: an alert, a ticket, the answer to a new key.
        inner.watch(unsent.isEmpty ? wanted : wanted.union(.write))
    }

    package func stop() {
        handler = nil
        hasBegun = false
        inner.stop()
    }

    package var readsAhead: Bool { true }
    package var hasPending: Bool { !isShakingHands && session.hasPending }

    // MARK: Bytes

    package var handshake: (any TransportHandshake)? { isShakingHands ? self : nil }

    package func read(into buffer: UnsafeMutableRawBufferPointer) -> IOResult {
        isDrained = false
        let result = session.read(into: buffer)
        if !room.output.isEmpty { settle() }
        if unsent.count > Self.largestUnsent {
            failure = TLSFailure(.malformed, "it asks for answers that it does not read")
            return .failed(EPROTO)
        }
        switch result {
        case .bytes(let count):
            hasReceived = true
            return .bytes(count)
        case .wouldBlock: return .wouldBlock
        case .end: return .end
        case .truncated:
            isTruncated = true
            return .truncated
        case .failed(let failure):
            self.failure = failure
            return .failed(EPROTO)
        }
    }

    package func write(_ bytes: UnsafeRawBufferPointer) -> IOResult {
        if let result = earlier(bytes.count) { return result }
        let count = min(bytes.count, batch)
        return sent(count, session.write(UnsafeRawBufferPointer(rebasing: bytes[..<count])))
    }

    // Valid during the call, as the protocol says.
    package func write(_ vectors: UnsafeMutablePointer<iovec>, count: Int, isFollowed: Bool) -> IOResult {
        let all = UnsafeBufferPointer(start: vectors, count: count)
        if let result = earlier(all.reduce(0) { $0 + $1.iov_len }) { return result }
        var (left, filled) = (batch, 0)
        for vector in all where left > 0 && vector.iov_len > 0 {
            var rest = UnsafeRawBufferPointer(start: vector.iov_base, count: min(vector.iov_len, left))
            left -= rest.count
            while !rest.isEmpty {
                if filled == 0, rest.count >= Self.recordSize {
                    // Whole records need no copy.
                    let whole = rest.count / Self.recordSize * Self.recordSize
                    if let failure = session.write(UnsafeRawBufferPointer(rebasing: rest[..<whole])) {
                        return sent(0, failure)
                    }
                    rest = UnsafeRawBufferPointer(rebasing: rest[whole...])
                    continue
                }
                let part = min(rest.count, Self.recordSize - filled)
                UnsafeMutableRawBufferPointer(rebasing: room.plain[filled..<filled + part])
                    .copyMemory(from: UnsafeRawBufferPointer(rebasing: rest[..<part]))
                (filled, rest) = (filled + part, UnsafeRawBufferPointer(rebasing: rest[part...]))
                guard filled == Self.recordSize else { break }
                if let failure = session.write(UnsafeRawBufferPointer(rebasing: room.plain[..<filled])) {
                    return sent(0, failure)
                }
                filled = 0
            }
        }
        let failure = session.write(UnsafeRawBufferPointer(rebasing: room.plain[..<filled]))
        return sent(batch - left, failure, isFollowed: isFollowed)
    }

    /// Reads the file, which is in the page cache wherever a plain transport would send it from there.
    package func sendFile(_ file: Int32, offset: Int64, count: Int) -> IOResult {
        if let result = earlier(count) { return result }
        let read = pread(file, room.plain.baseAddress, min(count, batch), off_t(offset))
        guard read > 0 else { return read == 0 ? .end : .failed(errno) }
        return sent(read, session.write(UnsafeRawBufferPointer(rebasing: room.plain[..<read])))
    }

    package var copiesMemory: Bool { true }
    package var takesPipes: Bool { false }
    package func empty(_ pipe: SocketPipe, count: Int) -> IOResult { .failed(EOPNOTSUPP) }

    // MARK: The peer and the end

    package var isHungUp: Bool { inner.isHungUp }
    package func askWhetherAnybodyIsThere() { inner.askWhetherAnybodyIsThere() }

    package func finishWriting() {
        session.finishWriting()
        if settle() == nil { endsLater = true } else { inner.finishWriting() }
    }

    package func close(resets: Bool) {
        if !resets, !endsLater {
            session.finishWriting()
            settle()
        }
        handler = nil
        inner.close(resets: resets)
    }

    // MARK: Encrypted bytes

    /// What became of bytes of the caller that are encrypted already; nil if there are none, and nothing is unsent.
    private func earlier(_ count: Int) -> IOResult? {
        if !unsent.isEmpty {
            guard let result = settle() else { return .wouldBlock }
            if case .failed = result { return result }
        }
        guard ahead > 0 else { return nil }
        let told = min(ahead, count)
        ahead -= told
        return .bytes(told)
    }

    /// What became of bytes that were encrypted by now.
    private func sent(_ count: Int, _ failure: TLSFailure?, isFollowed: Bool = false) -> IOResult {
        if let failure {
            self.failure = failure
            settle()
            return .failed(EPROTO)
        }
        guard let result = settle(isFollowed: isFollowed) else {
            (ahead, batch) = (count, Self.recordSize)
            return .wouldBlock
        }
        if case .failed = result { return result }
        batch = Self.largestBatch
        return .bytes(count)
    }

    /// Writes what is encrypted, as far as it is taken.
    /// - Parameter isFollowed: as in ``ByteTransport``.
    /// - Returns: nil if something stays unsent; else the result of the last write, or `.bytes(0)` if there was nothing.
    @discardableResult private func settle(isFollowed: Bool = false) -> IOResult? {
        let hadUnsent = !unsent.isEmpty
        if hadUnsent, !room.output.isEmpty {
            guard unsent.append(room.output.bytes) else { return .failed(ENOMEM) }
            room.output.consume(room.output.count)
        }
        let source = hadUnsent ? unsent : room.output
        var result: IOResult? = .bytes(0)
        while !source.isEmpty {
            let written = isFollowed ? inner.writeFollowed(source.bytes) : inner.write(source.bytes)
            guard case .bytes(let count) = written else {
                result = written == .wouldBlock ? nil : written
                break
            }
            source.consume(count)
        }
        if source.isEmpty {
            unsent.trim()
            if endsLater {
                endsLater = false
                inner.finishWriting()
            }
        } else if !hadUnsent {
            guard result == nil else {
                source.consume(source.count)
                return result
            }
            guard unsent.append(source.bytes) else { return .failed(ENOMEM) }
            source.consume(source.count)
        }
        if hadUnsent == unsent.isEmpty { watch(wanted) }
        return result
    }
}

@available(*, unavailable) extension TLSTransport: Sendable {}

extension ByteTransport {
    /// Writes bytes that more follows.
    fileprivate func writeFollowed(_ bytes: UnsafeRawBufferPointer) -> IOResult {
        // Only read by the call.
        var vector = iovec(iov_base: UnsafeMutableRawPointer(mutating: bytes.baseAddress), iov_len: bytes.count)
        return write(&vector, count: 1, isFollowed: true)
    }
}

extension TLSTransport: TLSWire {
    package func receive(into buffer: UnsafeMutableRawBufferPointer) -> IOResult {
        if isDrained { return .wouldBlock }
        let result = inner.read(into: buffer)
        if case .bytes(let count) = result { isDrained = count < buffer.count }
        return result
    }
}

extension TLSTransport: IOHandler {
    package func ready(_ readiness: IOReadiness) {
        if readiness.contains(.write), !unsent.isEmpty { settle() }
        let told = IOReadiness(rawValue: readiness.rawValue & wanted.rawValue)
        if told.rawValue != 0 { handler?.ready(told) } else { watch(wanted) }
    }
}

extension TLSTransport: TransportHandshake {
    package var isSecure: Bool { true }

    package var agreement: SecureSession? {
        guard !isShakingHands else { return nil }
        let agreement = session.agreement
        return SecureSession(
            version: agreement.version,
            cipher: agreement.cipher,
            serverName: session.serverName?.text,
            isResumed: agreement.isResumed
        )
    }

    package func step() -> HandshakeStep {
        isDrained = false
        let step = session.handshake()
        let result = settle()
        switch step {
        case .failed(let failure):
            self.failure = failure
            for all in counters { all.add(failure.kind) }
            return .failed(failure.message)
        case .wantsInput, .finished:
            if case .failed(let number) = result { return .failed(String(cString: strerror(number))) }
            guard step == .finished else { return .waits(.read) }
            isShakingHands = false
            let isResumed = session.agreement.isResumed
            for all in counters { all.addHandshake(isResumed: isResumed) }
            return .done(protocol: session.agreement.applicationProtocol)
        }
    }
}
