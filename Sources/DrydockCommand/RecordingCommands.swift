// `drydock record` and `drydock drift`: recordings of stored responses, and a check that origins still answer as
// recorded.

import ArgumentParser
import DrydockDaemon
import ProxyServer

struct Record: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Make recordings of stored responses, or copy recordings into a folder.",
        discussion: """
            A service makes recordings by itself with source: record. Its recordings are files in the folder recordings.dir; \
            the next request gets what they say.
            """,
        subcommands: [Keep.self, Export.self]
    )

    struct Keep: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Make a recording of the stored response to a GET.",
            discussion: """
                It is written without secrets and without content codings, in the place of an earlier recording of the request. \
                The service has recordings.dir, and needs no other source than live.
                """
        )
        @Argument(help: "A URL as a client sends it, or as 'drydock list' prints it.")
        var url: String
        @Option(
            name: [.customShort("H"), .customLong("header")],
            help: ArgumentHelp(
                "A field of the request, where the response depends on it; may be repeated.",
                valueName: "'Name: value'"
            )
        )
        var fields: [String] = []
        @Option(help: "The service, where several lead to the URL.")
        var service: String?
        @OptionGroup var options: AdminOptions

        func run() throws {
            var query: [AdminQuery.Item] = [("keep", url)] + fields.map { ("field", $0) }
            if let service { query.append(("service", service)) }
            try options.order("POST", .recordings, query: query) { (kept: AdminRecording) in
                "\(kept.service)  \(kept.request)  \(kept.status), \(Format.size(kept.bytes))"
            }
        }
    }

    struct Export: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Write recordings into a seed folder.",
            discussion: """
                The folder is one as 'drydock seed export' makes it: a service can use it with cache: { seed_dir: DIR }, and \
                'drydock seed import' reads it. Recordings of other methods than GET, and those whose query has a secret, are \
                left out.
                """
        )
        @Argument(help: "The folder; it is created if it does not exist.", completion: .directory)
        var dir: String
        @Option(help: "Only the recordings of this service.")
        var service: String?
        @OptionGroup var options: AdminOptions

        func run() throws {
            var query: [AdminQuery.Item] = [("export", Seed.absolute(dir))]
            if let service { query.append(("service", service)) }
            try Seed.export(.recordings, query, options)
        }
    }
}

struct Drift: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Ask origins whether they still answer as they were recorded.",
        discussion: """
            Each recording of a GET is checked with its origin: by its validator, or else by a comparison of status, fields \
            and content. No recording changes. Exit codes: 0 if nothing has drifted, 4 if something has changed or is gone, 1 \
            if something could not be checked.
            """
    )

    /// The exit code if an origin's answer differs from the recorded one.
    static let drifted: Int32 = 4

    @Argument(help: "Only the recordings of this service.")
    var service: String?
    @Option(
        name: [.customShort("H"), .customLong("header")],
        help: ArgumentHelp(
            "A field of each request, such as a credential; may be repeated.",
            valueName: "'Name: value'"
        )
    )
    var fields: [String] = []
    @Option(
        help: ArgumentHelp(
            "A field that is compared, besides Content-Type, Content-Language and Location; may be repeated.",
            valueName: "name"
        )
    )
    var compare: [String] = []
    @OptionGroup var options: AdminOptions

    func run() throws {
        var query: [AdminQuery.Item] = service.map { [("service", $0)] } ?? []
        query += fields.map { ("field", $0) } + compare.map { ("compare", $0) }
        var client = try options.client
        client.timeout = 3600
        let answer = try client.request("POST", .drift, query: query).successful()
        let drift = try answer.decode(AdminDrift.self)
        if options.json { print(answer.text, terminator: "") } else { print(drift.text) }
        if drift.hasDrifted {
            throw Failure(message: "\(drift.changed + drift.gone) recordings have drifted", code: Self.drifted)
        }
        if drift.unreachable + drift.unreadable > 0 {
            throw Failure(message: "\(drift.unreachable + drift.unreadable) recordings could not be checked")
        }
    }
}

extension AdminDrift {
    /// A line for each recording that differs, and the counts.
    fileprivate var text: String {
        var lines = recordings.flatMap(\.lines)
        var counts = "\(same) the same, \(changed) changed, \(gone) gone, \(unreachable) unreachable"
        if unreadable > 0 { counts += ", \(unreadable) unreadable" }
        if leftOut > 0 { counts += ", \(leftOut) left out" }
        lines.append(counts)
        return lines.joined(separator: "\n")
    }
}

extension AdminDrift.Recording {
    /// The recording as a line, such as `changed      api  GET /users/7`, and a line for each difference.
    fileprivate var lines: [String] {
        let word = state.rawValue.replacing("-", with: " ")
        let padded = word + String(repeating: " ", count: max(0, 11 - word.count))
        var differences: [String] = []
        if let status { differences.append("status: \(recordedStatus.map { "\($0) -> " } ?? "")\(status)") }
        differences += fields.map { "\($0.name): \($0.recorded ?? "none") -> \($0.now ?? "none")" }
        differences += content.map { "content: \($0)" }
        if let reason { differences.append(reason) }
        return ["\(padded)  \(service)  \(request)"] + differences.map { "             \($0)" }
    }
}
