// What a connection speaks over: a plain socket, the listener that accepted it, and the transport that is left when an
// exchange gives it up for a tunnel.

package import EventLoop
package import Glibc

/// The way to a client, or to the other end of a tunnel; loop-bound. Whoever begins it owns it, and ends it by `close`.
///
/// No call waits. A result of `.wouldBlock` means: `watch` for readiness, and make the call again.
package protocol Transport: AnyObject {
    /// From now on `handler` is called for what is watched, which is nothing at first. It
    /// replaces the handler before it. A transport does not hold it: its owner calls `stop` or `close` before it goes.
    func begin(on loop: isolated EventLoop, _ handler: any IOHandler)
    /// Changes what is watched; without effect before `begin` and after `stop`.
    func watch(_ wanted: IOReadiness)
    /// Calls the handler no more. The transport stays open, for another handler.
    func stop()

    /// Reads what is there, at most `buffer.count` bytes.
    func read(into buffer: UnsafeMutableRawBufferPointer) -> IOResult
    /// Writes as much as is taken now.
    func write(_ bytes: UnsafeRawBufferPointer) -> IOResult
    /// Writes as much of up to `count` buffers as is taken now. They are valid during the call.
    /// - Parameter isBeforeFile: `sendFile` follows, and these bytes had better leave together with those of the file.
    func write(_ vectors: UnsafeMutablePointer<iovec>, count: Int, isBeforeFile: Bool) -> IOResult
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

/// A socket, TCP or local, as it is.
package final class PlainTransport: Transport {
    /// Taken over; -1 once closed.
    // Unchecked: no code outside runs while this variable changes, and each access would pay for the check.
    @exclusivity(unchecked) private var descriptor: Int32
    private let isLocal: Bool
    package let copiesMemory: Bool
    private var event: IOEvent?

    /// - Parameters:
    ///   - descriptor: non-blocking; taken over.
    ///   - isLocal: a unix socket.
    ///   - copiesMemory: as in ``Transport``.
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

    package func read(into buffer: UnsafeMutableRawBufferPointer) -> IOResult { Socket.read(descriptor, into: buffer) }

    package func write(_ bytes: UnsafeRawBufferPointer) -> IOResult { Socket.write(descriptor, bytes) }

    // Valid during the call, as the protocol says.
    package func write(_ vectors: UnsafeMutablePointer<iovec>, count: Int, isBeforeFile: Bool) -> IOResult {
        Socket.write(descriptor, vectors, count: count, isBeforeFile: isBeforeFile)
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

// MARK: - Where a connection came in

/// What a listener is for.
package enum ListenerRole: Sendable, Hashable {
    /// Reverse and forward mode.
    case proxy
    /// The admin API: outside caps, access log and request counters.
    case admin
}

/// The listener at which a connection came in.
package final class ListenerInfo: Sendable {
    package let role: ListenerRole
    package let address: SocketAddress

    package init(role: ListenerRole, address: SocketAddress) {
        self.role = role
        self.address = address
    }
}

// MARK: - The transport to a client that an exchange gives up for a tunnel

/// A transport without an exchange; its owner ends it. Loop-bound.
package final class DetachedTransport {
    let transport: any Transport
    /// Bytes that the client sent after its head.
    package let received: [UInt8]
    /// Bytes that the client has not taken yet.
    let unsent: [UInt8]
    /// The exchange that the end of the daemon waits for.
    let waitedFor: WaitedFor
    private let ended: (_ sent: Int, _ error: String?) -> Void

    /// - Parameter ended: writes the log line and frees the connection's slot; called once, with the bytes that were
    ///   sent to the client, and with the reason if neither side has ended the tunnel.
    init(
        _ transport: any Transport,
        received: [UInt8],
        unsent: [UInt8],
        waitedFor: WaitedFor,
        ended: @escaping (_ sent: Int, _ error: String?) -> Void
    ) {
        self.transport = transport
        self.received = received
        self.unsent = unsent
        self.waitedFor = waitedFor
        self.ended = ended
    }

    /// Closes the transport.
    /// - Parameters:
    ///   - sent: the number of bytes that were sent to the client.
    ///   - error: the reason for the log; nil if one of the sides has ended the tunnel.
    func end(sent: Int, error: String?) {
        transport.close(resets: false)
        ended(sent, error)
    }
}

@available(*, unavailable) extension DetachedTransport: Sendable {}
