// `drydock demo`: controls demo mode while the daemon runs.

import ArgumentParser
import Configuration
import DrydockDaemon
import ProxyServer

struct Demo: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Switch demo answers and faults while the daemon runs, change them, and begin their draws anew.",
        discussion: """
            A change holds until it is cleared, its time is over, or the configuration is read again. It is in force for \
            every request that begins when the command has ended.
            """,
        subcommands: [Status.self, On.self, Off.self, Set.self, Clear.self, Reset.self, Replay.self],
        defaultSubcommand: Status.self
    )

    struct Status: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Print which demo answers there are, whether they are given, and what was changed."
        )
        @OptionGroup var options: AdminOptions

        func run() throws {
            let answer = try options.client.request("GET", .demo).successful()
            if options.json { return print(answer.text, terminator: "") }
            print(try answer.decode(AdminDemo.self).text)
        }
    }

    struct On: ParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Give demo answers instead of asking origins.")
        @OptionGroup var change: DemoChange
        @OptionGroup var options: AdminOptions

        func run() throws { try change.order([("enabled", "on")], options) }
    }

    struct Off: ParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Ask origins instead of giving demo answers.")
        @OptionGroup var change: DemoChange
        @OptionGroup var options: AdminOptions

        func run() throws { try change.order([("enabled", "off")], options) }
    }

    struct Set: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Change the latency, the status or the failures of demo answers, or the faults of all answers.",
            discussion: "drydock demo set shop/order latency=2s chance=50% --for 10m"
        )
        @Argument(help: ArgumentHelp("The service, or one endpoint of it.", valueName: "SERVICE[/ENDPOINT]"))
        var target: String
        @Argument(
            help: ArgumentHelp(
                "latency=200ms, 200ms..2s or what 'latency' of a rule may be, status=503, chance=20% of failures, faults=PROFILE or off, enabled=on|off.",
                valueName: "KEY=VALUE"
            )
        )
        var settings: [String]
        @Option(name: .customLong("for"), help: DemoChange.forHelp)
        var duration: String?
        @OptionGroup var options: AdminOptions

        func validate() throws { _ = try items }

        private var items: [AdminQuery.Item] {
            get throws {
                _ = try Lifetimes.seconds(duration, of: "--for")
                return try settings.map { text in
                    let pair = text.split(separator: "=", maxSplits: 1).map(String.init)
                    guard pair.count == 2 else {
                        throw ValidationError(
                            "'\(text)' is not of the form KEY=VALUE; the keys are \(DemoSetting.Key.names)"
                        )
                    }
                    guard let key = DemoSetting.Key(rawValue: pair[0]) else {
                        throw ValidationError("there is no key '\(pair[0])'; the keys are \(DemoSetting.Key.names)")
                    }
                    do throws(Lifetimes.Malformed) { _ = try DemoSetting(key, pair[1]) } catch {
                        throw ValidationError("\(pair[0]): \(error)")
                    }
                    return (pair[0], pair[1])
                }
            }
        }

        func run() throws { try DemoChange.order(target, try items, duration, options) }
    }

    struct Clear: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Take changes back, so that the configuration's word is in force again."
        )
        @Argument(
            help: ArgumentHelp("The service, or one endpoint; all, if left out.", valueName: "SERVICE[/ENDPOINT]")
        )
        var target: String?
        @OptionGroup var options: AdminOptions

        func run() throws { try DemoChange.order(target, [("clear", nil)], nil, options) }
    }

    struct Reset: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Begin anew, as after a start: draws, counts, scenarios, collections, outages and quotas.",
            discussion: "Changes stay: 'drydock demo clear' takes them back."
        )
        @Argument(help: ArgumentHelp("The service; all, if left out.", valueName: "SERVICE"))
        var service: String?
        @Flag(help: "Remove the entries of the journal, too.")
        var journal = false
        @Flag(help: "Forget what origins took, too.")
        var latencies = false
        @OptionGroup var options: AdminOptions

        func run() throws {
            var query: [AdminQuery.Item] = []
            if let service { query.append(("service", service)) }
            if journal { query.append(("journal", nil)) }
            if latencies { query.append(("latencies", nil)) }
            try options.order("POST", .resetDemo, query: query) { (answer: AdminDemoReset) in
                let entries =
                    answer.entries.map { ", \(Format.count($0, "entry", "entries")) of the journal removed" } ?? ""
                let forgotten =
                    answer.latencies.map { ", \(Format.count($0, "latency", "latencies")) of origins forgotten" } ?? ""
                let requests = Format.count(answer.requests, "request")
                return "the draws of \(requests) begin anew\(entries)\(forgotten)"
            }
        }
    }
}

