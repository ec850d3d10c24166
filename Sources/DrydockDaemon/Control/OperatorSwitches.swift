// The switches that an operator has while the daemon runs: offline mode, and the clock.

import Configuration
import DownloadCore
import EventLoop
import Logging
import ProxyServer
import Synchronization

/// Switches offline mode and the clock for operators and for reloads.
///
/// Sendable: it has no mutable state of its own.
final class OperatorSwitches: Sendable {
    private let context: DaemonContext

    init(_ context: DaemonContext) { self.context = context }

    private var parts: DaemonParts { context.parts }

    func setOffline(_ isOffline: Bool) async -> AdminOffline {
        switchOffline(isOffline)
        return AdminOffline(isOffline: isOffline)
    }

    /// Stops asking origins, or starts again, and logs a change. Any thread.
    func switchOffline(_ isOffline: Bool) {
        guard parts.core.isOffline != isOffline else { return }
        parts.core.isOffline = isOffline
        parts.logger.notice(isOffline ? "offline, no origin is asked" : "online, origins are asked")
    }

    /// Moves the clock that freshness lifetimes are counted by.
    /// - Throws: a refusal if the configuration forbids it, or if the clock would go too far.
    func moveClock(_ move: ClockMove) async throws(Problem) -> AdminClock {
        let clock = parts.core.clock
        // The mutex is held so that two moves add up, and no reload forbids a move between its check and its effect.
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

    /// The state of the clock now, for the admin API.
    func clock(isMovable: Bool) -> AdminClock {
        let now = parts.core.clock.now()
        return AdminClock(isMovable: isMovable, ahead: parts.core.clock.ahead, time: Timestamp.text(now), unixTime: now)
    }
}

/// A move of the clock that `POST /v1/clock` asks for.
enum ClockMove: Sendable, Equatable {
    /// Moves the clock forward by `seconds`.
    case advance(seconds: Int64)
    /// Sets the clock back to the system's time.
    case reset

    /// The furthest that the clock goes ahead, in seconds: 25000 days is more than the longest lifetime (RFC 9111
    /// section 1.2.2), and keeps every time within what stored responses and HTTP dates hold.
    static let limit: Int64 = 25_000 * 86_400

    /// Parses the query `advance=DURATION` or `reset`.
    /// - Throws: a 400 for any other query.
    init(query: [String: String]) throws(Problem) {
        for name in query.keys where name != "advance" && name != "reset" {
            throw Self.bad("\(name) is not known; there are advance=DURATION and reset")
        }
        switch (query["advance"], query["reset"]) {
        case (let text?, nil):
            do throws(Lifetimes.Malformed) {
                self = .advance(seconds: try Lifetimes.seconds(text))
            } catch {
                throw Self.bad("advance: \(error)")
            }
        case (nil, ""?): self = .reset
        case (nil, _?): throw Self.bad("reset takes no value")
        default: throw Self.bad("give either advance=DURATION, such as advance=2h, or reset")
        }
    }

    private static func bad(_ detail: String) -> Problem {
        Problem(status: 400, title: "Bad query", detail: detail)
    }

    /// The refusal of a move that the configuration does not allow.
    static let refused = Problem(
        status: 403,
        title: "Clock not movable",
        detail: "the configuration does not allow to move the clock; write clock: { movable: true }, and reload"
    )

    /// The refusal of a move beyond ``limit``.
    /// - Parameter ahead: how far the clock is ahead already, in seconds.
    static func tooFar(ahead: Int64) -> Problem {
        bad(
            "the clock goes at most \(Lifetimes.text(limit)) ahead, and it is \(Lifetimes.text(ahead)) ahead already"
                + "; advance it less, or reset it first"
        )
    }
}

// MARK: - Documents

/// The answer of `POST /v1/offline`.
package struct AdminOffline: Codable, Sendable, Equatable {
    /// True if no origin is asked.
    package var isOffline: Bool
}
