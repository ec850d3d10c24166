// The signals of a daemon: SIGHUP reloads, SIGUSR1 opens the access log again, SIGTERM and SIGINT end it after the answers
// under way.

import EventLoop
import Glibc
import Synchronization

/// Requests by a signal, such as SIGHUP for a reload, watched from before a port is open: an unwatched signal ends the
/// process, and an operator may send one as soon as a client finds the port open.
///
/// Sendable: its state is under its own mutex.
final class SignalRequests: Sendable {
    private struct State {
        var isAsked = false
        var handler: (@Sendable () -> Void)?
    }

    private let state = Mutex(State())
    private let signal: Int32

    init(_ signal: Int32) { self.signal = signal }

    /// Starts to watch the signal. The watch never ends: a late request has no effect, and must not end the process.
    func watch(on loop: isolated EventLoop) {
        let watches = SignalWatches()
        watches.request = SignalWatch(on: loop, signal: signal) { [self] in ask() }
        watches.keepAlive = watches
    }

    func ask() {
        let handler = state.withLock { state in
            if state.handler == nil { state.isAsked = true }
            return state.handler
        }
        handler?()
    }

    /// Sets the handler, once: it is called for each request from now on, and once for all earlier ones.
    func hear(_ handler: @escaping @Sendable () -> Void) {
        let isAsked = state.withLock { state in
            state.handler = handler
            return state.isAsked
        }
        if isAsked { handler() }
    }
}

/// The signal watches of one daemon; used on their loop only, and alive as long as the process.
private final class SignalWatches {
    var ends: [SignalWatch] = []
    var request: SignalWatch?
    var keepAlive: SignalWatches?
}

/// Why the daemon ends.
enum EndReason: Sendable {
    case signal(Int32)
    /// Another daemon takes over.
    case takeOver
}

/// The order to end the daemon: given once and waited for once, in either order.
///
/// Sendable: its state is under its own mutex.
final class EndRequest: Sendable {
    private struct State {
        /// The first reason.
        var reason: EndReason?
        var isSignalled = false
        var waiter: UnsafeContinuation<EndReason, Never>?
    }

    private let state = Mutex(State())

    /// Lets SIGTERM and SIGINT ask for the end from now on.
    func watchSignals(on loop: isolated EventLoop) {
        let watches = SignalWatches()
        for signal in [SIGTERM, SIGINT] {
            watches.ends.append(
                SignalWatch(on: loop, signal: signal) { [self] in
                    // The watches end with the first signal, so that a second one ends the process at once.
                    watches.ends = []
                    unwatchSignals()
                    set(.signal(signal))
                }
            )
        }
        watches.keepAlive = watches
    }

    /// Lets SIGTERM and SIGINT end the process at once from now on: where the loops have ended, nobody would hear them.
    func unwatchSignals() {
        // A shell ignores SIGINT in what it runs in the background: the default action is set, not the previous one.
        for number in [SIGTERM, SIGINT] { Glibc.signal(number, SIG_DFL) }
    }

    func set(_ reason: EndReason) {
        let (first, waiter) = state.withLock { state in
            let first = state.reason ?? reason
            state.reason = first
            if case .signal = reason { state.isSignalled = true }
            defer { state.waiter = nil }
            return (first, state.waiter)
        }
        waiter?.resume(returning: first)
    }

    /// Whether a signal has asked for the end, first or later.
    var isSignalled: Bool { state.withLock { $0.isSignalled } }

    func wait(_ waiter: UnsafeContinuation<EndReason, Never>) {
        let reason = state.withLock { state in
            if state.reason == nil { state.waiter = waiter }
            return state.reason
        }
        if let reason { waiter.resume(returning: reason) }
    }
}
