// The side of a take-over that hands over: the route by which the next daemon asks, and the conversation with it.

import EventLoop
import Glibc
import HTTPWire
import Logging
import ProxyServer
import ServiceCore
import Synchronization
import TLS

/// Hands the daemon's sockets to the next one. One take-over is under way at a time.
///
/// Sendable: the take-over under way is under a mutex.
final class HandoverService: DaemonFeature {
    private enum Phase { case starting, open, closed }

    private struct State {
        var underway: Handover?
        /// The phase of the daemon: only an open one has all of its sockets, and may be taken over.
        var phase = Phase.starting
    }

    private let context: DaemonContext
    private let ended: EndRequest
    private let obstacle: String?
    private let state = Mutex(State())

    /// - Parameters:
    ///   - ended: asked to end the daemon when the next one is about to serve.
    ///   - obstacle: why this daemon is never handed over; nil if it may be.
    init(_ context: DaemonContext, ended: EndRequest, obstacle: String?) {
        self.context = context
        self.ended = ended
        self.obstacle = obstacle
    }

    /// Called when the daemon listens on all of its sockets.
    func open() { state.withLock { if $0.phase == .starting { $0.phase = .open } } }

    /// Called when the daemon ends, for whatever reason: a take-over that is not agreed yet is called off.
    /// - Returns: the take-over that it ends by; nil if there is none.
    func close() -> Handover? {
        let underway = state.withLock { state in
            state.phase = .closed
            return state.underway
        }
        guard let underway, !underway.callOff() else { return nil }
        return underway
    }

    var routes: [AdminRoute] {
        [
            AdminRoute(.post, .takeOver) { request async throws(Problem) in
                guard request.upgrade?.lowercased() == TakeOver.name else {
                    throw Problem(
                        status: 426,
                        title: "Upgrade required",
                        detail:
                            "this path hands the daemon over to 'drydock serve --take-over', which asks with Upgrade: \(TakeOver.name)",
                        fields: Fields([("Upgrade", TakeOver.name), ("Connection", "upgrade")])
                    )
                }
                return try await self.begin()
            }
        ]
    }

    private func begin() async throws(Problem) -> AdminAnswer {
        if let obstacle { throw Self.conflict("\(obstacle); stop it first") }
        guard state.withLock({ $0.phase != .starting }) else { throw Self.conflict("it is about to start; try again") }
        guard !context.isStopping, let sockets = await context.server?.sockets() else {
            throw Self.conflict("it is ending; try again when it has ended")
        }
        let handover = Handover(sockets, keys: context.parts.security.listeners.tickets, logger: context.parts.logger)
        let refusal = state.withLock { state -> String? in
            if state.phase == .closed { return "it is ending; try again when it has ended" }
            if state.underway != nil { return "another daemon is taking over from it already; try again" }
            state.underway = handover
            return nil
        }
        if let refusal {
            handover.end()
            throw Self.conflict(refusal)
        }
        let giveUp: @Sendable () -> Void = { [self] in
            state.withLock { $0.underway = nil }
            handover.end()
        }
        let upgrade = AdminUpgrade(
            to: TakeOver.name,
            taken: { [self] channel in
                DetachedThread.run {
                    guard handover.offer(on: channel) else { return giveUp() }
                    self.ended.set(.takeOver)
                    handover.follow()
                }
            },
            refused: giveUp
        )
        return AdminAnswer(upgrade)
    }

    private static func conflict(_ detail: String) -> Problem {
        Problem(status: 409, title: "Not handed over", detail: detail)
    }
}

/// The conversation with one daemon that takes over. Its calls block, and are made on a thread of its own, but for
/// ``letGo()`` and ``outcome()``.
///
/// Sendable: the state is under a mutex, and the sockets do not change.
final class Handover: Sendable {
    private enum Stage { case offered, agreed, calledOff }

    private struct State {
        var channel: Int32 = -1
        var stage = Stage.offered
        /// Whether the next daemon serves; nil until that is known.
        var succeeded: Bool?
        var waiter: UnsafeContinuation<Bool, Never>?
    }

    /// Seconds for which the next daemon may take to judge what it was offered.
    private static let patience = 60

    private let state = Mutex(State())
    /// Copies of the daemon's sockets: they go on listening when the daemon has closed its own.
    let sockets: [(role: ListenerRole, descriptor: Int32)]
    private let keys: TicketKeys
    private let logger: Logger

