// Opens a connection to the first of several addresses that takes it (RFC 8305 section 5, in its simple form).

internal import EventLoop

/// One search for an address that answers; loop-bound, held by the connection it is for.
///
/// The addresses are tried in their order; the next one when one has failed, or 200 ms after the last began. The first that
/// stands wins, and the others are closed.
final class WireDial {
    /// What comes of it when nothing stands.
    enum Failure {
        /// `errno` of the last attempt.
        case system(Int32)
        /// The rules refuse every address; this is one of them.
        case refused(SocketAddress)
    }

    private static let headStart: UInt64 = 200_000_000

    private let pool: WirePool
    private let rules: TargetRules
    private unowned let connection: WireConnection
    private var addresses: ArraySlice<SocketAddress>
    private var attempts: [WireAttempt] = []
    private var failure = Failure.system(0)
    private var timer: LoopTimer?

    init(_ addresses: [SocketAddress], _ rules: TargetRules, for connection: WireConnection, _ pool: WirePool) {
        self.addresses = addresses[...]
        self.rules = rules
        self.connection = connection
        self.pool = pool
    }

    /// Begins with the next address. The connection hears how it ends, at once where nothing can be begun.
    func next() {
        while let address = addresses.popFirst() {
            // The resolver has judged them; but no connection begins that the rules do not allow.
            guard rules.allows(address) else {
                failure = .refused(address)
                continue
            }
            do throws(SystemError) {
                let descriptor = try Socket.connect(to: address)
                attempts.append(WireAttempt(descriptor, address, self, pool))
                if !addresses.isEmpty { startTimer() }
                return
            } catch {
                failure = .system(error.code)
            }
        }
        if attempts.isEmpty { connection.dialFailed(failure) }
    }

    private func startTimer() {
        // Unowned: the timer is this object's own and ends with it.
        let timer =
            timer
            ?? pool.loop.makeTimer { [unowned self, pool] in
                pool.event { next() }
            }
        self.timer = timer
        timer.start(after: Self.headStart)
    }

    fileprivate func ended(_ attempt: WireAttempt) {
        let error = Socket.pendingError(attempt.descriptor)
        attempts.removeAll { $0 === attempt }
        guard error != 0 else {
            let descriptor = attempt.takeDescriptor()
            cancel()
            return connection.connected(descriptor, to: attempt.address)
        }
        attempt.close()
        failure = .system(error)
        timer?.cancel()
        next()
    }

    /// Closes what was begun.
    func cancel() {
        timer?.cancel()
        addresses = []
        for attempt in attempts { attempt.close() }
        attempts = []
    }
}

@available(*, unavailable) extension WireDial: Sendable {}

/// A socket that connects; loop-bound, held by the dial.
private final class WireAttempt: IOHandler {
    let address: SocketAddress
    private(set) var descriptor: Int32
    private unowned let dial: WireDial
    private let pool: WirePool
    private var event: IOEvent?

    init(_ descriptor: Int32, _ address: SocketAddress, _ dial: WireDial, _ pool: WirePool) {
        self.descriptor = descriptor
        self.address = address
        self.dial = dial
        self.pool = pool
        pool.socketCount += 1
        // libcurl's default, too: what is sent leaves at once.
        Socket.setNoDelay(descriptor)
        let event = pool.loop.makeEvent(descriptor, self)
        event.watch(.write)
        self.event = event
    }

    func ready(_ readiness: IOReadiness) {
        pool.event { dial.ended(self) }
    }

    /// Hands the descriptor over.
    func takeDescriptor() -> Int32 {
        event?.cancel()
        event = nil
        defer { descriptor = -1 }
        return descriptor
    }

    func close() {
        guard descriptor >= 0 else { return }
        Socket.close(takeDescriptor())
        pool.socketCount -= 1
    }
}
