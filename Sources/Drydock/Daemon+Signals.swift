// The signals of a daemon: SIGHUP reloads, SIGTERM and SIGINT end it after the answers under way.

internal import EventLoop
import Glibc
import Synchronization

extension Daemon {
    /// Serves until SIGTERM or SIGINT, then drains; returns when everything has ended.
    package func runUntilStopped() async {
        await withUnsafeContinuation { ended.wait($0) }
        await stop()
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
                    ended.set()
                }
            )
        }
        // This one stays: a reload that comes late is refused, and must not end the process.
        watches.reload = SignalWatch(on: loop, signal: SIGHUP) { [weak self] in
            guard let self else { return }
            Task { _ = await self.reload() }
        }
        watches.keepAlive = watches
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
        var isSet = false
        var waiter: UnsafeContinuation<Void, Never>?
    }

    private let state = Mutex(State())

    func set() {
        let waiter = state.withLock { state in
            state.isSet = true
            defer { state.waiter = nil }
            return state.waiter
        }
        waiter?.resume()
    }

    func wait(_ waiter: UnsafeContinuation<Void, Never>) {
        let isSet = state.withLock { state in
            if !state.isSet { state.waiter = waiter }
            return state.isSet
        }
        if isSet { waiter.resume() }
    }
}