extension Demo {
    struct Replay: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract:
                "Draw once more what Drydock-Demo said of an answer; the exit code is 1 unless it comes out the same.",
            discussion: """
                DRAW is the value of Drydock-Demo, as the answer, the access log or the journal has it. The draw is that of \
                the configuration in force: what was changed since may give another.

                drydock demo replay 'endpoint=user; outcome=failure; status=503; latency=301ms; draw=9f3a01c2b4d5e6f7.12'
                """
        )
        @Argument(help: ArgumentHelp("The value of Drydock-Demo.", valueName: "DRAW"))
        var draw: String
        @Option(help: ArgumentHelp("Whose rules are meant; those of all, if left out.", valueName: "name"))
        var service: String?
        @OptionGroup var options: AdminOptions

        func run() throws {
            var query: [AdminQuery.Item] = [("said", draw)]
            if let service { query.append(("service", service)) }
            let answer = try options.client.request("GET", .draw, query: query).successful()
            let result = try answer.decode(AdminDraw.self)
            print(options.json ? answer.text : result.text, terminator: options.json ? "" : "\n")
            if !result.isSame { throw ExitCode(1) }
        }
    }
}

extension AdminDraw {
    /// The draws of each rule, and the position at which a draw differs from the given one.
    fileprivate var text: String {
        members.flatMap { member in
            var lines = [member.drawn ?? "nothing"]
            if let latency = member.latency { lines.append("  takes \(Format.milliseconds(latency))") }
            if member.drawn != member.said { lines.append("  it was said: \(member.said)") }
            if let note = member.note { lines.append("  \(note)") }
            return lines
        }.joined(separator: "\n")
    }
}

/// The services whose demo answers are changed, and for how long.
struct DemoChange: ParsableArguments {
    static let forHelp = ArgumentHelp("After this time the change ends, such as 30s or 10m.", valueName: "duration")

    @Argument(help: ArgumentHelp("The service, or one endpoint; all, if left out.", valueName: "SERVICE[/ENDPOINT]"))
    var target: String?
    @Option(name: .customLong("for"), help: forHelp)
    var duration: String?

    func validate() throws { _ = try Lifetimes.seconds(duration, of: "--for") }

    func order(_ items: [AdminQuery.Item], _ options: AdminOptions) throws {
        try Self.order(target, items, duration, options)
    }

    fileprivate static func order(
        _ target: String?,
        _ items: [AdminQuery.Item],
        _ duration: String?,
        _ options: AdminOptions
    ) throws {
        var query: [AdminQuery.Item] = []
        let parts = target?.split(separator: "/", maxSplits: 1).map(String.init) ?? []
        if let service = parts.first { query.append(("service", service)) }
        if parts.count > 1 { query.append(("endpoint", parts[1])) }
        query += items
        if let duration { query.append(("for", duration)) }
        try options.order("POST", .demo, query: query) { (demo: AdminDemo) in demo.text }
    }
}

extension AdminDemo {
    /// A line for each endpoint or service with demo answers, and for each change.
    fileprivate var text: String {
        var lines = answers.map { "\($0.isOn ? "on " : "off")  \($0.service)\($0.endpoint.map { "/\($0)" } ?? "")" }
        if lines.isEmpty { lines.append("no service has demo answers") }
        lines += overrides.map { "changed: \($0.line)" } + latencies.map(\.line)
        return lines.joined(separator: "\n")
    }
}

extension AdminDemo.Override {
    /// The change as a line, such as `shop/order latency=2s, 9m left`.
    var line: String {
        let scope = service.map { $0 + (endpoint.map { "/\($0)" } ?? "") } ?? "all services"
        return "\(scope) \(key)=\(value)" + (left.map { ", \(Format.duration($0)) left" } ?? "")
    }
}

extension AdminDemo.Latency {
    /// The learned latencies as a line, such as `learned of shop/order: 1204 answers, median 80ms, p90 210ms, p99
    /// 900ms`.
    fileprivate var line: String {
        let figures = [("median", median), ("p90", p90), ("p99", p99)].compactMap { name, value in
            value.map { ", \(name) \(Format.milliseconds($0))" }
        }
        return "learned of \(of): \(Format.count(answers, "answer"))\(figures.joined())"
    }
}
