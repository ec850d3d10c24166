// The daemon, the origins and the clients of a transcript.

import Foundation
import TestSupport

/// A daemon with services of every kind, in a folder in which commands run.
final class CommandWorld {
    /// Begins the lines that a command wrote to standard error.
    private static let errorMark = "! "

    let patterns: OutputPatterns
    private let daemon: Daemon
    private let origins: [String: ScriptedOrigin]
    private var stream: CommandStream?
    private var parked: [ParkedRequest] = []

    init(_ clock: StillClock) throws {
        // The order of URLs is that of the ports.
        let made = try (0..<2).map { _ in try ScriptedOrigin(Self.reply) }.sorted { $0.port < $1.port }
        origins = ["shop": made[0], "parcels": made[1]]
        let home = try DaemonHome()
        for (name, text) in CommandFiles.all { try home.folder.write(name, text) }
        let settings = CommandFiles.configuration(
            folder: home.folder.path,
            port: home.port,
            shop: made[0].url,
            parcels: made[1].url
        )
        daemon = try Daemon(text: settings, at: home, environment: clock.environment)
        let version = try Shell.must(try Daemon.binary(), ["--version"]).trimmingCharacters(in: .whitespacesAndNewlines)
        patterns = OutputPatterns(texts: [
            (home.folder.path, "/FOLDER"), (":\(home.port)", ":PROXY"), ("Port=\(home.port)", "Port=PROXY"),
            ("HOST \(home.port)", "HOST PROXY"), (":\(made[0].port)", ":SHOPS"),
            (":\(made[1].port)", ":AWAYS"), (version, "VERSION"), ("process \(daemon.pid)", "process PID"),
            ("\"pid\":\(daemon.pid)", "\"pid\":PID"),
        ])
    }

    /// Does a step; the lines that it led to.
    func perform(_ step: Transcript.Step) throws -> [String] {
        switch step {
        case .run(let words): return try run(words)
        case .begin(let words): return try begin(words)
        case .end(let count): return try end(count)
        case .ask(let method, let target, let body):
            return [Self.line(of: try daemon.exchange(method, target, body: body.map { Array($0.utf8) }))]
        case .park(let method, let target, let body):
            let count = try daemon.metric("drydock_parked_calls")
            parked.append(try ParkedRequest(daemon, method, target, body))
            guard try blockUntil(120, { try daemon.metric("drydock_parked_calls") == count + 1 }) else {
                throw TestSupportError.timedOut("\(method) \(target) was not parked")
            }
            return []
        case .answers:
            defer { parked = [] }
            return try parked.map { "\($0.name): \(Self.line(of: try $0.answer()))" }
        case .origin(let name, let isAway):
            guard let origin = origins[name] else { throw TestSupportError.missing("the origin \(name)") }
            if isAway { origin.stop() } else { try origin.restart() }
            return []
        case .replace(let file, let old, let new):
            let text = daemon.home.folder.text(file)
            guard text.contains(old) else { throw TestSupportError.missing("'\(old)' in \(file)") }
            try daemon.home.folder.write(file, text.replacing(old, with: new))
            return []
        }
    }

    // MARK: - Commands

    private func run(_ words: [String]) throws -> [String] {
        try waitForTheDisk()
        let result = try Shell.run(
            try Daemon.binary(),
            words.map(patterns.concrete),
            environment: CommandStream.environment(daemon.home.folder),
            folder: daemon.home.folder.path
        )
        return lines(result.end, result.output, result.errors)
    }

    private func lines(_ end: ProcessEnd?, _ output: String, _ errors: String) -> [String] {
        func lines(_ text: String, _ mark: String) -> [String] {
            let lines = text.split(separator: "\n", omittingEmptySubsequences: false).map { mark + $0 }
            return patterns.normalized(text.isEmpty || text.hasSuffix("\n") ? lines.dropLast() : lines)
        }
        let code =
            switch end {
            case .exited(0): [String]()
            case .exited(let code): ["= \(code)"]
            case let other: ["= \(other.map { "\($0)" } ?? "timed out")"]
            }
        return Self.shortened(output, lines(output, "")) + lines(errors, Self.errorMark) + code
    }

