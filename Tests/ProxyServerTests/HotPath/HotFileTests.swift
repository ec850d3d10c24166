// The hot path of stored files: answers, counts and log lines of the waiting path, and nothing that is out of date.

import CacheStore
import Configuration
import DownloadCore
import EventLoop
import Foundation
import HTTPWire
import TestSupport
import Testing

@testable import ProxyServer

/// How a request is sent: nobody but this proxy looks at either field, and they are of one length.
private enum Way: String, CaseIterable {
    case hot = "X-Cache-Contr: max-age=999999999"
    case waiting = "Cache-Control: max-age=999999999"
}

private struct Case {
    let text: String
    /// Which of its answers come from the hot path.
    let isHot: [Bool]

    /// - Parameter text: requests, `|` between them; what follows the target is on lines of
    ///   their own, `;` between them.
    init(_ text: String, _ isHot: Bool...) { (self.text, self.isHot) = (text, isHot) }

    var methods: [String] { text.split(separator: "|").map { String($0.prefix { $0 != " " }) } }

    /// What is sent at once.
    func bytes(_ way: Way) -> String {
        text.split(separator: "|").map { request in
            let lines = request.split(separator: ";").map { $0.drop { $0 == " " } }
            let version = lines[0].contains("HTTP/") ? "" : " HTTP/1.1"
            let rest = lines.dropFirst().map { "\($0)\r\n" }.joined()
            return "\(lines[0])\(version)\r\nHost: localhost\r\n\(way.rawValue)\r\n\(rest)\r\n"
        }.joined()
    }
}

private let modified = "Sun, 06 Nov 1994 08:49:37 GMT"
private let size = 300_000

private let cases = [
    Case("GET /s/x", true), Case("GET /s/x; Connection: close", true), Case("GET /s/x HTTP/1.0", true),
    Case("GET /s/x HTTP/1.0; Connection: keep-alive", true), Case("HEAD /s/x", false),
    Case("GET /s/x|GET /s/x|GET /s/x; Connection: close", true, true, true),
    // Small answers wait for one write, and must come before the file; and behind it.
    Case("GET /s/small|GET /s/small|GET /s/x|GET /s/small", true, true, true, true),
    Case("HEAD /s/x|GET /s/x|HEAD /s/x", false, true, false),
    Case("GET /s/x; User-Agent: a; Referer: b; Cookie: c=d; Via: 1.1 front", true),
    Case("GET /s/x; Via: 1.1 drydock", false), Case("GET /s/x; Authorization: Basic YTpi", true),
    Case("GET /s/x; If-None-Match: \"a\"", true), Case("GET /s/x; If-None-Match: \"b\"", true),
    Case("GET /s/x; If-None-Match: \"b\", W/\"a\"", true), Case("GET /s/x; If-None-Match: *", true),
    Case("GET /s/x; If-Modified-Since: \(modified)", true),
    Case("GET /s/x; If-Modified-Since: Sat, 05 Nov 1994 08:49:37 GMT", true),
    Case("GET /s/x; If-None-Match: \"a\"; Connection: If-None-Match", false),
    Case("GET /s/x; Range: bytes=0-0", true), Case("GET /s/x; Range: bytes=100-299998", true),
    Case("GET /s/x; Range: bytes=-5", true), Case("GET /s/x; Range: bytes=299999-", true),
    Case("GET /s/x; Range: bytes=300000-", false), Case("GET /s/x; Range: items=0-1", false),
    Case("GET /s/x; Range: bytes=5-9; If-Range: \"a\"", true),
    Case("GET /s/x; Range: bytes=5-9; If-Range: \"b\"", true),
    Case("GET /s/x; Range: bytes=5-9; If-None-Match: \"a\"", true),
    Case("GET /s/x; Range: bytes=0-9|GET /s/x; Range: bytes=10-19|GET /s/small", true, true, true),
    // More than one piece of the file.
    Case("GET /s/long", false), Case("GET /s/long; Range: bytes=9-1048584", true),
    Case("GET /s/long; Range: bytes=9-1048585", false), Case("GET /s/long; If-None-Match: \"a\"", true),
    Case("GET /s/missing", true), Case("GET /s/broken", false),
]

