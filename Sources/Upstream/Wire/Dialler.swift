// Dials origins: opens a connection to the first of several addresses that accepts it (a simple form of RFC 8305
// section 5), for transfers and for tasks that wait for it.

package import EventLoop

/// The target of a connection and the deadline for it; the time runs from the creation of this value.
///
/// A proxy looks the name up itself, so `rules` apply only if the host is an address.
package struct DialTarget: Sendable {
    /// A name or an address, IPv6 with or without brackets.
    package let host: String
    package let port: UInt16
    package let rules: TargetRules
    /// The proxy that opens a tunnel to the target; nil to connect to it directly.
    package let proxy: UpstreamProxy?
    /// The entries of Via for the proxy.
    private let via: [String]
    /// The deadline in monotonic nanoseconds; nil if there is none.
    let deadline: UInt64?

    /// - Parameters:
    ///   - timeout: the nanoseconds for name resolution and connecting together; nil for no limit.
    ///   - proxy: the proxy to open a tunnel to the target; nil for none.
    ///   - via: the entries of Via for the proxy, by which a loop is found.
    package init(
        host: String,
        port: UInt16,
        rules: TargetRules,
        timeout: UInt64?,
        proxy: UpstreamProxy? = nil,
        via: [String] = []
    ) {
        self.host = host
        self.port = port
        self.rules = rules
        self.proxy = proxy
        self.via = via
        let now = Monotonic.now()
        deadline = timeout.map { now + min($0, .max - now) }
    }

    /// The nanoseconds up to the deadline, at least one; nil for no limit.
    package var timeLeft: UInt64? {
        let now = Monotonic.now()
        return deadline.map { $0 > now ? $0 - now : 1 }
    }

    /// The target as errors name it.
    fileprivate var name: String { UpstreamURL.destinationName(host, port, proxy) }

    /// The host to look up and connect to, and the rules for its addresses.
    fileprivate var hop: (host: String, port: UInt16, rules: TargetRules) {
        proxy.map { ($0.host, $0.port, .any) } ?? (host, port, rules)
    }

    fileprivate var tunnel: TunnelRequest? { proxy.map { TunnelRequest($0, to: host, port, via: via) } }
}

