// The signals of a daemon: SIGHUP reloads, SIGTERM and SIGINT end it after the answers under way.

internal import EventLoop
import Glibc
import Synchronization

extension Daemon {
    /// Serves until SIGTERM or SIGINT, then drains; returns when everything has ended.
    package func runUntilStopped() async {
        await withUnsafeContinuation { (ended: UnsafeContinuation<Void, Never>) in
            loops.loops[0].submit { loop in
                Signals.watch(self, ended, on: loop)
            }
        }
        await stop()
    }
}

/// The watches of one daemon; they live as long as the process.
private enum Signals {
    static func watch(_ daemon: Daemon, _ ended: UnsafeContinuation<Void, Never>, on loop: isolated EventLoop) {
        let end = Once(ended)
        let watches = SignalWatches()
        for signal in [SIGTERM, SIGINT] {
            watches.all.append(
                SignalWatch(on: loop, signal: signal) {
                    // The watches end with the first of them, so that a second signal ends the process at once.
                    watches.all = []
                    end.resume()
                }
            )
        }
        watches.all.append(
            SignalWatch(on: loop, signal: SIGHUP) {
                Task { _ = await daemon.reload() }
            }
        )
    }
}

/// Loop-bound; each watch holds it until the end.
private final class SignalWatches {
    var all: [SignalWatch] = []
}

/// Resumes once.
private final class Once: Sendable {
    private let waiter: Mutex<UnsafeContinuation<Void, Never>?>

    init(_ waiter: UnsafeContinuation<Void, Never>) { self.waiter = Mutex(waiter) }

    func resume() {
        let waiter = waiter.withLock { waiter in
            defer { waiter = nil }
            return waiter
        }
        waiter?.resume()
    }
}