@Suite(.timeLimit(.minutes(5))) struct HotFileTests {
    private let folder: TemporaryFolder
    private var path: String { folder.file("cache") }

    init() throws { folder = try TemporaryFolder() }

    private static func origin() throws -> ScriptedOrigin {
        try ScriptedOrigin { request in
            let fields = [
                ("Cache-Control", "max-age=6000, public"), ("Age", "100"), ("ETag", "\"a\""),
                ("Last-Modified", modified), ("Content-Type", "text/plain"), ("Location", "/there"),
            ]
            switch request.target {
            case "/small": return reply(request, 2000, fields)
            case "/long": return reply(request, 3 << 20, fields)
            case "/missing": return .answer(404, to: request, fields: fields, String(repeating: "no", count: size))
            case "/broken": return .answer(503, to: request, fields: fields, String(repeating: "no", count: size))
            default: return reply(request, size, fields)
            }
        }
    }

    /// So many bytes, but to HEAD.
    private static func reply(
        _ request: OriginRequest,
        _ count: Int,
        _ fields: [(String, String)]
    ) -> OriginReply {
        if request.method != "HEAD" { return .pattern(count, fields: fields) }
        return OriginReply([OriginReply.head(200, fields: fields + [("Content-Length", "\(count)")])])
    }

    private static func services(_ origin: ScriptedOrigin, _ rest: String = "") -> String {
        "services: [{ name: s, match: { prefix: /s }, base_url: \"\(origin.url)\"\(rest) }]"
    }

    /// The hot path writes Age behind Via.
    private static func isHot(_ head: RawHead) -> Bool {
        let names = head.fields.map(\.name)
        guard let age = names.firstIndex(of: "Age"), let via = names.firstIndex(of: "Via") else { return false }
        return via < age
    }

    /// Fetches, and asks until the file is verified and stays open.
    @discardableResult
    private static func warm(
        _ harness: HandlerHarness,
        _ target: String = "/s/x",
        _ fields: [(String, String)] = []
    ) throws -> RawResponse {
        var answer = try harness.get(target, fields: fields)
        for _ in 0..<3 {
            try harness.settle()
            answer = try harness.get(target, fields: fields)
        }
        return answer
    }

    /// What a client gets for a text of requests, the lines of each head in order of their
    /// spelling, and what was counted.
    private static func result(_ harness: HandlerHarness, _ one: Case, _ way: Way) throws -> (
        lines: [String], isHot: [Bool], counted: [UInt64], kinds: [String]
    ) {
        let before = try harness.counters()
        let client = try harness.client()
        try client.send(one.bytes(way))
        var lines: [String] = []
        var isHot: [Bool] = []
        for method in one.methods {
            let answer = try client.readResponse(method: method)
            isHot.append(Self.isHot(answer.head))
            lines.append("\(answer.head.version) \(answer.head.status) \(answer.head.reason)")
            // What is made here has the date of now.
            let isStored = answer.field("ETag") != nil
            let fields = answer.head.fields.filter { isStored || $0.name != "Date" }
            lines += fields.map { masked("\($0.name): \($0.value)") }.sorted()
            lines.append("\(answer.framing) \(answer.end) \(answer.body.count) \(answer.body.hashValue)")
        }
        client.close()
        try harness.waitForConnections(0)
        let after = try harness.counters()
        let counted = Counter.allCases.map { after[$0] &- before[$0] }
        return (lines, isHot, counted, after.answers.kinds(since: before.answers))
    }

    /// Without what the clock changes, and the ids that are made.
    private static func masked(_ line: some StringProtocol) -> String {
        String(line).replacing(/"(id|time|duration_ms)":("[^"]*"|[0-9.]+)/, with: "").replacing(
            /ttl=5\d\d\d/,
            with: "ttl"
        )
        .replacing(/^Age: \d\d\d$/, with: "Age").replacing(/^X-Request-Id: [0-9a-f]{16}$/, with: "X-Request-Id")
    }

    @Test(arguments: ["", ", cors: { origins: [\"http://a.test\"] }"])
    func `both ways give the same answers, counts and log lines`(rest: String) async throws {
        let origin = try Self.origin()
        var log = LogConfiguration()
        log.access = .file(path: folder.file("log"))
        try await HandlerHarness.run(Self.services(origin, rest), disk: path, log: log) { harness throws in
            for target in ["/s/x", "/s/small", "/s/long", "/s/missing", "/s/broken"] {
                try Self.warm(harness, target)
            }
            let asked = origin.requests()
            _ = try harness.get("/s/marker", fields: [("Cache-Control", "only-if-cached")])
            var answers: [[String]] = []
            var counts: [[UInt64]] = []
            var kinds: [[String]] = []
            for one in cases {
                let hits = harness.core.store.statistics[.disk]?.hits ?? 0
                let hot = try Self.result(harness, one, .hot)
                #expect(hot.isHot == one.isHot, "\(one.text)")
                answers.append(hot.lines)
                counts.append(hot.counted)
                kinds.append(hot.kinds)
                if one.isHot.contains(false) { continue }
                let fromDisk = hot.lines.count { $0.hasSuffix("detail=disk") }
                #expect(harness.core.store.statistics[.disk]?.hits == hits + fromDisk, "\(one.text)")
            }
            _ = try harness.get("/s/marker", fields: [("Cache-Control", "only-if-cached")])
            for (number, one) in cases.enumerated() {
                let waiting = try Self.result(harness, one, .waiting)
                #expect(!waiting.isHot.contains(true), "\(one.text)")
                #expect(answers[number] == waiting.lines, "\(one.text)")
                #expect(counts[number] == waiting.counted, "\(one.text)")
                #expect(kinds[number] == waiting.kinds, "\(one.text)")
            }
            #expect(origin.requests() == asked)
        }
        let parts = folder.text("log").split(separator: "\n").map { Self.masked($0) }
            .split { $0.contains("/s/marker") }
        #expect(parts.count == 3)
        #expect(parts[1].count == cases.map(\.methods.count).reduce(0, +) && parts[1].elementsEqual(parts[2]))
    }

    // MARK: - What ends it

    @Test(arguments: [
        "invalidated", "purged", "purged by its tag", "all purged", "softly purged", "expired", "removed", "cut",
        "emptied",
    ])
    func `what is out of date answers no more`(how: String) async throws {
        let origin = try ScriptedOrigin { request in
            Self.reply(request, size, [("Cache-Control", "max-age=6000"), ("Cache-Tag", "one"), ("ETag", "\"a\"")])
        }
        let folder = path
        try await HandlerHarness.run(Self.services(origin), disk: folder) { harness throws in
            #expect(try Self.isHot(Self.warm(harness).head))
            #expect(origin.requests() == 1)
            let url = "\(origin.url)/x"
            // At least for one tick of the kernel's clock of files.
            usleep(20_000)
            switch how {
            case "invalidated": harness.core.housekeeping.invalidate(CacheKey(service: "s", url: url))
            case "purged": try harness.purge(PurgeRule(.url(url)))
            case "purged by its tag": try harness.purge(PurgeRule(.tag("one")))
            case "all purged": try harness.purge(PurgeRule(.all))
            case "softly purged": try harness.purge(PurgeRule(.prefix(origin.url), isSoft: true))
            case "expired": harness.clock.advance(seconds: 6000)
            case "removed": #expect(unlink(try Self.onlyFile(folder)) == 0)
            case "cut": #expect(truncate(try Self.onlyFile(folder), 200_000) == 0)
            default: #expect(truncate(try Self.onlyFile(folder), 0) == 0)
            }
            let answer = try harness.get("/s/x")
            #expect(!Self.isHot(answer.head) && answer.field("Cache-Status")?.contains("; hit") != true)
            let asked = origin.requests()
            #expect(asked > 1 && answer.body.count == size && answer.end == .complete)
            // What has come in its stead does; the origin's clock has not been advanced.
            if how == "expired" { return }
            #expect(try Self.isHot(Self.warm(harness).head))
            #expect(origin.requests() == asked)
        }
    }

    private static func onlyFile(_ folder: String) throws -> String {
        let all = FileManager.default.enumerator(atPath: "\(folder)/objects")?.compactMap { $0 as? String } ?? []
        let name = try #require(all.first { $0.utf8.count { $0 == UInt8(ascii: "/") } == 2 })
        return "\(folder)/objects/\(name)"
    }

    @Test func `what another purge concerns stays`() async throws {
        let origin = try Self.origin()
        try await HandlerHarness.run(Self.services(origin), disk: path) { harness throws in
            #expect(try Self.isHot(Self.warm(harness).head))
            try harness.purge(PurgeRule(.url("\(origin.url)/other")))
            try harness.purge(PurgeRule(.tag("other"), isSoft: true))
            harness.core.isOffline = true
            #expect(try Self.isHot(harness.get("/s/x").head))
            #expect(origin.requests() == 1)
        }
    }

    @Test func `another configuration makes the head anew`() async throws {
        let origin = try Self.origin()
        try await HandlerHarness.run(Self.services(origin), disk: path) { harness throws in
            #expect(try Self.isHot(Self.warm(harness).head))
            try harness.reload("name: other\n" + Self.services(origin, ", cors: { origins: [\"http://a.test\"] }"))
            for isHot in [false, true] {
                let answer = try harness.get("/s/x")
                #expect(Self.isHot(answer.head) == isHot)
                #expect(answer.field("Via") == "1.1 other" && answer.field("Vary") == "Origin")
            }
            // Under this one nothing of it is fresh.
            try harness.reload(Self.services(origin, ", cache: { ttl: 50s, override_origin: true }"))
            for _ in 0..<3 { #expect(try harness.get("/s/x").field("Cache-Status")?.contains("fwd=stale") == true) }
        }
    }

    // MARK: - Variants

    @Test func `a variant answers where it is alone and nobody could doubt that it is selected`() async throws {
        let origin = try ScriptedOrigin { request in
            let coding = request.field("Accept-Encoding") ?? "none"
            let fields = [("Cache-Control", "max-age=6000"), ("Vary", "Accept-Encoding"), ("X-For", coding)]
            return .pattern(size, fields: fields)
        }
        try await HandlerHarness.run(Self.services(origin), disk: path) { harness throws in
            let gzip = [("Accept-Encoding", "gzip, br")]
            #expect(try Self.isHot(Self.warm(harness, "/s/x", gzip).head))
            // The same in another spelling: found by its meaning, on the waiting path.
            let other = try harness.get("/s/x", fields: [("Accept-Encoding", "br, gzip")])
            #expect(other.field("X-For") == "gzip, br" && !Self.isHot(other.head))
            #expect(origin.requests() == 1)
            #expect(try harness.get("/s/x").field("X-For") == "none")
            try harness.settle()
            for _ in 0..<4 {
                let (coded, plain) = (try harness.get("/s/x", fields: gzip), try harness.get("/s/x"))
                #expect(coded.field("X-For") == "gzip, br" && plain.field("X-For") == "none")
                #expect(!Self.isHot(coded.head) && !Self.isHot(plain.head))
            }
            #expect(origin.requests() == 2)
        }
    }

    // MARK: - Clients

    /// Returns when the loop has turned fifty times without ending an answer: the client's socket
    /// takes no more of this one.
    private static func awaitFullSocket(_ harness: HandlerHarness) throws {
        var (hits, turns) = (try harness.counters().answers[.hit], 0)
        let isFull = try blockUntil {
            for _ in 0..<5 {
                let now = try harness.counters().answers[.hit]
                (hits, turns) = (now, now == hits ? turns + 1 : 0)
            }
            return turns >= 50
        }
        try #require(isFull)
    }

    @Test func `a slow client gets every byte, and one that leaves is counted`() async throws {
        let origin = try Self.origin()
        var log = LogConfiguration()
        log.access = .file(path: folder.file("log"))
        try await HandlerHarness.run(Self.services(origin), disk: path, log: log) { harness throws in
            try Self.warm(harness, "/s/long")
            let range = [("Range", "bytes=1000-1049575")]
            #expect(try Self.isHot(harness.get("/s/long", fields: range).head))
            for isLeaving in [false, true] {
                let before = try harness.counters()
                let client = try RawClient(port: harness.port, receiveBuffer: 4096)
                // More than the sockets' buffers take.
                for _ in 0..<12 { try client.request("GET", "/s/long", fields: range) }
                #expect(try Self.isHot(client.readHead()))
                if isLeaving {
                    // Amid an answer: between two of them, nothing would be cut short.
                    try Self.awaitFullSocket(harness)
                    client.reset()
                } else {
                    for number in 0..<12 {
                        if number > 0 { #expect(try Self.isHot(client.readHead())) }
                        var received = 0
                        let end = try client.readBody { piece in
                            #expect(Pattern.matches(piece, at: 1000 + received))
                            received += piece.count
                        }
                        #expect(end == .complete && received == 1_048_576)
                    }
                    client.close()
                }
                try harness.waitForConnections(0)
                let after = try harness.counters()
                #expect(after[.errorAborted] == before[.errorAborted] + (isLeaving ? 1 : 0))
            }
            #expect(origin.requests() == 1)
        }
        let lines = folder.text("log").split(separator: "\n")
        #expect(lines.last?.contains("\"aborted\":true") == true && lines.last?.contains("detail=disk") == true)
    }
}
