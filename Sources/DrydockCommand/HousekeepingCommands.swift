// `drydock purge`, `pin`, `unpin` and `pins`: what is removed, and what stays.

import ArgumentParser
import Configuration
import DrydockDaemon
import ProxyServer

struct Purge: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Remove stored responses, or make them stale.",
        discussion: """
            When the command returns, the purge is in force in memory, on disk, for fetches under way, and after a restart; \
            the files are removed in the background. It also removes pinned responses, except with --older-than. With \
            --soft the stored responses become stale: they are used where stale responses are allowed, and a successful \
            validation makes them fresh again.
            """
    )
    @Argument(
        help: ArgumentHelp(
            "URLs, as 'drydock list' prints them, or URLs and paths as clients send them.",
            valueName: "url"
        )
    )
    var urls: [String] = []
    @Option(help: "All URLs that begin with this text; may be repeated.")
    var prefix: [String] = []
    @Option(help: "All URLs that match this pattern, in which * matches anything; may be repeated.")
    var glob: [String] = []
    @Option(help: "All responses with this tag (Cache-Tag, Surrogate-Key, Cache-Groups); may be repeated.")
    var tag: [String] = []
    @Option(help: "Responses that arrived, or were last validated, longer ago than this, such as 12h or 7d.")
    var olderThan: String?
    @Flag(help: "Everything.")
    var all = false
    @Option(help: "Only what is stored for this service; 'forward' is forward mode.")
    var service: String?
    @Flag(help: "Make the responses stale instead of removing them.")
    var soft = false
    @OptionGroup var options: AdminOptions

    func validate() throws {
        let kinds = [!urls.isEmpty, !prefix.isEmpty, !glob.isEmpty, !tag.isEmpty, olderThan != nil, all]
        guard kinds.count(where: \.self) == 1 else {
            throw ValidationError("give one of URLs, --prefix, --glob, --tag, --older-than and --all")
        }
        guard let olderThan else { return }
        do throws(Lifetimes.Malformed) { _ = try Lifetimes.seconds(olderThan) } catch {
            throw ValidationError("--older-than: \(error)")
        }
    }

    func run() throws {
        var query: [AdminQuery.Item] = urls.map { ("url", $0) }
        query += prefix.map { ("prefix", $0) }
        query += glob.map { ("glob", $0) }
        query += tag.map { ("tag", $0) }
        if let olderThan { query.append(("older_than", olderThan)) }
        if all { query.append(("all", nil)) }
        if let service { query.append(("service", service)) }
        if soft { query.append(("soft", nil)) }
        try options.order("DELETE", .entries, query: query) { (answer: AdminPurge) in
            let responses = "\(answer.purged) stored response\(answer.purged == 1 ? "" : "s")"
            return answer.isSoft ? "\(responses) made stale" : "\(responses) purged"
        }
    }
}

struct Pin: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Protect a URL's stored responses from eviction.",
        discussion: """
            A pin protects all variants, also those that are stored later, and survives restarts. There may be 1000 pins. \
            A pinned response becomes stale like any other. 'drydock purge --older-than' does not remove it; other purges \
            do, and the URL stays pinned.
            """
    )
    @Argument(help: "The URL, as 'drydock list' prints it, or a path as clients send it.")
    var url: String
    @OptionGroup var options: AdminOptions

    func run() throws { try Pins.set("PUT", url, options) }
}

struct Unpin: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "End the protection of a URL's stored responses from eviction."
    )
    @Argument(help: "The URL, as 'drydock pins' prints it, or a path as clients send it.")
    var url: String
    @OptionGroup var options: AdminOptions

    func run() throws { try Pins.set("DELETE", url, options) }
}

struct Pins: ParsableCommand {
    static let configuration = CommandConfiguration(abstract: "List the pinned URLs.")
    @OptionGroup var options: AdminOptions

    func run() throws {
        let answer = try options.client.request("GET", .pins).successful()
        if options.json { return print(answer.text, terminator: "") }
        for url in try answer.decode(AdminPins.self).urls { print(url) }
    }
    fileprivate static func set(_ method: String, _ url: String, _ options: AdminOptions) throws {
        try options.order(method, .pins, query: [("url", url)]) { (pin: AdminPin) in
            let word = pin.isPinned ? "pinned" : "unpinned"
            return pin.isChanged ? "\(word) \(pin.url)" : "\(pin.url) was \(word) already"
        }
    }
}