/// The dials of one loop that tasks wait for; loop-bound, owned by the client.
///
/// Each has a number, by which another thread can refer to it: an answer of the resolver, or the cancellation of a
/// task.
package final class Dialler {
    private typealias Waiter<Value> = UnsafeContinuation<Result<Value, UpstreamError>, Never>

    private struct Wait {
        let target: DialTarget
        let timer: LoopTimer?
        let fail: (UpstreamError) -> Void
        var question: ResolverQuestion?
        var dial: Dial?
        var owner: TaskDial?
    }

    private let loop: EventLoop
    private let resolver: Resolver
    private let reference = DiallerReference()
    private var waits: [UInt64: Wait] = [:]
    private var last: UInt64 = 0
    private var isClosed = false
    /// The count of sockets that are open but not yet given to their tasks.
    fileprivate(set) var socketCount = 0

    init(on loop: EventLoop, resolver: Resolver) {
        self.loop = loop
        self.resolver = resolver
        reference.dialler = self
    }

    deinit { reference.dialler = nil }

    /// The addresses of the target, or of its proxy if there is one, that the rules allow.
    /// - Throws: `.timeout(.resolve)` at its deadline; `.cancelled` when the task is cancelled.
    package func addresses(
        of target: DialTarget,
        on loop: isolated EventLoop
    ) async throws(UpstreamError) -> [SocketAddress] {
        if target.proxy != nil,
            let own = SystemResolver.numeric(ResolverKey(host: target.host, port: target.port).host, port: target.port),
            !target.rules.allows(own)
        {
            throw .refused(target.name, at: own.host)
        }
        let hop = target.hop
        let proxy = target.proxy
        if let known = resolver.known(hop.host, port: hop.port, rules: hop.rules) {
            return try known.mapError { error in proxy.map(error.of) ?? error }.get()
        }
        return try await wait(target, .resolve, on: loop) { number, waiter in
            let reference = reference
            let question = resolver.ask(hop.host, port: hop.port, rules: hop.rules) {
                [loop = self.loop] result in
                loop.submit { _ in
                    guard reference.dialler?.end(number) != nil else { return }
                    waiter.resume(returning: result.mapError { error in proxy.map(error.of) ?? error })
                }
            }
            waits[number]?.question = question
        }
    }

    /// Connects to the first of the addresses that answers, each with a head start before the next. If a proxy is
    /// there, it is asked for a tunnel to the target.
    /// - Parameter addresses: those of ``addresses(of:on:)``.
    /// - Returns: a socket that does not block, which the caller has to close.
    /// - Throws: `.timeout(.connect)` at the target's deadline; `.cancelled` when the task is cancelled; `.proxy` if a
    ///   proxy opens no tunnel; then no socket stays open.
    package func connect(
        to addresses: [SocketAddress],
        of target: DialTarget,
        on loop: isolated EventLoop
    ) async throws(UpstreamError) -> Int32 {
        try await wait(target, .connect, on: loop) { number, waiter in
            let owner = TaskDial(self, number) { waiter.resume(returning: .success($0)) }
            let dial = Dial(addresses, target.hop.rules, tunnel: target.tunnel, for: owner, on: self.loop)
            waits[number]?.owner = owner
            waits[number]?.dial = dial
            dial.next()
        }
    }

    /// Waits for the work that `begin` starts; the wait also ends with the deadline and with the task.
    private func wait<Value: Sendable>(
        _ target: DialTarget,
        _ phase: TimeoutPhase,
        on loop: isolated EventLoop,
        _ begin: (UInt64, Waiter<Value>) -> Void
    ) async throws(UpstreamError) -> Value {
        last += 1
        let number = last
        let result: Result<Value, UpstreamError> = await withTaskCancellationHandler {
            await withUnsafeContinuation { waiter in
                if Task.isCancelled { return waiter.resume(returning: .failure(Self.left(target))) }
                if isClosed { return waiter.resume(returning: .failure(Self.cut(target))) }
                let timer = target.deadline.map { startTimer(number, $0, phase) }
                waits[number] = Wait(target: target, timer: timer) { waiter.resume(returning: .failure($0)) }
                begin(number, waiter)
            }
        } onCancel: { [reference] in
            loop.submit { _ in reference.dialler?.fail(number, Self.left) }
        }
        return try result.get()
    }

    private func startTimer(_ number: UInt64, _ deadline: UInt64, _ phase: TimeoutPhase) -> LoopTimer {
        // Unowned: this object owns the timer, which ends with it.
        let timer = LoopTimer(onThreadOf: loop) { [unowned self] in
            fail(number) { ConnectionFailure.timeout($0.name, phase) }
        }
        let now = Monotonic.now()
        timer.start(after: deadline > now ? deadline - now : 0)
        return timer
    }

    // MARK: - The end

    /// Ends the wait with this number; nil if there is none.
    fileprivate func end(_ number: UInt64) -> DialTarget? {
        guard let wait = waits.removeValue(forKey: number) else { return nil }
        wait.timer?.cancel()
        wait.question?.leave()
        wait.dial?.cancel()
        return wait.target
    }

    fileprivate func fail(_ number: UInt64, _ error: (DialTarget) -> UpstreamError) {
        guard let fail = waits[number]?.fail, let target = end(number) else { return }
        fail(error(target))
    }

    fileprivate func fail(_ number: UInt64, _ failure: Dial.Failure) {
        fail(number) { failure.error($0.name, isProxied: $0.proxy != nil) }
    }

    private static func left(_ target: DialTarget) -> UpstreamError {
        UpstreamError(.cancelled, detail: "the client left before \(target.name) was reached")
    }

    private static func cut(_ target: DialTarget) -> UpstreamError {
        UpstreamError(.cancelled, detail: "the connection to \(target.name) was cut by the shutdown")
    }

    /// Ends every dial; later ones fail.
    func close() {
        isClosed = true
        for number in waits.keys.sorted() { fail(number, Self.cut) }
    }
}

