// The way to a peer, whatever its bytes go through: the protocol that connections and tunnels speak over, and a plain
// socket.

package import Glibc

/// The way to a client, to an origin, or to the other end of a tunnel; loop-bound. Whoever begins it owns it, and ends it
/// by `close`.
///
/// No call waits. A result of `.wouldBlock` means: `watch` for readiness, and make the call again. Readiness tells of
/// bytes that the kernel has. Those that the transport has taken out of the kernel already, as TLS does with a whole
/// record, raise none: whoever wants to read asks ``hasPending`` before it waits.
package protocol ByteTransport: AnyObject {
    /// What has to be agreed with the peer before bytes go either way; nil if nothing has, or if it has been.
    var handshake: (any TransportHandshake)? { get }

    /// From now on `handler` is called for what is watched, which is nothing at first. It
    /// replaces the handler before it. A transport does not hold it: its owner calls `stop` or `close` before it goes.
    func begin(on loop: isolated EventLoop, _ handler: any IOHandler)
    /// Changes what is watched; without effect before `begin` and after `stop`.
    func watch(_ wanted: IOReadiness)
    /// Calls the handler no more. The transport stays open, for another handler.
    func stop()

    /// Reads what is there, at most `buffer.count` bytes; what is pending comes before anything is asked of the kernel.
    /// `.end` if the peer has ended its side in order, `.truncated` if its bytes stopped without that.
    func read(into buffer: UnsafeMutableRawBufferPointer) -> IOResult
    /// Whether ``hasPending`` is ever true; the same for the whole life of the transport.
    var readsAhead: Bool { get }
    /// Whether the next `read` gives bytes without any readiness.
    var hasPending: Bool { get }
    /// Writes as much as is taken now.
    func write(_ bytes: UnsafeRawBufferPointer) -> IOResult
    /// Writes as much of up to `count` buffers as is taken now. They are valid during the call.
    /// - Parameter isFollowed: `sendFile` or `finishWriting` follows, and these bytes had better leave together with what
    ///   that sends.
    func write(_ vectors: UnsafeMutablePointer<iovec>, count: Int, isFollowed: Bool) -> IOResult
    /// Writes at most `count` bytes of an open file. `.end` where the file is shorter than that.
    func sendFile(_ file: Int32, offset: Int64, count: Int) -> IOResult
    /// Bytes in memory had better be written than sent from the file that they lie in.
    var copiesMemory: Bool { get }
    /// Whether `empty` may be called: bytes go on as they are, and their order is kept without this process.
    var takesPipes: Bool { get }
    /// Writes at most `count` bytes that are in a pipe.
    func empty(_ pipe: SocketPipe, count: Int) -> IOResult

    /// Nobody is at the other end: the connection was reset, or a local peer has closed its socket.
    var isHungUp: Bool { get }
    /// Has the peer asked from time to time whether it is there, so that `isHungUp` finds out.
    func askWhetherAnybodyIsThere()
    /// The peer reads what was written, and then the end. It may be read from still.
    func finishWriting()
    /// The last call.
    /// - Parameter resets: the peer sees that the connection broke off, and drops what it has not read.
    func close(resets: Bool)
}

/// What transport and peer have to agree on before anything else, such as TLS; loop-bound, and a part of its transport.
package protocol TransportHandshake: AnyObject {
    /// Whether nobody reads along once it is done; a transport that serves both kinds of clients knows it then.
    var isSecure: Bool { get }
    /// What was agreed on, once it is done; nil by default, and for what is plain.
    var agreement: SecureSession? { get }
    /// Goes on as far as what has come allows. Called first when the transport has begun, and then when what the last
    /// step waits for is there.
    func step() -> HandshakeStep
}

extension TransportHandshake {
    package var agreement: SecureSession? { nil }
}

/// What both ends of a transport have agreed on, in the words of logs.
package final class SecureSession: Sendable, Hashable {
    /// Such as `TLSv1.3`.
    package let version: String
    /// Such as `TLS_AES_256_GCM_SHA384`.
    package let cipher: String
    /// The name that the client has asked for; nil if it asked for none.
    package let serverName: String?
    /// Whether an earlier session went on.
    package let isResumed: Bool

    package init(version: String, cipher: String, serverName: String?, isResumed: Bool) {
        self.version = version
        self.cipher = cipher
        self.serverName = serverName
        self.isResumed = isResumed
    }

    /// For a line of the log.
    package var facts: [(String, String)] {
        [
            ("tls", version), ("cipher", cipher), ("sni", serverName ?? ""), ("resumed", isResumed ? "true" : "false"),
        ]
    }

    package static func == (left: SecureSession, right: SecureSession) -> Bool {
        left.version == right.version && left.cipher == right.cipher && left.serverName == right.serverName
            && left.isResumed == right.isResumed
    }

    package func hash(into hasher: inout Hasher) {
        hasher.combine(version)
        hasher.combine(cipher)
        hasher.combine(serverName)
        hasher.combine(isResumed)
    }
}

