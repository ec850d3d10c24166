// `drydock cancel`: ends fetches that are under way.

import ArgumentParser
import DrydockDaemon
import ProxyServer

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
        // Names of services have no slash, and URLs and paths do.
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
            return "\(fetches) ended, \(ended.waiters) waiting request\(ended.waiters == 1 ? "" : "s") told"
        }
    }
}