@available(*, unavailable) extension Dialler: Sendable {}

/// The dial that one task waits for; loop-bound, held by the dialler.
private final class TaskDial: DialOwner {
    // Unowned: the dialler holds this object, and releases it first.
    private unowned let dialler: Dialler
    private let number: UInt64
    private let succeed: (Int32) -> Void

    init(_ dialler: Dialler, _ number: UInt64, succeed: @escaping (Int32) -> Void) {
        self.dialler = dialler
        self.number = number
        self.succeed = succeed
    }

    /// Runs an event of the dial; the waiting task is resumed by its continuation, not from within this call.
    func dialEvent(_ body: () -> Void) { body() }

    func dialCounts(_ sockets: Int) { dialler.socketCount += sockets }

    func connected(_ descriptor: Int32, to address: SocketAddress) {
        dialler.socketCount -= 1
        _ = dialler.end(number)
        succeed(descriptor)
    }

    func dialFailed(_ failure: Dial.Failure) { dialler.fail(number, failure) }
}

/// The way by which another thread's answer finds the dialler: the reference is passed between threads, its content is
/// read on the loop only.
private final class DiallerReference: @unchecked Sendable {  // `dialler` is read and written on the loop's thread only
    // Unowned: the dialler clears it when it ends.
    unowned var dialler: Dialler?
}

// MARK: - One dial

/// The owner of a dial, which it holds; loop-bound.
protocol DialOwner: AnyObject {
    /// Runs an event of the dial.
    func dialEvent(_ body: () -> Void)
    /// Counts sockets that were opened, or closed if negative.
    func dialCounts(_ sockets: Int)
    /// Receives the socket, which is non-blocking and counts as open.
    func connected(_ descriptor: Int32, to address: SocketAddress)
    func dialFailed(_ failure: Dial.Failure)
}

/// One search for an address that answers; loop-bound, held by its owner.
///
/// The addresses are tried in their order; the next one when one has failed, or 200 ms after the last began. The first
/// connection that opens is taken, and the others are closed.
final class Dial {
    /// The reason why no connection could be opened.
    enum Failure {
        /// The system failed with this `errno` at the last attempt.
        case system(Int32)
        /// The rules refuse every address; this is one of them.
        case refused(SocketAddress)
        /// The proxy opens no tunnel.
        case tunnel(UpstreamError)

        /// The error for a transfer.
        /// - Parameters:
        ///   - name: host and port, and the proxy on the way there.
        ///   - isProxied: whether there is a proxy.
        func error(_ name: String, isProxied: Bool) -> UpstreamError {
            switch self {
            case .refused(let address): .refused(name, at: address.host)
            case .tunnel(let error): error
            case .system(let code):
                ConnectionFailure.connect(name, code, text: "no address is left to try", isProxied: isProxied)
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
    /// The opening of a tunnel, if one is wanted; it begins when there is a connection.
    private var opening: TunnelOpening?

    /// - Parameter tunnel: the request to the peer, a proxy, before the owner gets the socket; nil for none.
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
            // The resolver has checked the addresses; this makes sure that no connection begins that the rules do not
            // allow.
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
        // Unowned: this object owns the timer, which ends with it.
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
        // Both are unowned: this object owns the opening, which ends with it.
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
        // Bytes are sent without a delay, as by default in libcurl.
        Socket.setNoDelay(descriptor)
        let event = IOEvent(onThreadOf: loop, descriptor: descriptor, handler: self)
        event.watch(.write)
        self.event = event
    }

    func ready(_ readiness: IOReadiness) {
        dial.owner.dialEvent { dial.ended(self) }
    }

    /// Hands the descriptor over to the caller.
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
