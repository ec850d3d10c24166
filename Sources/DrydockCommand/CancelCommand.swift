// `drydock cancel`: ends fetches that are under way.

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

    private struct Document: Decodable {
        let fetches: Int
        let waiters: Int
    }

    func run() throws {
        var query = "all"
        // Names of services have no slash, and URLs and paths do.
        if let target { query = (target.contains("/") ? "url=" : "service=") + AdminClient.escape(target) }
        let client = try options.client
        let answer = try client.request("POST", "/v1/cancel?\(query)").successful()
        client.sayWhich()
        if options.json { return print(answer.text, terminator: "") }
        let ended = try answer.decode(Document.self)
        if ended.fetches == 0 { return print("no matching fetch is under way") }
        let fetches = ended.fetches == 1 ? "1 fetch" : "\(ended.fetches) fetches"
        print("\(fetches) ended, \(ended.waiters) waiting request\(ended.waiters == 1 ? "" : "s") told")
    }
}
