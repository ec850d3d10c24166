// `drydock list`, `purge`, `pin`, `unpin` and `pins`: the stored responses, their removal, and their protection from
// it.

import ArgumentParser
import Configuration
import DrydockDaemon
import ProxyServer

struct List: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "List stored responses: URL, size, tier, age, freshness.",
        discussion: """
            The list is ordered by URL. Freshness is in seconds; a negative value says for how long a response has been stale. \
            Braces show what else is part of the key, and brackets show the fields that Vary names.
            """
    )
    enum Tier: String, ExpressibleByArgument, CaseIterable { case memory, disk }

    @Argument(
        help:
            "A part of the URLs to list, or, with *, a pattern for the whole URL, in which * matches anything. It may be the origin's URL, or written as clients send it."
    )
    var pattern: String?
    @Option(help: "Only URLs that begin with this text.")
    var prefix: String?
    @Option(help: "Only what is stored for this service; 'forward' is forward mode.")
    var service: String?
    @Option(help: "Only responses in this tier: memory or disk.")
    var tier: Tier?
    @Flag(help: "Only fresh responses.")
    var fresh = false
    @Flag(help: "Only stale responses.")
    var stale = false
    @Flag(help: "Only pinned responses.")
    var pinned = false
    @Option(help: "Only bodies of at least this size, such as 64KiB.")
    var minSize: String?
    @Option(help: "Only responses that arrived, or were last validated, longer ago than this, such as 12h or 7d.")
    var olderThan: String?
    @Option(help: "The most entries to print, but for further variants of the last URL.")
    var limit = 1000
    @Option(help: ArgumentHelp("Only URLs behind this one in the order of the list.", valueName: "url"))
    var after: String?
    @OptionGroup var options: AdminOptions

    /// The most entries that are counted after the last one that is printed.
    private static let maximumCounted = 10_000

    func validate() throws {
        if limit < 1 { throw ValidationError("--limit is \(limit); give 1 or more") }
        if fresh && stale { throw ValidationError("give --fresh or --stale, not both") }
        if pattern?.isEmpty == true { throw ValidationError("the pattern is empty; leave it out to list everything") }
        _ = try Lifetimes.seconds(olderThan, of: "--older-than")
        do throws(Lifetimes.Malformed) { if let minSize { _ = try Sizes.bytes(minSize) } } catch {
            throw ValidationError("--min-size: \(error)")
        }
    }

    private func query() throws -> [AdminQuery.Item] {
        let values = [
            ("pattern", pattern), ("prefix", prefix), ("service", service), ("tier", tier?.rawValue),
            ("older_than", olderThan), ("min_size", try minSize.map { "\(try Sizes.bytes($0))" }),
        ]
        let flags = [("fresh", fresh), ("stale", stale), ("pinned", pinned)].filter(\.1)
        return values.filter { $0.1 != nil } + flags.map { ($0.0, nil) }
    }

    func run() throws {
        var found: [AdminEntries.Entry] = []
        var after = after
        let query = try query()
        let client = try options.client
        func page(_ limit: Int) throws -> [AdminEntries.Entry] {
            var query = [("limit", "\(min(limit, 1000))")] + query
            if let after { query.append(("after", after)) }
            let page = try client.request("GET", .entries, query: query).successful().decode(AdminEntries.self)
            after = page.next
            return page.entries
        }
        repeat {
            // A page never splits a URL, so it may have more entries than were asked for.
            let entries = try page(limit - found.count)
            if !options.json { for line in Format.table(entries.map(columns)) { print(line) } }
            found += entries
        } while after != nil && found.count < limit
        let next = after
        var more = 0
        while after != nil, more < Self.maximumCounted { more += try page(1000).count }
        guard options.json else {
            guard more > 0, let next else { return }
            let count = after == nil ? "\(more)" : "more than \(more)"
            return printError("\(count) more: use --limit \(found.count + more), or --after '\(next)' for what follows")
        }
        let document = AdminEntries(entries: found, next: more > 0 ? next : nil, more: more)
        print(String(decoding: try AdminJSON.encode(document), as: UTF8.self), terminator: "")
    }

    /// The columns of an entry: the last one has its URL, and what else there is to say of it.
    private func columns(_ entry: AdminEntries.Entry) -> [String] {
        let key = entry.key ?? []
        let keyed = key.isEmpty ? "" : "  {\(key.joined(separator: ", "))}"
        let variant = entry.variant.sorted { $0.key < $1.key }.map { "\($0.key): \($0.value)" }
        let rest =
            (entry.isPinned ? "  pinned" : "") + keyed
            + (variant.isEmpty ? "" : "  [\(variant.joined(separator: ", "))]")
        return [
            "\(entry.status)", entry.size.map(Format.size) ?? "?", entry.tiers.joined(separator: "+"),
            "age \(Format.duration(entry.age))", "ttl \(entry.ttl.map { "\($0)s" } ?? "?")",
            entry.service.isEmpty ? "forward" : entry.service, entry.url + rest,
        ]
    }
}

// MARK: - `drydock purge`, `pin`, `unpin` and `pins`

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
        _ = try Lifetimes.seconds(olderThan, of: "--older-than")
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
            let responses = Format.count(answer.purged, "stored response")
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
            guard pin.isChanged else { return "\(pin.url) was \(pin.isPinned ? "pinned already" : "not pinned")" }
            return "\(pin.isPinned ? "pinned" : "unpinned") \(pin.url)"
        }
    }
}
