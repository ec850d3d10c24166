// The signals of a daemon: SIGHUP reloads, SIGTERM and SIGINT end it after the answers under way.

internal import EventLoop
import Glibc
import Synchronization

extension Daemon {
    /// Serves until SIGTERM or SIGINT, then drains; returns when everything has ended.
    package func runUntilStopped() async {
        let signal = await withUnsafeContinuation { ended.wait($0) }
        await stop(signal)
    }

    /// From now on signals are heard; they are kept for ``runUntilStopped()``.
    func watchSignals(on loop: isolated EventLoop) {
        let ended = ended
        let watches = SignalWatches()
        for signal in [SIGTERM, SIGINT] {
            watches.ends.append(
                SignalWatch(on: loop, signal: signal) {
                    // The watches end with the first of them, so that a second signal ends the process at once.
                    watches.ends = []
                    // Also where whoever started the daemon had them ignored, as a shell does for what runs in the background.
                    for number in [SIGTERM, SIGINT] { Glibc.signal(number, SIG_DFL) }
                    ended.set(signal)
                }
            )
        }
        watches.keepAlive = watches
    }

    /// Reloads as often as it is asked for; also for what was asked before the daemon was there.
    func hear(_ requests: ReloadRequests) {
        requests.hear { [weak self] in
            guard let self else { return }
            Task { _ = await self.reload() }
        }
    }
}

/// SIGHUP, from before a port is open: without a watch it ends the process, and whoever finds the port open may send it.
///
/// Sendable: its state is under its own mutex.
final class ReloadRequests: Sendable {
    private struct State {
        var isAsked = false
        var handler: (@Sendable () -> Void)?
    }

    private let state = Mutex(State())

    /// Never ends: a reload that comes late is refused, and must not end the process.
    func watch(on loop: isolated EventLoop) {
        let watches = SignalWatches()
        watches.reload = SignalWatch(on: loop, signal: SIGHUP) { [self] in ask() }
        watches.keepAlive = watches
    }

    func ask() {
        let handler = state.withLock { state in
            if state.handler == nil { state.isAsked = true }
            return state.handler
        }
        handler?()
    }

    /// Once: calls back for each request from now on, and for all those before.
    func hear(_ handler: @escaping @Sendable () -> Void) {
        let isAsked = state.withLock { state in
            state.handler = handler
            return state.isAsked
        }
        if isAsked { handler() }
    }
}

/// The watches of one daemon; loop-bound, they live as long as the process.
private final class SignalWatches {
    var ends: [SignalWatch] = []
    var reload: SignalWatch?
    var keepAlive: SignalWatches?
}

/// That the daemon is to end; set once, waited for once, in any order.
///
/// Sendable: its state is under its own mutex.
final class EndRequest: Sendable {
    private struct State {
        /// The signal that asked for it.
        var signal: Int32?
        var waiter: UnsafeContinuation<Int32, Never>?
    }

    private let state = Mutex(State())

    func set(_ signal: Int32) {
        let waiter = state.withLock { state in
            state.signal = state.signal ?? signal
            defer { state.waiter = nil }
            return state.waiter
        }
        waiter?.resume(returning: signal)
    }

    func wait(_ waiter: UnsafeContinuation<Int32, Never>) {
        let signal = state.withLock { state in
            if state.signal == nil { state.waiter = waiter }
            return state.signal
        }
        if let signal { waiter.resume(returning: signal) }
    }
}
