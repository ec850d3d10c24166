// `drydock status`, `ready`, `reload`, `offline` and `clock`: the commands that ask a running daemon about itself, and
// switch it.

import ArgumentParser
import Configuration
import DrydockDaemon
import Glibc
import ProxyServer

struct Status: ParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Show what the daemon is doing.")
    @OptionGroup var options: AdminOptions

    func run() throws {
        let answer = try options.client.request("GET", .status).successful()
        if options.json { return print(answer.text, terminator: "") }
        let status = try answer.decode(AdminStatus.self)
        var lines = [
            "drydock \(status.version), process \(status.pid), up \(Format.duration(status.uptime))",
            "configuration  \(status.configuration ?? "from the command line")",
            "listening on   \(status.listen.joined(separator: ", "))  (\(status.loops) loops)",
            "connections    \(status.connections), tunnels \(status.tunnels)",
            "answers        \(status.answers), hits \(status.hits), misses \(status.misses)\(ratios(status))",
            "offline        \(status.isOffline ? "yes, no origin is asked" : "no")",
            "clock          \(status.clock.line)",
            "memory         \(tier(status.memory))",
            "disk           \(status.disk.map(tier) ?? "off")",
        ]
        for service in status.services {
            lines.append("service        \(service.name) \(service.match) -> \(service.goal)\(service.load)")
        }
        for override in status.demo ?? [] { lines.append("demo           \(override.line)") }
        if let refusal = status.refusal { lines.append("files          \(refusal)") }
        for distrusted in status.distrusted ?? [] { lines.append("distrust       \(distrusted.line)") }
        print(lines.joined(separator: "\n"))
    }

    private func ratios(_ status: AdminStatus) -> String {
        var parts: [String] = []
        if let ratio = status.hitRatio { parts.append("\(Int(ratio * 100))% needed no origin") }
        if let rate = status.answersPerSecond { parts.append("\((rate * 10).rounded() / 10) a second since the start") }
        return parts.isEmpty ? "" : " (\(parts.joined(separator: ", ")))"
    }

    private func tier(_ tier: AdminStatus.Tier) -> String {
        "\(Format.count(tier.entries, "entry", "entries")), \(Format.size(tier.bytes)) of \(Format.size(tier.limit))"
    }
}

extension AdminStatus.Service {
    /// The calls in progress or waiting, if there are any, and the breaker if it is not closed.
    fileprivate var load: String {
        var parts: [String] = []
        if let fetches, fetches > 0 { parts.append(Format.count(fetches, "fetch", "fetches")) }
        if let waiting, waiting > 0 { parts.append("\(waiting) waiting") }
        if let parked, parked > 0 { parts.append("\(parked) parked") }
        if let early, early > 0 { parts.append("\(early) before Retry-After") }
        if let breaker, breaker != "closed" { parts.append("breaker \(breaker)") }
        return parts.isEmpty ? "" : " (\(parts.joined(separator: ", ")))"
    }

    /// The target of requests.
    fileprivate var goal: String { isPartlyDemo == true ? "demo and \(target)" : isDemo ? "demo" : target }
}

extension AdminStatus.Distrusted {
    /// Such as `127.0.0.1 api.example.com:443, refused: it does not trust the certificate (alert unknown_ca)`.
    fileprivate var line: String { "\(client) \(host), \(isTunnelled ? "left alone" : "refused"): \(reason)" }
}

extension AdminClock {
    /// The clock as a line, such as `2h ahead, 2026-01-31T12:00:00Z`.
    var line: String { ahead == 0 ? "the system's, \(time)" : "\(Lifetimes.text(ahead)) ahead, \(time)" }
}

struct Ready: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Tell by the exit code whether the daemon is ready, or wait until it is.",
        discussion: """
            Exit codes: 0 the daemon takes requests, 1 it is starting or stands still, 3 there is no daemon, or it is ending. With \
            --wait the command asks until the daemon is ready, and at the end of this time gives the exit code of its last answer.
            """
    )
    @Option(help: "The longest wait: whole seconds with a unit, such as 10s or 2m.")
    var wait: String?
    @OptionGroup var options: AdminOptions

    /// The document of `--json`.
    private struct Document: Encodable {
        let isReady: Bool
    }

    func validate() throws { _ = try seconds }

    /// The seconds of `--wait`; 0 without it.
    private var seconds: Int64 {
        get throws { try Lifetimes.seconds(wait, of: "--wait") ?? 0 }
    }

    func run() throws {
        let limit = ContinuousClock.now.advanced(by: .seconds(try seconds))
        while true {
            let isLast = ContinuousClock.now >= limit
            do {
                let answer = try options.client.request("GET", .readiness)
                if answer.status == 200 || isLast { return try end(answer) }
            } catch let failure as Failure where failure.code == 3 && !isLast {
                // The daemon may be about to begin.
            }
            usleep(50_000)
        }
    }

    /// Prints the answer, and ends with its exit code.
    private func end(_ answer: AdminClient.Answer) throws {
        let isReady = answer.status == 200
        if options.json {
            print(String(decoding: try AdminJSON.encode(Document(isReady: isReady)), as: UTF8.self), terminator: "")
        } else {
            // A daemon that is not ready says why, on a line of its own.
            let isTold = answer.status == 503 && answer.text.hasPrefix("not ready: ")
            print(isReady ? "ready" : isTold ? String(answer.text.dropLast()) : "not ready")
        }
        if !isReady { throw ExitCode(1) }
    }
}

struct Reload: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Tell the daemon to read its configuration again, and print its verdict.",
        discussion: """
            The command waits until every loop of the daemon has the new configuration, and prints what has changed. If the daemon \
            refuses its files, it prints every error with its line and column, and ends with 1; the old configuration stays in force.
            """
    )
    @OptionGroup var options: AdminOptions

    func run() throws {
        let client = try options.client
        let answer = try client.request("POST", .reload)
        guard answer.status == 200 || answer.status == 422 else { throw answer.failure }
        client.sayWhich()
        if options.json { print(answer.text, terminator: "") }
        let result = try answer.decode(ReloadResult.self)
        guard result.isReloaded else {
            let lines = (result.errors + [result.summary]).joined(separator: "\n")
            if !options.json { printError(StandardErrorLog.failure(lines, processEnvironment())) }
            throw ExitCode(1)
        }
        if !options.json { print(([result.summary] + (result.changes ?? [])).joined(separator: "\n")) }
    }
}

// MARK: - `drydock offline` and `clock`

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

        func validate() throws { _ = try Lifetimes.seconds(duration, of: "<duration>") }

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
