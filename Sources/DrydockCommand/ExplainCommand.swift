// `drydock explain`: the answer that a request would get, and the rule that decides it.

import ArgumentParser
import DrydockDaemon
import ProxyServer

struct Explain: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract:
            "Show how Drydock decides about a request and which rule decides, without asking an origin or changing anything.",
        discussion: """
            It shows the key, the tiers that have a response, the variants with the fields that select them, the age term by \
            term, the freshness lifetime and where it comes from, the decision with its section of the RFC, and the request \
            that would be sent to the origin. If nothing is stored, it says why the last response was not stored. It also \
            says how long a failed validation is not repeated, and what a placeholder or a fallback would do. In demo mode it \
            shows the rules up to the one that answers, and why the earlier ones do not; conditions on a body are not checked.
            """
    )
    @Argument(
        help:
            "The URL as a client sends it (/github/users, http://localhost:8080/github/users), or the origin's URL, as 'drydock list' prints it: in forward mode if that accepts it, or else through the service that leads there."
    )
    var url: String
    @Option(help: "Explain the request through this service; 'forward' is forward mode.")
    var service: String?
    @Flag(help: "Explain the request that a program with http_proxy sends for the URL, and which rule takes it.")
    var proxy = false
    @Option(help: "The method of the request.")
    var method = "GET"
    @Option(name: [.customShort("H"), .customLong("header")], help: "A request field, 'Name: value'; may be repeated.")
    var header: [String] = []
    @OptionGroup var options: AdminOptions

    func validate() throws {
        for field in header where !field.contains(":") || field.hasPrefix(":") {
            throw ValidationError("-H '\(field)' is not a field; write 'Name: value'")
        }
        if proxy, service != nil {
            throw ValidationError("--proxy says which service takes the request, so leave --service out")
        }
    }

    func run() throws {
        var query: [AdminQuery.Item] = [("as", options.json ? "json" : "text"), ("url", url)]
        if let service { query.append(("service", service)) }
        if proxy { query.append(("proxy", "true")) }
        if method != "GET" { query.append(("method", method)) }
        for field in header { query.append(("field", field)) }
        print(try options.client.request("GET", .explain, query: query).successful().text, terminator: "")
    }
}
