// What an operator switches while the daemon runs: whether origins are asked, and the clock.

import AdminAPI
import Configuration
import DownloadCore
import EventLoop
import Logging
import ProxyServer
import Synchronization

/// Sendable: it has no state of its own.
final class OperatorSwitches: Sendable {
    private let context: DaemonContext

    init(_ context: DaemonContext) { self.context = context }

    private var parts: DaemonParts { context.parts }

    func setOffline(_ isOffline: Bool) async -> AdminOffline {
        switchOffline(isOffline)
        return AdminOffline(isOffline: isOffline)
    }

    /// Asks no origin from now on, or asks them again, and logs a change; any thread.
    func switchOffline(_ isOffline: Bool) {
        guard parts.core.isOffline != isOffline else { return }
        parts.core.isOffline = isOffline
        parts.logger.notice(isOffline ? "offline, no origin is asked" : "online, origins are asked")
    }

    /// Moves the clock that lifetimes are counted by.
    /// - Throws: that the configuration forbids it, or that the clock would go too far.
    func moveClock(_ move: ClockMove) async throws(Problem) -> AdminClock {
        let clock = parts.core.clock
        // Under the mutex, so that two moves add up and no reload forbids the move between its check and its effect.
        let refusal: Problem? = context.state.withLock { state in
            guard state.configuration.clock.movable else { return ClockMove.refused }
            switch move {
            case .advance(let seconds):
                if seconds > ClockMove.limit - clock.ahead { return ClockMove.tooFar(ahead: clock.ahead) }
                clock.advance(seconds: seconds)
            case .reset: clock.reset()
            }
            return nil
        }
        if let refusal { throw refusal }
        let moved = self.clock(isMovable: true)
        parts.logger.notice(
            "clock moved",
            metadata: ["ahead": "\(Lifetimes.text(moved.ahead))", "time": "\(moved.time)"]
        )
        return moved
    }

    /// The clock as it is now.
    func clock(isMovable: Bool) -> AdminClock {
        let now = parts.core.clock.now()
        return AdminClock(isMovable: isMovable, ahead: parts.core.clock.ahead, time: Timestamp.text(now), unixTime: now)
    }
}
