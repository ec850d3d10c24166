// What is switched while the daemon runs: whether origins are asked, and the clock.

package import AdminAPI
internal import Configuration
internal import DownloadCore
internal import EventLoop
internal import Logging
package import ProxyServer
internal import Synchronization

extension Daemon {
    package func setOffline(_ isOffline: Bool) async -> AdminOffline {
        switchOffline(isOffline)
        return AdminOffline(isOffline: isOffline)
    }

    /// Any thread.
    func switchOffline(_ isOffline: Bool) {
        guard parts.core.isOffline != isOffline else { return }
        parts.core.isOffline = isOffline
        parts.logger.notice(isOffline ? "offline, no origin is asked" : "online, origins are asked")
    }

    package func moveClock(_ move: ClockMove) async throws(Problem) -> AdminClock {
        let clock = parts.core.clock
        // Under the mutex no other move comes between, and no reload that forbids it.
        let refusal: Problem? = state.withLock { state in
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
