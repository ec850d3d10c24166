// `drydock explain`: what would become of a request, and which rule says so.

import ArgumentParser

struct Explain: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "What becomes of a GET, and which rule decides; nothing is asked or changed.",
        discussion: """
            The key, where it is stored, the variants with the fields that select them, the age term by term, the lifetime \
            and where it comes from, the decision with its section, and what the origin would be sent.
            """
    )
    @Argument(
        help:
            "The URL as a client sends it: /github/users, http://localhost:8080/github/users, or that of an origin in forward mode."
    )
    var url: String
    @Option(name: [.customShort("H"), .customLong("header")], help: "A request field, 'Name: value'; may be repeated.")
    var header: [String] = []
    @OptionGroup var options: AdminOptions

    func validate() throws {
        for field in header where !field.contains(":") || field.hasPrefix(":") {
            throw ValidationError("-H '\(field)' is no field; write 'Name: value'")
        }
    }

    func run() throws {
        var path = "/v1/explain?as=\(options.json ? "json" : "text")&url=\(AdminClient.escape(url))"
        for field in header { path += "&field=\(AdminClient.escape(field))" }
        print(try options.client.request("GET", path).successful().text, terminator: "")
    }
}
