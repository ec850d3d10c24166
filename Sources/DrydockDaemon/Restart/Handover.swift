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
    private let context: DaemonContext
    private let ended: EndRequest
    private let obstacle: String?
    private let underway = Mutex<Handover?>(nil)

    /// - Parameters:
    ///   - ended: asked to end the daemon when the next one is about to serve.
    ///   - obstacle: why this daemon is never handed over; nil if it may be.
    init(_ context: DaemonContext, ended: EndRequest, obstacle: String?) {
        self.context = context
        self.ended = ended
        self.obstacle = obstacle
    }

    /// The take-over that the daemon ends by; nil if it ends for another reason.
    var agreed: Handover? { underway.withLock { $0 }.flatMap { $0.isAgreed ? $0 : nil } }

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
        if let obstacle { throw Self.conflict(obstacle) }
        guard !context.isStopping, let sockets = await context.server?.sockets() else {
            throw Self.conflict("it is ending")
        }
        let handover = Handover(sockets, keys: context.parts.security.listeners.tickets, logger: context.parts.logger)
        let isFirst = underway.withLock { underway in
            guard underway == nil else { return false }
            underway = handover
            return true
        }
        guard isFirst else {
            handover.end()
            throw Self.conflict("another daemon is taking over from it already")
        }
        let giveUp: @Sendable () -> Void = { [self] in
            underway.withLock { $0 = nil }
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
    private struct State {
        var channel: Int32 = -1
        var isAgreed = false
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

    /// Whether the next daemon has taken the offer.
    var isAgreed: Bool { state.withLock { $0.isAgreed } }
    var ticketKeys: [UInt8] { keys.exported }

    /// Offers the sockets over a channel, which is taken over.
    /// - Returns: whether the next daemon takes them.
    func offer(on channel: Int32) -> Bool {
        state.withLock { $0.channel = channel }
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
            guard try TakeOver.line(from: channel)?.text == TakeOver.take else {
                logger.notice("a daemon has asked to take over, and has given it up: this one goes on")
                return false
            }
        } catch {
            logger.notice("a daemon has asked to take over, and no more was heard of it (\(error)): this one goes on")
            return false
        }
        state.withLock { $0.isAgreed = true }
        logger.info("another daemon takes over: this one finishes the answers under way, and ends")
        return true
    }

    /// Tells the next daemon that nothing is written to the store any more. Any thread; does not wait.
    func letGo() {
        let channel = state.withLock { $0.channel }
        try? PassedFiles.send(Array("\(TakeOver.gone)\n".utf8), to: channel)
        logger.info("the store is closed, and the next daemon opens it")
    }

    /// Waits until the next daemon serves, or has ended.
    func follow() {
        let channel = state.withLock { $0.channel }
        PassedFiles.boundWaits(of: channel, seconds: 0)
        let succeeded = (try? TakeOver.line(from: channel))??.text == TakeOver.ready
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
