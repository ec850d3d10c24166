// `drydock events`, `cancel` and `parked`: the calls and fetches in progress.

import ArgumentParser
import DrydockDaemon
import ProxyServer

struct Events: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Print what becomes of calls to origins, one JSON document a line, while it happens.",
        discussion: """
            First come the states of all services and of the calls that are under way, then events: started, progress, \
            retrying, parked, finished, failed and cancelled of calls, busy and idle of services. What memory or disk \
            answers is no event. The command ends when the daemon ends, or on Ctrl-C, with code 0.
            """
    )
    @Option(help: ArgumentHelp("Only calls of this service.", valueName: "name"))
    var service: String?
    @Option(help: ArgumentHelp("Only calls of endpoints with this name.", valueName: "name"))
    var endpoint: String?
    @OptionGroup var daemon: DaemonOptions

    func run() throws {
        var query: [AdminQuery.Item] = []
        if let service { query.append(("service", service)) }
        if let endpoint { query.append(("endpoint", endpoint)) }
        try daemon.client.printStream(.events, query: query)
    }
}

// MARK: - `drydock cancel`

/// `drydock cancel`: ends fetches in progress.
struct Cancel: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "End fetches that are under way; stored responses stay.",
        discussion: """
            Requests that wait for the head of a response get a 503 with the title "Cancelled". Connections whose body \
            is being sent are closed, so that no client takes the body for complete. Stored responses keep their \
            lifetimes, later requests begin a new fetch, and requests with methods other than GET and HEAD continue. \
            With --waiters, only the requests that wait for a head end, with the same 503: the fetch goes on for the \
            store, and later requests join it.
            """
    )
    @Argument(
        help: ArgumentHelp(
            "The URL, as a client sends it or as 'drydock list' shows it, or the name of a service ('forward' for forward mode).",
            valueName: "URL|SERVICE"
        )
    )
    var target: String?
    @Flag(help: "End every fetch.")
    var all = false
    @Flag(help: "End the wait of requests, and keep the fetch.")
    var waiters = false
    @OptionGroup var options: AdminOptions

    func validate() throws {
        if all == (target != nil) {
            throw ValidationError("give one of a URL, a service and --all")
        }
    }

    func run() throws {
        var query: AdminQuery.Item = ("all", nil)
        // Names of services have no slash; URLs and paths have one.
        if let target { query = (target.contains("/") ? "url" : "service", target) }
        let isOfWaiters = waiters
        try options.order("POST", .cancel, query: isOfWaiters ? [query, ("waiters", nil)] : [query]) {
            (ended: AdminCancelled) in
            if ended.fetches == 0 { return "no matching fetch is under way" }
            let fetches = ended.fetches == 1 ? "1 fetch" : "\(ended.fetches) fetches"
            if isOfWaiters {
                let requests = ended.waiters == 1 ? "1 waiting request" : "\(ended.waiters) waiting requests"
                return "\(requests) told, \(fetches) kept"
            }
            return "\(fetches) ended, \(Format.count(ended.waiters, "waiting request")) told"
        }
    }
}

// MARK: - `drydock parked`

/// `drydock parked`: the calls that wait for an origin that cannot be reached.
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

/// The option for the calls that a command is about.
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
    /// The call as a line: `17  api  POST /orders  parked 12s, 9m left, 1.2 KiB, 2 replays: the status was 503`.
    fileprivate var line: String {
        let times = "\(Format.duration(waited)), \(Format.duration(left)) left"
        return
            "\(id)  \(service)  \(method) \(path)  \(state) \(times), \(Format.size(size)), \(replays) \(replays == 1 ? "replay" : "replays"): \(reason)"
    }
}
