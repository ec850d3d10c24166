// `drydock journal` and `verify`: the requests and their answers, and a check that a request came as often as expected.

import ArgumentParser
import DrydockDaemon
import ProxyServer

struct Journal: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Print the requests that the journal has, the oldest first.",
        discussion: """
            The configuration must keep a journal: journal: 16MiB. With --follow the command ends when the daemon ends, or on \
            Ctrl-C, with code 0.
            """
    )
    @Flag(help: "Print what is recorded from now on, too.")
    var follow = false
    @Option(help: ArgumentHelp("Only requests of this service.", valueName: "name"))
    var service: String?
    @Option(help: ArgumentHelp("Only the youngest entries; with --follow 0 or all.", valueName: "number"))
    var limit: Int?
    @Flag(help: "Remove all entries instead.")
    var clear = false
    @OptionGroup var options: AdminOptions

    func validate() throws {
        if let limit, limit < 0 || follow && limit != 0 {
            throw ValidationError("--limit takes a number of entries; with --follow it is 0, or left out")
        }
        if clear, follow || service != nil || limit != nil {
            throw ValidationError("--clear removes all entries, and goes with no other choice of entries")
        }
    }

    func run() throws {
        if clear {
            return try options.order("DELETE", .journal) { (answer: AdminJournalCleared) in
                answer.entries == 1 ? "1 entry removed" : "\(answer.entries) entries removed"
            }
        }
        var query: [AdminQuery.Item] = []
        if let service { query.append(("service", service)) }
        if let limit { query.append(("limit", "\(limit)")) }
        if follow { return try tail(query) }
        let answer = try options.client.request("GET", .journal, query: query).successful()
        if options.json { return print(answer.text, terminator: "") }
        let journal = try answer.decode(AdminJournal.self)
        if journal.dropped > 0 { printError("\(journal.dropped) older entries made room for these") }
        for entry in journal.entries { print(entry.line) }
    }

    private func tail(_ query: [AdminQuery.Item]) throws {
        let client = try options.client
        endQuietlyBySignals()
        var rest: [UInt8] = []
        try client.stream(.journal, query: query + [("follow", nil)]) { bytes in
            rest += bytes
            while let end = rest.firstIndex(of: 0x0A) {
                let line = Array(rest[...end])
                rest.removeSubrange(...end)
                let entry = options.json ? nil : try? AdminJSON.decode(AdminJournalEntry.self, from: line)
                printBytes((entry.map { Array("\($0.line)\n".utf8) } ?? line)[...])
            }
        }
    }
}

extension AdminJournalEntry {
    /// The entry as a line: `2026-01-31T12:00:00.123Z  17  POST /shop/orders 201 demo 0.4ms shop/order [endpoint=order;
    /// …]`.
    var line: String {
        var line = "\(time)  \(number)  \(method) \(target) \(status) \(source) \(durationMs)ms"
        if let service { line += " \(service)\(endpoint.map { "/\($0)" } ?? "")" }
        if let said = demo ?? cacheStatus { line += " [\(said)]" }
        if let violations { line += " violates: \(violations)" }
        return isAborted == true ? line + " aborted" : line
    }
}

// MARK: - `drydock verify`

