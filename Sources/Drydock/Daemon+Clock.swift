// The daemon's clock, moved while it runs where the configuration allows it.

internal import Configuration
internal import DownloadCore
internal import EventLoop
internal import Logging
package import ProxyServer
internal import Synchronization

extension Daemon {
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
