// The watchdog of a daemon: it watches the loops and pools, tells the service manager that all is well, and ends a
// daemon that does not end by itself.

import CacheStore
import DownloadCore
import EventLoop
import Glibc
import Logging
import ProxyServer
import Synchronization

/// Looks for stalled loops and pools once a second, on a thread of its own.
///
/// Sendable: the mutable state is under a mutex; the detector protects itself.
final class Watchdog: DaemonFeature {
    /// The means by which the watchdog acts on its process; tests replace them.
    struct Actions: Sendable {
        /// Tells the service manager that all is well.
        var notify: @Sendable () -> Void = {}
        /// Called with true when a loop has stalled, since signals are not handled then, and with false when all loops
        /// go on.
        var loopsStand: @Sendable (_ isSo: Bool) -> Void = { _ in }
        /// Ends the process at once.
        var exit: @Sendable (Int32) -> Void = { _exit($0) }
    }

    private struct State {
        var isStopped = false
        /// The time, in monotonic nanoseconds, after which a daemon that is ending is killed if a part of it is
        /// stalled.
        var deadline: UInt64?
        /// The time, in monotonic nanoseconds, after which a daemon that is ending is killed in any case.
        var lastDeadline: UInt64?
        var lastNotice: UInt64?
        var loopsStand = false
    }

    /// The most nanoseconds between two looks.
    static let interval: UInt64 = 1_000_000_000
    /// Nanoseconds that a daemon has after its `shutdown` time for its last writes.
    static let lastWrites: UInt64 = 10_000_000_000
    /// Nanoseconds of silence after which a part counts as stalled once the daemon is ending.
    static let endingSilence: UInt64 = 1_000_000_000

    let watch: StallDetector
    private let logger: Logger
    private let actions: Actions
    /// Nanoseconds between two looks.
    private let interval: UInt64
    /// Nanoseconds within which the service manager expects a notice; nil if it expects none.
    private let noticeEvery: UInt64?
    private let state = Mutex(State())
    /// The pipe that wakes the thread: ``stop()`` writes to it, and this object closes both ends.
    private let wake: (read: Int32, write: Int32)

    /// - Parameter noticeEvery: nanoseconds within which the service manager expects a notice; nil if it expects none.
    init(_ heartbeats: [Heartbeat], noticeEvery: UInt64?, logger: Logger, actions: Actions) {
        interval = min(Self.interval, max(10_000_000, (noticeEvery ?? .max) / 4))
        watch = StallDetector(heartbeats, interval: interval)
        self.noticeEvery = noticeEvery
        self.logger = logger
        self.actions = actions
        var ends: [Int32] = [-1, -1]
        if pipe(&ends) == 0 { for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) } }
        wake = (ends[0], ends[1])
    }

    deinit {
        for end in [wake.read, wake.write] where end >= 0 { close(end) }
    }

    /// Starts the thread; the first look and the first notice come at once.
    func start() {
        DetachedThread.run { [self] in
            while !state.withLock({ $0.isStopped }) {
                turn(now: Monotonic.now())
                var fact = pollfd(fd: wake.read, events: Int16(POLLIN), revents: 0)
                _ = poll(&fact, 1, Int32(clamping: interval / 1_000_000))
            }
        }
    }

    /// Looks once, and acts on the findings. On the watchdog's thread.
    /// - Parameter now: monotonic nanoseconds.
    func turn(now: UInt64) {
        for finding in watch.look(now: now) { tell(finding) }
        let standing = watch.standing
        let hasStillLoop = watch.hasStillLoop
        let (isDue, isChange) = state.withLock { state in
            defer { state.loopsStand = hasStillLoop }
            let isDue = standing.isEmpty && state.lastNotice.map { now &- $0 >= (noticeEvery ?? .max) / 2 } ?? true
            if isDue { state.lastNotice = now }
            return (isDue && noticeEvery != nil, state.loopsStand != hasStillLoop)
        }
        if isDue { actions.notify() }
        if isChange { actions.loopsStand(hasStillLoop) }
        endIfDue(now: now)
    }

    private func tell(_ finding: StallDetector.Finding) {
        switch finding {
        case .still(let name, let seconds):
            let follows =
                noticeEvery == nil ? "restart the daemon" : "the service manager is told nothing more, and restarts it"
            logger.error("\(name) has stood still for \(seconds) s: \(follows)")
        case .slow(let name, let seconds):
            logger.warning("\(name) has waited for a disk, or computed, for \(seconds) s: look at the disk")
        case .goesOn(let name): logger.notice("\(name) goes on")
        }
    }

    // MARK: - The end

    /// Sets the time of the daemon's end. After `grace` nanoseconds the process is killed if a part of it is stalled,
    /// and ``lastWrites`` later in any case.
    func expectEnd(within grace: UInt64, now: UInt64 = Monotonic.now()) {
        let deadline = now &+ min(grace, .max - now)
        state.withLock { state in
            state.deadline = deadline
            state.lastDeadline = deadline &+ min(Self.lastWrites, .max - deadline)
        }
    }

    /// Notes that all clients have their answers: from now on the end does not wait for a stalled part.
    func clientsAreServed(now: UInt64 = Monotonic.now()) {
        state.withLock { state in state.deadline = state.deadline.map { min($0, now) } }
    }

    private func endIfDue(now: UInt64) {
        let (isDue, isOver) = state.withLock { state in
            (state.deadline.map { now >= $0 } ?? false, state.lastDeadline.map { now >= $0 } ?? false)
        }
        guard isDue else { return }
        let silent = watch.silent(for: Self.endingSilence)
        if !silent.isEmpty {
            logger.error("ended without having finished: \(silent.joined(separator: ", ")) stands still")
        } else if isOver {
            logger.error("ended without having finished: what was to be written took too long")
        } else {
            return
        }
        actions.exit(1)
    }

    /// Leaves the loops out of later looks: they are about to end.
    func leaveOutLoops() { watch.leaveOutLoops() }

    /// Ends the thread.
    func stop() {
        state.withLock { $0.isStopped = true }
        var byte: UInt8 = 0
        if wake.write >= 0 { _ = write(wake.write, &byte, 1) }
    }

    var gauges: [Gauge] {
        [
            Gauge("drydock_standing_still", "Loops and pools that stand still.") { self.watch.standing.count },
            Gauge("drydock_standstills_total", "How often a loop or a pool was found to stand still.", isCounter: true)
            {
                self.watch.stalls
            },
        ]
    }
}