    init(_ sockets: [(role: ListenerRole, socket: ListeningSocket)], keys: TicketKeys, logger: Logger) {
        self.sockets = sockets.compactMap { role, socket in
            let copy = fcntl(socket.descriptor, F_DUPFD_CLOEXEC, 3)
            return copy < 0 ? nil : (role, copy)
        }
        self.keys = keys
        self.logger = logger
    }

    var ticketKeys: [UInt8] { keys.exported }

    /// Offers the sockets over a channel, which is taken over.
    /// - Returns: whether the next daemon takes them.
    func offer(on channel: Int32) -> Bool {
        let isCalledOff = state.withLock { state in
            state.channel = channel
            return state.stage == .calledOff
        }
        guard !isCalledOff else { return false }
        PassedFiles.makeBlocking(channel)
        PassedFiles.boundWaits(of: channel, seconds: Self.patience)
        let offer = TakeOver.Offer(
            version: DrydockVersion.current,
            pid: Int(getpid()),
            sockets: sockets.map(\.role.rawValue),
            keys: keys.exported
        )
        do {
            try PassedFiles.send(AdminJSON.encode(offer), with: sockets.map(\.descriptor), to: channel)
            guard try TakeOver.word(from: channel) == TakeOver.take else {
                logger.notice("a daemon has asked to take over, and has given it up: this one goes on")
                return false
            }
        } catch {
            logger.notice("a daemon has asked to take over, and no more was heard of it (\(error)): this one goes on")
            return false
        }
        let isAgreed = state.withLock { state in
            if state.stage == .offered { state.stage = .agreed }
            return state.stage == .agreed
        }
        guard isAgreed else {
            Self.say(TakeOver.ending, channel)
            return false
        }
        logger.info("another daemon takes over: this one finishes the answers under way, and ends")
        return true
    }

    /// Calls the take-over off, and tells the next daemon so, unless that has taken the offer. Any thread; does not wait.
    /// - Returns: whether it is called off.
    func callOff() -> Bool {
        // A copy: the thread of the conversation closes the channel when it hears from the other side.
        let (isCalledOff, copy) = state.withLock { state in
            if state.stage == .offered { state.stage = .calledOff }
            guard state.stage == .calledOff else { return (false, Int32(-1)) }
            return (true, state.channel < 0 ? -1 : fcntl(state.channel, F_DUPFD_CLOEXEC, 3))
        }
        if copy >= 0 {
            Self.say(TakeOver.ending, copy)
            Glibc.close(copy)
        }
        return isCalledOff
    }

    /// A failure is left to the other side, which finds the channel closed.
    private static func say(_ word: String, _ channel: Int32) {
        try? PassedFiles.send(Array("\(word)\n".utf8), to: channel)
    }

    /// Tells the next daemon that nothing is written to the store any more. Any thread; does not wait.
    func letGo() {
        let channel = state.withLock { $0.channel }
        Self.say(TakeOver.gone, channel)
        logger.info("the store is closed, and the next daemon opens it")
    }

    /// Waits until the next daemon serves, or has ended.
    func follow() {
        let channel = state.withLock { $0.channel }
        PassedFiles.boundWaits(of: channel, seconds: 0)
        let succeeded = (try? TakeOver.word(from: channel)) == TakeOver.ready
        let waiter = state.withLock { state in
            state.succeeded = succeeded
            defer { state.waiter = nil }
            return state.waiter
        }
        waiter?.resume(returning: succeeded)
    }

    /// Waits for what ``follow()`` finds out, and closes the channel.
    /// - Returns: whether the next daemon serves.
    func outcome() async -> Bool {
        let succeeded = await withUnsafeContinuation { waiter in
            let known = state.withLock { state in
                if state.succeeded == nil { state.waiter = waiter }
                return state.succeeded
            }
            if let known { waiter.resume(returning: known) }
        }
        if succeeded { end() }
        return succeeded
    }

    /// Closes the channel and the copies.
    func end() {
        let channel = state.withLock { state in
            defer { state.channel = -1 }
            return state.channel
        }
        if channel >= 0 { close(channel) }
        for (_, descriptor) in sockets { close(descriptor) }
    }
}
