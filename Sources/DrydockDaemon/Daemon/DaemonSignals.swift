// The signals of a daemon: SIGHUP reloads, SIGTERM and SIGINT end it after the answers under way.

import EventLoop
import Glibc
import Synchronization

/// SIGHUP, heard from before a port is open: without a watch it ends the process, and a client that finds the port open
/// may be followed at once by an operator's reload.
///
/// Sendable: its state is under its own mutex.
final class ReloadRequests: Sendable {
    private struct State {
        var isAsked = false
        var handler: (@Sendable () -> Void)?
    }

    private let state = Mutex(State())

    /// The watch never ends: a reload that comes late is refused, and must not end the process.
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

    /// Called once: `handler` is called for each request from now on, and once for all those before.
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

/// The order to end the daemon; given once, waited for once, in any order.
///
/// Sendable: its state is under its own mutex.
final class EndRequest: Sendable {
    private struct State {
        /// The signal that asked for it.
        var signal: Int32?
        var waiter: UnsafeContinuation<Int32, Never>?
    }

    private let state = Mutex(State())

    /// SIGTERM and SIGINT ask for the end from now on.
    func watchSignals(on loop: isolated EventLoop) {
        let watches = SignalWatches()
        for signal in [SIGTERM, SIGINT] {
            watches.ends.append(
                SignalWatch(on: loop, signal: signal) { [self] in
                    // The watches end with the first signal, so that a second one ends the process at once.
                    watches.ends = []
                    // A shell has SIGINT ignored in what it runs in the background: set the default action, not the one
                    // before.
                    for number in [SIGTERM, SIGINT] { Glibc.signal(number, SIG_DFL) }
                    set(signal)
                }
            )
        }
        watches.keepAlive = watches
    }

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
