// `drydock parked`: the calls that wait for an origin that is away.

import ArgumentParser
import DrydockDaemon
import ProxyServer

struct Parked: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "List, replay or cancel calls that wait for an origin that is away.",
        discussion: "Calls wait where the configuration says so: park: 10m.",
        subcommands: [List.self, Replay.self, Cancel.self],
        defaultSubcommand: List.self
    )

    struct List: ParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Print one line for each call, the oldest first.")
        @OptionGroup var options: AdminOptions

        func run() throws {
            let answer = try options.client.request("GET", .parked).successful()
            if options.json { return print(answer.text, terminator: "") }
            for call in try answer.decode(AdminParked.self).calls { print(call.line) }
        }
    }

    struct Replay: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Try calls again now.",
            discussion: """
                All calls, or those of a service, are tried one after the other within max_concurrent, until one fails \
                because the origin is still away.
                """
        )
        @OptionGroup var target: ParkedTarget
        @OptionGroup var options: AdminOptions

        func run() throws { try target.order(.replayParked, "replayed", options) }
    }

    struct Cancel: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "End calls; their clients get a 503 with the title \"Cancelled\".",
            discussion: "Calls that are being replayed go on."
        )
        @OptionGroup var target: ParkedTarget
        @OptionGroup var options: AdminOptions

        func run() throws { try target.order(.cancelParked, "ended", options) }
    }
}

/// Which calls are meant.
struct ParkedTarget: ParsableArguments {
    @Argument(help: ArgumentHelp("The number of a call, or the name of a service.", valueName: "NUMBER|SERVICE"))
    var target: String?
    @Flag(help: "All calls.")
    var all = false

    func validate() throws {
        if all == (target != nil) { throw ValidationError("give one of a call's number, a service and --all") }
    }

    fileprivate func order(_ path: AdminPath, _ done: String, _ options: AdminOptions) throws {
        var query: AdminQuery.Item = ("all", nil)
        if let target { query = (UInt64(target) == nil ? "service" : "id", target) }
        try options.order("POST", path, query: [query]) { (answer: AdminParkedOrder) in
            switch answer.calls {
            case 0: "no matching call is parked"
            case 1: "1 call \(done)"
            default: "\(answer.calls) calls \(done)"
            }
        }
    }
}

extension AdminParked.Call {
    /// `17  api  POST /orders  parked 12s, 9m left, 1.2 KiB, 2 replays: the status was 503`
    fileprivate var line: String {
        let times = "\(Format.duration(waited)), \(Format.duration(left)) left"
        return
            "\(id)  \(service)  \(method) \(path)  \(state) \(times), \(Format.size(size)), \(replays) \(replays == 1 ? "replay" : "replays"): \(reason)"
    }
}
