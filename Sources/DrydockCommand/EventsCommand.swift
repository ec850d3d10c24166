// `drydock events`: what becomes of calls, line by line while it happens.

import ArgumentParser
import DrydockDaemon
import Glibc
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
        let client = try daemon.client
        // Whoever reads, or presses Ctrl-C, has had enough, and nothing has gone wrong.
        for number in [SIGINT, SIGTERM, SIGPIPE] { signal(number) { _ in _exit(0) } }
        try client.stream(.events, query: query) { lines in
            var rest = lines
            while !rest.isEmpty {
                let count = rest.withUnsafeBytes { write(STDOUT_FILENO, $0.baseAddress, $0.count) }
                if count < 0, errno == EINTR { continue }
                guard count > 0 else { _exit(0) }
                rest = rest.dropFirst(count)
            }
        }
    }
}
