// `drydock cancel`: ends fetches that are under way.

import AdminAPI
import ArgumentParser

struct Cancel: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "End fetches that are under way; stored responses stay.",
        discussion: """
            Requests that wait for the head of a response get a 503 with the title "Cancelled". Connections whose body \
            is being sent are closed, so that no client takes the body for complete. Stored responses keep their \
            lifetimes, later requests begin a new fetch, and requests with methods other than GET and HEAD continue.
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
        try options.order("POST", .cancel, query: [query]) { (ended: AdminCancelled) in
            if ended.fetches == 0 { return "no matching fetch is under way" }
            let fetches = ended.fetches == 1 ? "1 fetch" : "\(ended.fetches) fetches"
            return "\(fetches) ended, \(ended.waiters) waiting request\(ended.waiters == 1 ? "" : "s") told"
        }
    }
}
