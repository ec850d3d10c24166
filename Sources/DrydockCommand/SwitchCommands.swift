// `drydock offline` and `drydock clock`: what is switched while the daemon runs.

import ArgumentParser
import Configuration
import DrydockDaemon
import ProxyServer

struct Offline: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Answer from stored responses, whatever their age, and ask no origin.",
        discussion: """
            Requests for anything else get a 504, and no connection to an origin is opened; fetches under way finish. Demo \
            answers are given as usual. A reload applies the configuration's 'offline' again.
            """
    )
    enum Word: String, ExpressibleByArgument, CaseIterable { case on, off }

    @Argument(help: ArgumentHelp("on: no origin is asked; off: origins are asked.", valueName: "on|off"))
    var word: Word
    @OptionGroup var options: AdminOptions

    func run() throws {
        try options.order("POST", .offline, query: [(word.rawValue, nil)]) { (answer: AdminOffline) in
            answer.isOffline ? "offline, no origin is asked" : "online, origins are asked"
        }
    }
}

struct Clock: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Move the clock that freshness lifetimes are counted by, for tests.",
        discussion: """
            Freshness lifetimes, the windows for stale responses and the Date of answers follow this clock; timeouts and logs \
            do not. A restart sets it back to the system's clock. The configuration must allow it: clock: { movable: true }.
            """,
        subcommands: [Advance.self, Reset.self]
    )

    struct Advance: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Move the clock forward.",
            discussion: "Several moves add up, to 25000d at most."
        )
        @Argument(help: "How far: whole seconds with a unit, such as 59s, 2m, 2h or 7d.")
        var duration: String
        @OptionGroup var options: AdminOptions

        func validate() throws {
            do throws(Lifetimes.Malformed) { _ = try Lifetimes.seconds(duration) } catch {
                throw ValidationError(error.description)
            }
        }

        func run() throws { try Clock.move(("advance", duration), options) }
    }

    struct Reset: ParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Set the clock back to the system's time.")
        @OptionGroup var options: AdminOptions

        func run() throws { try Clock.move(("reset", nil), options) }
    }
    private static func move(_ item: AdminQuery.Item, _ options: AdminOptions) throws {
        try options.order("POST", .clock, query: [item]) { (clock: AdminClock) in "clock: \(clock.line)" }
    }
}
