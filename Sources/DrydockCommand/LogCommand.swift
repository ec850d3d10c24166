// `drydock log`: the levels of the daemon's own log while it runs.

import ArgumentParser
import Configuration
import DrydockDaemon
import Policies
import ProxyServer

struct Log: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Show the levels of the daemon's own log, or set some of them for a time.",
        discussion: """
            drydock log download=debug --for 10m

            The modules are \(LogModule.names), or all. The levels are \(levels). When the time is over, the levels of the \
            configuration (log.modules, log.level) are in force again. A reload does not end them.
            """
    )

    private static var levels: String { LogConfiguration.Level.allCases.map(\.rawValue).joined(separator: ", ") }

    @Argument(help: ArgumentHelp("A module, or all, and its level; may be repeated.", valueName: "MODULE=LEVEL"))
    var settings: [String] = []
    @Option(
        name: .customLong("for"),
        help: ArgumentHelp(
            "How long the levels hold, such as 30s, 10m or 2h; at most 1d. Default: 10m.",
            valueName: "duration"
        )
    )
    var duration: String?
    @Flag(help: "Put the levels of the configuration in force again.")
    var reset = false
    @OptionGroup var options: AdminOptions

    func validate() throws {
        if settings.isEmpty, !reset {
            if duration != nil { throw ValidationError("--for needs a level: MODULE=LEVEL") }
            return
        }
        if !settings.isEmpty, reset {
            throw ValidationError("--reset ends all levels; give levels or --reset, not both")
        }
        if reset, duration != nil { throw ValidationError("--reset is at once; leave out --for") }
        _ = try Lifetimes.seconds(duration, of: "--for")
        // The daemon reads the same words, and may be one that knows more of them; what this one knows is told here.
        do throws(Problem) { _ = try LogOrder(members: try items.map { ($0.name, $0.value ?? "") }) } catch {
            throw ValidationError(error.detail)
        }
    }

    private var items: [AdminQuery.Item] {
        get throws(Problem) {
            if reset { return [("reset", nil)] }
            var items: [AdminQuery.Item] = []
            for text in settings {
                let pair = text.split(separator: "=", maxSplits: 1).map(String.init)
                guard pair.count == 2, pair[0] != "for" else {
                    throw .badQuery("'\(text)' is not of the form MODULE=LEVEL, such as download=debug")
                }
                items.append((pair[0], pair[1]))
            }
            return items + (duration.map { [("for", $0)] } ?? [])
        }
    }

    func run() throws {
        guard reset || !settings.isEmpty else {
            let answer = try options.client.request("GET", .log).successful()
            if options.json { return print(answer.text, terminator: "") }
            return print(try answer.decode(AdminLog.self).text)
        }
        try options.order("POST", .log, query: try items) { (answer: AdminLog) in answer.text }
    }
}

extension AdminLog {
    /// A line for each module, such as `download   debug    9m left, then info`.
    fileprivate var text: String {
        func padded(_ word: String, _ width: Int) -> String {
            word + String(repeating: " ", count: max(1, width - word.utf8.count))
        }
        return modules.map { module in
            guard let left = module.left else { return padded(module.name, 11) + module.level }
            let then = "\(Format.duration(left)) left, then \(module.configured)"
            return padded(module.name, 11) + padded(module.level, 9) + then
        }.joined(separator: "\n")
    }
}