/// `drydock verify`: checks that a request came as often as expected, for the end of a test.
struct Verify: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Check how often a request came, by the journal; the exit code is 1 unless it is as expected.",
        discussion: """
            Without a number, the request must have come at least once. If it is not as expected, the command prints what \
            came closest. A journal that has dropped older entries proves no upper bound: then the exit code is 1, too.

            drydock verify 'POST /shop/orders' --times 2 --body-json '{"sku": "A-1"}' --since 5m
            """
    )
    @Argument(
        help: ArgumentHelp(
            "Method and path as clients write them, or the path alone; * stands for any characters, and a query for its items.",
            valueName: "METHOD PATH"
        )
    )
    var request: String
    @Option(help: ArgumentHelp("Exactly so often.", valueName: "number"))
    var times: Int?
    @Option(help: ArgumentHelp("So often or more often.", valueName: "number"))
    var atLeast: Int?
    @Option(help: ArgumentHelp("So often or less often.", valueName: "number"))
    var atMost: Int?
    @Flag(help: "Not once.")
    var never = false
    @Option(help: ArgumentHelp("The body is JSON with at least these members.", valueName: "json"))
    var bodyJson: String?
    @Option(help: ArgumentHelp("The body contains this text.", valueName: "text"))
    var bodyContains: String?
    @Option(help: ArgumentHelp("The request has this field; may be repeated.", valueName: "'name: value'"))
    var field: [String] = []
    @Option(help: ArgumentHelp("The query has this item; may be repeated.", valueName: "name=value"))
    var query: [String] = []
    @Option(help: ArgumentHelp("Only requests of this service.", valueName: "name"))
    var service: String?
    @Option(help: ArgumentHelp("Only requests of endpoints with this name.", valueName: "name"))
    var endpoint: String?
    @Option(help: ArgumentHelp("Only requests that are younger, such as 30s or 5m.", valueName: "duration"))
    var since: String?
    @OptionGroup var options: AdminOptions

    func validate() throws {
        if never, times != nil || atLeast != nil || atMost != nil {
            throw ValidationError("--never goes with no other number")
        }
        _ = try wanted
    }

    /// The expectation as a document for the daemon.
    private var wanted: AdminVerification {
        get throws {
            var wanted = AdminVerification()
            let words = request.split(separator: " ").map(String.init)
            switch words.count {
            case 1: wanted.path = words[0]
            case 2: (wanted.method, wanted.path) = (words[0], words[1])
            default: throw ValidationError("'\(request)' is no request; write 'METHOD PATH', or a path")
            }
            guard let path = wanted.path, path.hasPrefix("/") || path.hasPrefix("*") || path.contains("://") else {
                throw ValidationError("'\(words.last ?? "")' is no path; it begins with a slash, or with *")
            }
            func item(_ text: String, _ mark: Character, _ form: String) throws -> AdminVerification.Item {
                let pair = text.split(separator: mark, maxSplits: 1, omittingEmptySubsequences: false)
                guard pair.count == 2, !pair[0].isEmpty else {
                    throw ValidationError("'\(text)' is not of the form \(form)")
                }
                return AdminVerification.Item(
                    name: String(pair[0]),
                    value: pair[1].trimmed { mark == ":" && ($0 == " " || $0 == "\t") }
                )
            }
            if !field.isEmpty { wanted.fields = try field.map { try item($0, ":", "'Name: value'") } }
            if !query.isEmpty { wanted.query = try query.map { try item($0, "=", "name=value") } }
            (wanted.bodyJson, wanted.bodyContains) = (bodyJson, bodyContains)
            (wanted.service, wanted.endpoint, wanted.since) = (service, endpoint, since)
            (wanted.times, wanted.atLeast, wanted.atMost) = (never ? 0 : times, atLeast, atMost)
            return wanted
        }
    }

    func run() throws {
        let body = try AdminJSON.encode(try wanted)
        let answer = try options.client.request("POST", .verify, body: body).successful()
        let verdict = try answer.decode(AdminVerdict.self)
        if options.json { print(answer.text, terminator: "") }
        guard verdict.isMet else {
            if !options.json { printError(verdict.text(request)) }
            throw ExitCode(1)
        }
        if !options.json { print("ok: \(request): \(verdict.count) came, \(verdict.expected) expected") }
    }
}

extension AdminVerdict {
    fileprivate func text(_ request: String) -> String {
        var lines = ["drydock: \(request): \(reason ?? "")"]
        if closest.isEmpty {
            lines.append("the journal has no request like it")
        } else {
            lines.append("the closest:")
        }
        for near in closest {
            lines.append("  \(near.entry.line)")
            lines += near.differences.map { "    \($0)" }
        }
        return lines.joined(separator: "\n")
    }
}
