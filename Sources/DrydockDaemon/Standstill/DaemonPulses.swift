// The pulses by which a daemon is watched, and what follows when a part of it stands still.

import CacheStore
import DownloadCore
import EventLoop
import Glibc
import ProxyServer
import Synchronization

extension Guardian {
    /// A guardian over every loop and pool of a daemon.
    /// - Parameter ownsProcess: signals are this daemon's, and the process may be ended.
    convenience init(_ parts: DaemonParts, notifier: ServiceManagerNotifier, ownsProcess: Bool) {
        // Slow machines need longer bounds, and tests shorter ones.
        let wanted = parts.environment["DRYDOCK_STANDSTILL_SECONDS"].flatMap { Double($0) }.flatMap { seconds in
            seconds >= 0.1 && seconds <= 86_400 ? UInt64(seconds * 1_000_000_000) : nil
        }
        var pulses = parts.loops.loops.map { Pulse($0, bound: wanted ?? Pulse.loopBound) }
        pulses.append(Pulse(parts.files, bound: wanted ?? Pulse.poolBound))
        pulses += parts.core.storeThreads.map { Pulse($0, bound: wanted ?? Pulse.poolBound) }
        var names = Pulse(parts.names, bound: max(wanted ?? 0, Pulse.namesBound))
        names.holdsUpEnd = false
        pulses.append(names)
        var actions = Guardian.Actions()
        if notifier.watchdog != nil { actions.notify = { notifier.alive() } }
        if ownsProcess {
            let signals = EndingSignals()
            actions.loopsStand = { signals.endAtOnce($0) }
        }
        self.init(pulses, noticeEvery: notifier.watchdog, logger: parts.logger, actions: actions)
    }
}

/// Lets SIGTERM and SIGINT end the process at once while the loop that hears them stands still.
///
/// Sendable: the actions that were in force before are under a mutex.
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
