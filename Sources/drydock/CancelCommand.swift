// `drydock cancel`: ends fetches that are under way.

import ArgumentParser

struct Cancel: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "End fetches that are under way; what is stored stays.",
        discussion: """
            Requests that wait for the head of a response are answered 503 with the title "Cancelled"; those whose body \
            is on its way are cut off, so that no client takes it for whole. Stored responses keep their lifetimes, \
            later requests fetch anew, and requests with other methods than GET and HEAD go on.
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
            throw ValidationError("name a URL or a service, or give --all: one of them")
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
        let answer = try options.client.request("POST", "/v1/cancel?\(query)").successful()
        if options.json { return print(answer.text, terminator: "") }
        let ended = try answer.decode(Document.self)
        if ended.fetches == 0 { return print("no such fetch is under way") }
        let fetches = ended.fetches == 1 ? "1 fetch" : "\(ended.fetches) fetches"
        print("\(fetches) ended, \(ended.waiters) waiting request\(ended.waiters == 1 ? "" : "s") told")
    }
}
