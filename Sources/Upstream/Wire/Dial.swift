// Opens a connection to the first of several addresses that takes it (RFC 8305 section 5, in its simple form), and
// through the proxy there to the target, where that is wanted.

import EventLoop

/// Whom a dial is for; loop-bound. It holds the dial.
protocol DialOwner: AnyObject {
    /// Every event of the dial goes through here.
    func dialEvent(_ body: () -> Void)
    /// So many more sockets are open, or fewer.
    func dialCounts(_ sockets: Int)
    /// The owner gets the socket, which is non-blocking and counts as open.
    func connected(_ descriptor: Int32, to address: SocketAddress)
    func dialFailed(_ failure: Dial.Failure)
}

/// One search for an address that answers; loop-bound, held by its owner.
///
/// The addresses are tried in their order; the next one when one has failed, or 200 ms after the last began. The first
/// connection that opens is taken, and the others are closed.
final class Dial {
    /// Why no connection could be opened.
    enum Failure {
        /// `errno` of the last attempt.
        case system(Int32)
        /// The rules refuse every address; this is one of them.
        case refused(SocketAddress)
        /// The proxy opens no tunnel.
        case tunnel(UpstreamError)

        /// - Parameters:
        ///   - place: host and port, and the proxy on the way there.
        ///   - isProxied: there is one.
        func error(_ place: String, isProxied: Bool) -> UpstreamError {
            switch self {
            case .refused(let address): .refused(place, at: address.host)
            case .tunnel(let error): error
            case .system(let code):
                ConnectionFailure.connect(place, code, text: "no address is left to try", isProxied: isProxied)
            }
        }
    }

    private static let headStart: UInt64 = 200_000_000

    private let loop: EventLoop
    private let rules: TargetRules
    private let tunnel: TunnelRequest?
    fileprivate unowned let owner: any DialOwner
    private var addresses: ArraySlice<SocketAddress>
    private var attempts: [DialAttempt] = []
    private var failure = Failure.system(0)
    private var timer: LoopTimer?
    /// At work once there is a connection, if a tunnel is wanted.
    private var opening: TunnelOpening?

    /// - Parameter tunnel: what the peer, a proxy, is asked for before the owner gets the socket; nil: nothing.
    init(
        _ addresses: [SocketAddress],
        _ rules: TargetRules,
        tunnel: TunnelRequest? = nil,
        for owner: any DialOwner,
        on loop: EventLoop
    ) {
        self.addresses = addresses[...]
        self.rules = rules
        self.tunnel = tunnel
        self.owner = owner
        self.loop = loop
    }

    /// Tries the next address. The owner is told the result, at once if no attempt can begin.
    func next() {
        while let address = addresses.popFirst() {
            // The resolver has judged them; but no connection begins that the rules do not allow.
            guard rules.allows(address) else {
                failure = .refused(address)
                continue
            }
            do throws(SystemError) {
                let descriptor = try Socket.connect(to: address)
                attempts.append(DialAttempt(descriptor, address, self, on: loop))
                if !addresses.isEmpty { startTimer() }
                return
            } catch {
                failure = .system(error.code)
            }
        }
        if attempts.isEmpty { owner.dialFailed(failure) }
    }

    private func startTimer() {
        // Unowned: the timer is this object's own and ends with it.
        let timer =
            timer
            ?? LoopTimer(onThreadOf: loop) { [unowned self] in
                owner.dialEvent { next() }
            }
        self.timer = timer
        timer.start(after: Self.headStart)
    }

    fileprivate func ended(_ attempt: DialAttempt) {
        let error = Socket.pendingError(attempt.descriptor)
        attempts.removeAll { $0 === attempt }
        guard error != 0 else {
            let descriptor = attempt.takeDescriptor()
            cancel()
            guard let tunnel else { return owner.connected(descriptor, to: attempt.address) }
            return open(tunnel, descriptor, attempt.address)
        }
        attempt.close()
        failure = .system(error)
        timer?.cancel()
        next()
    }

    private func open(_ tunnel: TunnelRequest, _ descriptor: Int32, _ address: SocketAddress) {
        // Both unowned: the opening is this object's own and ends with it.
        let opening = TunnelOpening(tunnel, descriptor, on: loop) { [unowned self] event in
            owner.dialEvent(event)
        } completion: { [unowned self] error in
            guard let opening = self.opening else { return }
            self.opening = nil
            let descriptor = opening.takeDescriptor()
            guard let error else { return owner.connected(descriptor, to: address) }
            Socket.close(descriptor)
            owner.dialCounts(-1)
            owner.dialFailed(.tunnel(error))
        }
        self.opening = opening
        opening.begin()
    }

    /// Closes all attempts.
    func cancel() {
        if let opening {
            self.opening = nil
            Socket.close(opening.takeDescriptor())
            owner.dialCounts(-1)
        }
        timer?.cancel()
        addresses = []
        for attempt in attempts { attempt.close() }
        attempts = []
    }
}

@available(*, unavailable) extension Dial: Sendable {}

/// A socket that connects; loop-bound, held by the dial.
private final class DialAttempt: IOHandler {
    let address: SocketAddress
    private(set) var descriptor: Int32
    private unowned let dial: Dial
    private var event: IOEvent?

    init(_ descriptor: Int32, _ address: SocketAddress, _ dial: Dial, on loop: EventLoop) {
        self.descriptor = descriptor
        self.address = address
        self.dial = dial
        dial.owner.dialCounts(1)
        // As libcurl does by default: bytes are sent without a delay.
        Socket.setNoDelay(descriptor)
        let event = IOEvent(onThreadOf: loop, descriptor: descriptor, handler: self)
        event.watch(.write)
        self.event = event
    }

    func ready(_ readiness: IOReadiness) {
        dial.owner.dialEvent { dial.ended(self) }
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
        dial.owner.dialCounts(-1)
    }
}