    /// Waits until the disk tier has what memory has: it stores behind the answers.
    private func waitForTheDisk() throws {
        let isThere = try blockUntil(120) {
            try daemon.metric("drydock_disk_entries") == daemon.metric("drydock_memory_entries")
        }
        guard isThere else { throw TestSupportError.timedOut("the disk tier has other entries than memory") }
    }

    /// What a transcript has of a long output: its head, or the name of the file in config that has the same bytes.
    private static func shortened(_ output: String, _ lines: [String]) -> [String] {
        guard lines.count > 60 else { return lines }
        let root = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../../..").standardized.path
        let schema = "config/drydock.schema.json"
        if output == readText("\(root)/\(schema)") { return ["... as \(schema)"] }
        return lines.prefix(12) + ["... and so on"]
    }

    /// Begins a command that goes on; it has printed something, or the daemon has one reader more.
    private func begin(_ words: [String]) throws -> [String] {
        let readers = try daemon.metric("drydock_traffic_readers")
        let stream = try CommandStream(words.map(patterns.concrete), in: daemon.home.folder)
        guard try blockUntil(120, { try stream.hasBegun || daemon.metric("drydock_traffic_readers") > readers }) else {
            throw TestSupportError.timedOut("\(words) has not begun")
        }
        self.stream = stream
        return []
    }

    /// Ends the command that goes on.
    private func end(_ count: Int) throws -> [String] {
        guard let stream else { throw TestSupportError.missing("a command that goes on") }
        self.stream = nil
        let end = try stream.end(after: count)
        return lines(end, stream.output, stream.errors)
    }

    // MARK: - Requests

    /// What an answer is: its status, and what Drydock says of it.
    private static func line(of answer: RawResponse) -> String {
        let told = ["Cache-Status", "Drydock-Demo"].compactMap { answer.field($0) }
        return (["\(answer.status)"] + told).joined(separator: "  ")
    }

    /// The origin: a document for each path, with a validator and ten minutes of freshness.
    private static func reply(_ request: OriginRequest) -> OriginReply {
        if request.target.hasPrefix("/missing") { return .answer(404, to: request, "none") }
        if request.method == "POST" {
            return .answer(201, to: request, fields: [("Content-Type", "application/json")], #"{"token":"t-1","id":7}"#)
        }
        let fields = [("Cache-Control", "max-age=600"), ("Content-Type", "application/json"), ("Cache-Tag", "all")]
        return .resource(request, etag: "\"1\"", fields: fields, #"{"path":"\#(request.target)"}"#)
    }
}

/// A command that goes on until it is told to end, such as `drydock tail`.
final class CommandStream {
    private let child: ChildProcess
    private let folder: TemporaryFolder

    init(_ words: [String], in home: TemporaryFolder) throws {
        folder = try TemporaryFolder("command")
        child = try ChildProcess(
            try Daemon.binary(),
            words,
            environment: Shell.cleanEnvironment(adding: Self.environment(home)),
            folder: home.path,
            output: folder.file("output"),
            errors: folder.file("errors")
        )
    }

    /// The environment of all commands: a home of its own, as wide as a page.
    static func environment(_ home: TemporaryFolder) -> [String: String] {
        ["HOME": home.file("home"), "XDG_RUNTIME_DIR": home.file("run"), "COLUMNS": "100"]
    }

    /// Ends it as soon as it has printed so many lines.
    func end(after count: Int) throws -> ProcessEnd? {
        let isThere = blockUntil { printed.count { $0 == "\n" } >= count }
        child.signal(SIGINT)
        let end = child.waitForEnd()
        guard isThere else { throw TestSupportError.timedOut(printed) }
        return end
    }

    /// Whether anything was printed.
    var hasBegun: Bool { !printed.isEmpty }

    var output: String { folder.text("output") }
    var errors: String { folder.text("errors") }
    private var printed: String { output + errors }
}

/// A request whose call is parked, on a connection of its own.
private final class ParkedRequest {
    let name: String
    private let client: RawClient
    private let method: String

    init(_ daemon: Daemon, _ method: String, _ target: String, _ body: String?) throws {
        (name, self.method) = ("\(method) \(target)", method)
        client = try daemon.client()
        try client.request(method, target, host: "127.0.0.1:\(daemon.port)", body: body.map { Array($0.utf8) })
    }

    func answer() throws -> RawResponse { try client.readResponse(method: method) }
}
