// A change of the clock that the admin API accepts.

import Configuration

/// What `POST /v1/clock` asks for.
package enum ClockMove: Sendable, Equatable {
    /// Forward, in seconds.
    case advance(seconds: Int64)
    /// Back to the system's time.
    case reset

    /// The furthest that the clock goes ahead, in seconds: 25000 days is more than the longest lifetime (RFC 9111
    /// section 1.2.2), and keeps every time within what stored responses and HTTP dates hold.
    package static let limit: Int64 = 25_000 * 86_400

    /// `advance=2h`, or `reset`.
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

    /// The configuration does not allow it.
    package static let refused = Problem(
        status: 403,
        title: "Clock not movable",
        detail: "the configuration does not allow to move the clock; write clock: { movable: true }, and reload"
    )

    /// - Parameter ahead: where the clock is, in seconds.
    package static func tooFar(ahead: Int64) -> Problem {
        bad(
            "the clock goes at most \(Lifetimes.text(limit)) ahead, and it is \(Lifetimes.text(ahead)) ahead already"
                + "; advance it less, or reset it first"
        )
    }
}
