// `drydock tail`: the answers to clients, one line each, while they are given.

import ArgumentParser
import DrydockDaemon
import ProxyServer

struct Tail: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Print the answers to clients while they are given, one line each, with what gave them and why.",
        discussion: """
            Filters add up. A reader that is too slow loses lines, and a line says how many. The access log need not be \
            on. The command ends when the daemon ends, or on Ctrl-C, with code 0.
            """
    )
    @Option(help: ArgumentHelp("Only answers of this service ('forward' for forward mode).", valueName: "name"))
    var service: String?
    @Option(
        help: ArgumentHelp("Only answers with this status, such as 404, or class, such as 5xx.", valueName: "status")
    )
    var status: String?
    @Option(
        help: ArgumentHelp(
            "Only answers with this outcome: hit, miss, revalidated, stale, placeholder, fallback, bypass, collapsed, demo, recording, error or none.",
            valueName: "outcome"
        ),
        completion: .list(CacheOutcome.allCases.map(\.label))
    )
    var outcome: String?
    @Option(
        help: ArgumentHelp(
            "Only answers to the client with this IP address, or unix for unix sockets.",
            valueName: "address"
        )
    )
    var client: String?
    @Option(help: ArgumentHelp("Only answers to requests whose target contains this.", valueName: "part"))
    var url: String?
    @Flag(help: "Print one JSON document a line.")
    var json = false
    @OptionGroup var daemon: DaemonOptions

    func run() throws {
        var query: [AdminQuery.Item] = [("follow", nil)]
        if !json { query.append(("as", "text")) }
        for (name, value) in [
            ("service", service), ("status", status), ("outcome", outcome), ("client", client), ("url", url),
        ] {
            if let value { query.append((name, value)) }
        }
        try daemon.client.printStream(.traffic, query: query)
    }
}

extension AdminClient {
    /// Prints what a stream brings until its end. A reader that closes the pipe, or Ctrl-C, ends the program without a
    /// failure.
    func printStream(_ path: AdminPath, query: [AdminQuery.Item]) throws {
        endQuietlyBySignals()
        try stream(path, query: query) { printBytes($0) }
    }
}
