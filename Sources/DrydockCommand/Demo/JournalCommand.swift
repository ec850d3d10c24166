// `drydock journal`: what was asked, and what was answered.

import ArgumentParser
import DrydockDaemon
import Glibc
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
        // Whoever reads, or presses Ctrl-C, has had enough, and nothing has gone wrong.
        for number in [SIGINT, SIGTERM, SIGPIPE] { signal(number) { _ in _exit(0) } }
        var rest: [UInt8] = []
        try client.stream(.journal, query: query + [("follow", nil)]) { bytes in
            rest += bytes
            while let end = rest.firstIndex(of: 0x0A) {
                let line = Array(rest[...end])
                rest.removeSubrange(...end)
                let entry = options.json ? nil : try? AdminJSON.decode(AdminJournalEntry.self, from: line)
                write(entry.map { Array("\($0.line)\n".utf8) } ?? line)
            }
        }
    }

    private func write(_ line: [UInt8]) {
        var rest = line[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Glibc.write(STDOUT_FILENO, $0.baseAddress, $0.count) }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { _exit(0) }
            rest = rest.dropFirst(count)
        }
    }
}

extension AdminJournalEntry {
    /// `2026-01-31T12:00:00.123Z  17  POST /shop/orders 201 demo 0.4ms shop/order [endpoint=order; …]`
    var line: String {
        var line = "\(time)  \(number)  \(method) \(target) \(status) \(source) \(durationMs)ms"
        if let service { line += " \(service)\(endpoint.map { "/\($0)" } ?? "")" }
        if let said = demo ?? cacheStatus { line += " [\(said)]" }
        if let violations { line += " violates: \(violations)" }
        return isAborted == true ? line + " aborted" : line
    }
}