/// How far a handshake has come.
package enum HandshakeStep: Equatable {
    /// It is complete; the text names the protocol that was agreed on (RFC 7301), nil if none was spoken of.
    case done(protocol: String?)
    /// It goes on when the transport is ready for this. Nothing: it waits for something else, such as a certificate, and
    /// the transport tells its handler of the readiness to write when that is there.
    case waits(IOReadiness)
    /// There is no agreement: the transport is of no use, and is to be closed. The text says why, for a log.
    case failed(String)
}

/// A socket, TCP or local, as it is.
package final class PlainTransport: ByteTransport {
    /// Taken over; -1 once closed.
    // Unchecked: no code outside runs while this variable changes, and each access would pay for the check.
    @exclusivity(unchecked) private var descriptor: Int32
    private let isLocal: Bool
    package let copiesMemory: Bool
    private var event: IOEvent?

    /// - Parameters:
    ///   - descriptor: non-blocking; taken over.
    ///   - isLocal: a unix socket.
    ///   - copiesMemory: as in ``ByteTransport``.
    package init(_ descriptor: Int32, isLocal: Bool = false, copiesMemory: Bool = false) {
        self.descriptor = descriptor
        self.isLocal = isLocal
        self.copiesMemory = copiesMemory
        if !isLocal { Socket.setNoDelay(descriptor) }
    }

    package func begin(on loop: isolated EventLoop, _ handler: any IOHandler) {
        event?.cancel()
        event = IOEvent(on: loop, descriptor: descriptor, handler: handler)
    }

    package func watch(_ wanted: IOReadiness) { event?.watch(wanted) }

    package func stop() {
        event?.cancel()
        event = nil
    }

    package var handshake: (any TransportHandshake)? { nil }

    /// The end of a plain socket is in order as far as anybody can tell: what comes over it says how long it is.
    package func read(into buffer: UnsafeMutableRawBufferPointer) -> IOResult { Socket.read(descriptor, into: buffer) }

    package var readsAhead: Bool { false }
    package var hasPending: Bool { false }

    /// Looks at what comes next, at most `buffer.count` bytes, which stay to be read.
    package func peek(into buffer: UnsafeMutableRawBufferPointer) -> IOResult { Socket.peek(descriptor, into: buffer) }

    /// The address of this end of the connection; nil for a unix socket, and if the kernel does not say.
    package var ownAddress: SocketAddress? { isLocal ? nil : Socket.ownAddress(of: descriptor) }

    /// Another descriptor of the socket, for whoever goes on with it when this is closed; nil if there can be none.
    package var copyOfDescriptor: Int32? {
        let copy = fcntl(descriptor, F_DUPFD_CLOEXEC, 3)
        return copy < 0 ? nil : copy
    }

    package func write(_ bytes: UnsafeRawBufferPointer) -> IOResult { Socket.write(descriptor, bytes) }

    // Valid during the call, as the protocol says.
    package func write(_ vectors: UnsafeMutablePointer<iovec>, count: Int, isFollowed: Bool) -> IOResult {
        Socket.write(descriptor, vectors, count: count, isFollowed: isFollowed)
    }

    package func sendFile(_ file: Int32, offset: Int64, count: Int) -> IOResult {
        Socket.sendFile(descriptor, file: file, offset: offset, count: count)
    }

    package var takesPipes: Bool { true }

    package func empty(_ pipe: SocketPipe, count: Int) -> IOResult { pipe.empty(into: descriptor, count: count) }

    package var isHungUp: Bool {
        var state = pollfd(fd: descriptor, events: 0, revents: 0)
        return poll(&state, 1, 0) > 0 && state.revents & Int16(POLLHUP | POLLERR) != 0
    }

    /// A peer that has closed its socket forgets it after a minute, and then says so.
    package func askWhetherAnybodyIsThere() {
        guard !isLocal else { return }
        let size = socklen_t(MemoryLayout<Int32>.size)
        var (one, seconds): (Int32, Int32) = (1, 15)
        setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_KEEPIDLE, &seconds, size)
        setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_KEEPINTVL, &seconds, size)
        setsockopt(descriptor, SOL_SOCKET, SO_KEEPALIVE, &one, size)
    }

    package func finishWriting() { Socket.finishWriting(descriptor) }

    package func close(resets: Bool) {
        guard descriptor >= 0 else { return }
        stop()
        if resets {
            var option = Glibc.linger(l_onoff: 1, l_linger: 0)
            setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &option, socklen_t(MemoryLayout<Glibc.linger>.size))
        }
        Socket.close(descriptor)
        descriptor = -1
    }
}

@available(*, unavailable) extension PlainTransport: Sendable {}