extension Watchdog {
    /// A watchdog over every loop and pool of a daemon.
    /// - Parameter ownsProcess: true if the signals of the process are this daemon's, and it may be killed.
    convenience init(_ parts: DaemonParts, notifier: ServiceManagerNotifier, ownsProcess: Bool) {
        // The variable is for slow machines, which need longer bounds, and for tests, which need shorter ones.
        let wanted = parts.environment["DRYDOCK_STANDSTILL_SECONDS"].flatMap { Double($0) }.flatMap { seconds in
            seconds >= 0.1 && seconds <= 86_400 ? UInt64(seconds * 1_000_000_000) : nil
        }
        var heartbeats = parts.loops.loops.map { Heartbeat($0, bound: wanted ?? Heartbeat.loopBound) }
        heartbeats.append(Heartbeat(parts.files, bound: wanted ?? Heartbeat.poolBound))
        heartbeats += parts.core.store.threads.map { Heartbeat($0, bound: wanted ?? Heartbeat.poolBound) }
        var names = Heartbeat(parts.names, bound: max(wanted ?? 0, Heartbeat.namesBound))
        names.holdsUpEnd = false
        heartbeats.append(names)
        var actions = Watchdog.Actions()
        if notifier.watchdog != nil { actions.notify = { notifier.alive() } }
        if ownsProcess {
            let signals = EndingSignals()
            actions.loopsStand = { signals.endAtOnce($0) }
        }
        self.init(heartbeats, noticeEvery: notifier.watchdog, logger: parts.logger, actions: actions)
    }
}

/// Lets SIGTERM and SIGINT end the process at once while the loop that handles them is stalled.
///
/// Sendable: the previous actions are under a mutex.
private final class EndingSignals: Sendable {
    private let before = Mutex<[(number: Int32, action: sigaction)]>([])

    func endAtOnce(_ isSo: Bool) {
        before.withLock { before in
            if isSo, before.isEmpty {
                for number in [SIGTERM, SIGINT] {
                    var (none, old) = (sigaction(), sigaction())
                    if sigaction(number, &none, &old) == 0 { before.append((number, old)) }
                }
            } else if !isSo {
                for (number, action) in before {
                    var action = action
                    sigaction(number, &action, nil)
                }
                before = []
            }
        }
    }
}
