// Access log lines: their three formats, what is escaped, and that every answer leaves exactly one.

import Configuration
import EventLoop
import Foundation
import Glibc
import HTTPWire
import Plans
import ServiceCore
import TestSupport
import Testing

@testable import ProxyServer

@Suite struct AccessLogTests {
    private static var entry: AccessEntry {
        var entry = AccessEntry(client: "192.0.2.1", method: "GET", target: .string("/a?q=1"), status: 200)
        entry.bytes = 512
        entry.duration = 12_345_678
        entry.route = "github"
        entry.endpoint = "user"
        entry.cacheStatus = .string("drydock; hit; ttl=5")
        entry.upstreamStatus = 304
        entry.upstreamTime = 2_000_000
        entry.userAgent = .string("curl/8 \"x\"")
        entry.id = .digits(0x0123_4567_89AB_CDEF)
        entry.host = .string("api.test:8080")
        return entry
    }

    private static func line(_ format: AccessLogSettings.Format, _ entry: AccessEntry) -> String {
        var writer = AccessLineWriter(format)
        var bytes: [UInt8] = []
        // 2026-11-21 01:44:05.123 UTC
        writer.write(entry, time: 1_795_225_445_123_000_000, to: &bytes)
        return String(decoding: bytes, as: UTF8.self)
    }

    @Test func `a json line has every part`() throws {
        let line = Self.line(.json, Self.entry)
        #expect(
            line == """
                {"time":"2026-11-21T01:44:05.123Z","id":"0123456789abcdef","client":"192.0.2.1","method":"GET",\
                "host":"api.test:8080","target":"/a?q=1","status":200,\
                "bytes":512,"duration_ms":12.345,"service":"github","endpoint":"user",\
                "cache_status":"drydock; hit; ttl=5",\
                "upstream_status":304,"upstream_ms":2.000,"aborted":false,"user_agent":"curl/8 \\"x\\""}\n
                """
        )
    }

    @Test func `a combined line is what the usual tools read`() {
        #expect(
            Self.line(.combined, Self.entry)
                == #"192.0.2.1 - - [21/Nov/2026:01:44:05 +0000] "GET /a?q=1 HTTP/1.1" 200 512 "-" "curl/8 \x22x\x22""#
                + "\n"
        )
    }

    @Test(
        arguments: [
            ("", ""), ("a", "a"), ("\"", "\\x22"), ("a\"b", "a\\x22b"), ("\"ab", "\\x22ab"), ("ab\\", "ab\\x5C"),
            ("\n\u{7F}", "\\x0A\\x7F"), ("é~ ", "\\xC3\\xA9~ "),
        ]
    )
    func `a combined line escapes what would end its fields, wherever it stands`(agent: String, wanted: String) {
        var entry = Self.entry
        entry.userAgent = .string(agent)
        #expect(Self.line(.combined, entry).hasSuffix(" \"-\" \"\(wanted)\"\n"))
    }

    @Test func `a text line says when it was aborted`() {
        var entry = Self.entry
        entry.isAborted = true
        #expect(
            Self.line(.text, entry)
                == "2026-11-21T01:44:05.123Z 192.0.2.1 GET /a?q=1 200 512B 12.345ms github endpoint=user "
                + "[drydock; hit; ttl=5] origin=304 aborted\n"
        )
    }

    @Test(
        arguments: [
            ([0x2F, 0x22, 0x5C], #""target":"/\"\\""#), ([0x2F, 0x0A, 0x01], #""target":"/\u000a\u0001""#),
            ([0x2F, 0xC3, 0xA9], #""target":"/é""#), ([0x2F, 0xFF, 0xC3], #""target":"/\u00ff\u00c3""#),
        ] as [([UInt8], String)]
    )
    func `a json line stays valid whatever a client sends`(target: [UInt8], wanted: String) throws {
        try target.withUnsafeBytes { bytes in
            var entry = Self.entry
            entry.target = .bytes(bytes)
            let line = Self.line(.json, entry)
            #expect(line.contains(wanted))
            let document = try JSONSerialization.jsonObject(with: Data(line.utf8))
            #expect(document is [String: Any])
        }
    }

    @Test func `what is owned outlives its buffer`() {
        var entry = Self.entry
        var bytes: [UInt8] = Array("/gone".utf8)
        bytes.withUnsafeBytes { raw in
            entry.target = .bytes(raw)
            entry.own()
        }
        bytes = []
        #expect(Self.line(.text, entry).contains(" /gone "))
    }

    // MARK: - Over a server

    private static func lines(_ text: String) throws -> [[String: Any]] {
        try text.split(separator: "\n").map { line in
            try #require(JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any])
        }
    }

    @Test func `every answer leaves one line, hot, waiting, refused, cut or left`() async throws {
        let folder = try TemporaryFolder()
        var log = LogConfiguration()
        log.access = .file(path: folder.file("access.log"))
        try await ServerHarness.run(loops: 2, log: log) { harness in
            let client = try harness.client()
            _ = try client.exchange("/hot/10", fields: [("Authorization", "Basic secret")])
            _ = try client.exchange("/a?token=x", fields: [("Authorization", "Basic secret")])
            _ = try client.exchange("POST", "/echo", body: Array("abc".utf8))
            _ = try client.exchange("/problem")
            _ = try harness.client().exchange("/cut")
            let refused = try harness.client()
            try refused.send("bad\r\n\r\n")
            _ = try refused.readResponse()
            let leaving = try harness.client()
            try leaving.request("GET", "/wait")
            #expect(harness.observations.seen.wait(120) { $0.waiting == 1 })
            leaving.reset()
            #expect(harness.observations.seen.wait(120) { $0.cancelled == 1 })
        }
        let text = folder.text("access.log")
        #expect(!text.contains("secret"))
        let lines = try Self.lines(text)
        #expect(lines.count == 7)
        func line(_ target: String) throws -> [String: Any] {
            try #require(lines.first { $0["target"] as? String == target })
        }
        let hot = try line("/hot/10")
        #expect(hot["cache_status"] as? String == "drydock; hit")
        #expect(hot["service"] as? String == "hot")
        #expect(hot["bytes"] as? Int == 10)
        #expect(hot["aborted"] as? Bool == false)
        let waiting = try line("/a?token=x")
        #expect(waiting["cache_status"] as? String == "drydock; fwd=uri-miss")
        #expect(waiting["upstream_status"] as? Int == 200)
        #expect(waiting["upstream_ms"] as? Double == 1.5)
        #expect(try line("/echo")["bytes"] as? Int == 3)
        #expect(try line("/problem")["status"] as? Int == 502)
        #expect(try line("/cut")["aborted"] as? Bool == true)
        #expect(try line("/wait")["status"] as? Int == 499)
        #expect(try line("/wait")["aborted"] as? Bool == true)
        let bad = try line("-")
        #expect(bad["status"] as? Int == 400)
        #expect(bad["method"] as? String == "-")
        #expect(
            bad["error"] as? String
                == "method-malformed at byte 3: send a method made of token characters, then one space"
        )
        #expect(try line("/problem")["error"] as? String == "start\nit")
        #expect(lines.allSatisfy { $0["host"] as? String == "localhost" || $0["method"] as? String == "-" })
        // Each has an id, and each another one.
        let ids = lines.compactMap { $0["id"] as? String }
        #expect(Set(ids).count == 7 && ids.allSatisfy { $0.count == 16 && $0.allSatisfy(\.isHexDigit) }, "\(ids)")
    }

    @Test func `lines of several loops come in the order in which answers are complete`() async throws {
        let folder = try TemporaryFolder()
        var log = LogConfiguration()
        log.access = .file(path: folder.file("access.log"))
        try await ServerHarness.run(loops: 2, log: log) { harness in
            // Each connection goes to the loop with the fewest: they take turns.
            let clients = try (0..<4).map { _ in try harness.client() }
            for round in 0..<6 {
                for (index, client) in clients.enumerated() {
                    let number = round * 4 + index
                    _ = try client.exchange(index < 2 ? "/hot/\(number)" : "/t\(number)")
                    // An answer is counted where its line is written.
                    #expect(blockUntil { harness.counters.answers.count == UInt64(number) + 1 })
                }
            }
        }
        let targets = try Self.lines(folder.text("access.log")).compactMap { $0["target"] as? String }
        #expect(targets == (0..<24).map { $0 % 4 < 2 ? "/hot/\($0)" : "/t\($0)" })
    }

    @Test func `a pipe gets whole lines, as many as it takes at once`() {
        let most = Int(PIPE_BUF)
        for (lengths, wanted) in [
            ([10], 10), ([most], most), ([most - 100, 100], most), ([most - 100, 101], most - 100),
            ([1, most, 1], 1), ([most + 1], most), ([3 * most], most), ([100, 100, most - 200, 1], most), ([], 0),
        ] {
            let lines = lengths.flatMap { [UInt8](repeating: 0x78, count: $0 - 1) + [0x0A] }
            #expect(lines.withUnsafeBytes { AccessLogSink.pieceLength($0) } == wanted, "\(lengths)")
        }
    }

    @Test func `a reader that is slow at the end gets every line`() async throws {
        let folder = try TemporaryFolder()
        let pool = try IOPool(threads: 1)
        defer { pool.stop() }
        #expect(mkfifo(folder.file("pipe"), 0o600) == 0)
        let reader = open(folder.file("pipe"), O_RDONLY | O_NONBLOCK)
        defer { close(reader) }
        var log = LogConfiguration()
        log.access = .file(path: folder.file("pipe"))
        // The reader has time enough, however busy the machine is.
        let sink = try AccessLogSink(AccessLogSettings(log), pool: pool, lastWaits: 1000)
        let line = [UInt8](repeating: 0x61, count: 99) + [10]
        // More than a pipe holds.
        for _ in 0..<5000 { sink.append(line) }
        let read = Monitor(0)
        Threads.start("reader") {
            // Longer than one of the writer's waits.
            usleep(600_000)
            var buffer = [UInt8](repeating: 0, count: 65536)
            while read.read({ $0 }) < 500_000 {
                let count = Glibc.read(reader, &buffer, buffer.count)
                if count > 0 { read.update { $0 += count } } else { usleep(1000) }
            }
        }
        await sink.drain()
        #expect(sink.droppedBuffers == 0)
        #expect(await eventually { read.read { $0 } == 500_000 })
        // What comes still later does not wait for anybody.
        sink.append(line)
        await sink.drain()
        var last = [UInt8](repeating: 0, count: 200)
        #expect(Glibc.read(reader, &last, last.count) == 100)
    }

    // MARK: - Ids

    @Test(
        arguments: [
            ("4bf92f3577b34da6", true), ("Root=1-67891233-abcdef012345678912345678", true), ("a", true),
            ("a_b@c:d/e+f.g", true),
            ("", false), ("two words", false), ("quote\"", false), ("comma,", false), ("é", false),
            (String(repeating: "x", count: 128), true),
            (String(repeating: "x", count: 129), false),
        ] as [(String, Bool)]
    )
    func `an id is taken over where it is short and needs no escape`(text: String, isTaken: Bool) {
        let isSafe = Array(text.utf8).withUnsafeBytes { RequestID.isSafe($0) }
        #expect(isSafe == isTaken)
        let head = RequestHead(method: .get, target: "/", fields: Fields([("x-request-id", text)]))
        #expect(head.takenID == (isTaken ? text : nil))
    }

    @Test func `an id that is made is sixteen digits`() {
        for number in [0, 1, 9, 10, 0xFFFF_FFFF, 0x1_0000_0000, .max, 0xA5C3_0F96_1234_FEDC] as [UInt64] {
            let digits = String(number, radix: 16)
            #expect(RequestID.made(number).text == String(repeating: "0", count: 16 - digits.count) + digits)
        }
        var ids = RequestIDs()
        #expect(Set((0..<1000).map { _ in ids.next() }).count == 1000)
    }

    @Test(arguments: [true, false])
    func `the origin gets the id that the line has`(passes: Bool) async throws {
        let origin = try ScriptedOrigin { request in
            let fields = [("Cache-Control", request.target.contains("keep") ? "max-age=60" : "no-store")]
            return .answer(request.target.contains("bad") ? 500 : 200, to: request, fields: fields, "x")
        }
        let text = """
            forward: { allow: ["127.0.0.1"] }
            services:
              - { name: api, match: { prefix: /api }, base_url: "\(origin.url)" }
              - { name: direct, match: { prefix: /direct }, base_url: "\(origin.url)", cache: { mode: none } }
              - { name: outer, match: { prefix: /outer }, base_url: service:api }
            """
        let folder = try TemporaryFolder()
        var log = LogConfiguration()
        log.access = .file(path: folder.file("access.log"))
        log.requestID = passes
        let asked = Monitor([String]())
        try await HandlerHarness.run(text, log: log) { harness throws in
            let client = try harness.client()
            for (method, target) in [
                ("GET", "/api/keep"), ("GET", "/api/a"), ("POST", "/api/b"), ("GET", "/direct/c"), ("GET", "/direct/d"),
                ("GET", "/outer/e"), ("HEAD", "/api/f"), ("GET", "/api/bad"), ("GET", "\(origin.url)/forward"),
            ] {
                let answer = try client.exchange(method, target, body: method == "POST" ? [1] : nil)
                #expect(answer.status < 501, "\(target) \(answer.text)")
                try harness.settle()
                asked.update { $0.append(target) }
            }
            _ = try harness.direct()
        }
        let lines = try Self.lines(folder.text("access.log"))
        let wanted = asked.read { $0 }
        #expect(lines.map { $0["target"] as? String } == wanted)
        let sent = origin.log.map { $0.field("X-Request-Id") }
        #expect(sent.count == wanted.count)
        for (line, id) in zip(lines, sent) { #expect(id == (passes ? line["id"] as? String : nil), "\(line)") }
        #expect(Set(lines.compactMap { $0["id"] as? String }).count == wanted.count)
    }

    @Test
    func `a client's own id is taken and passed on, one that is not safe is replaced, and no id is made for nobody`()
        async throws
    {
        let origin = try ScriptedOrigin { .answer(to: $0, fields: [("Cache-Control", "max-age=60")], "x") }
        let text = """
            services:
              - { name: api, match: { prefix: /api }, base_url: "\(origin.url)" }
              - { name: direct, match: { prefix: /direct }, base_url: "\(origin.url)", cache: { mode: none } }
            """
        let folder = try TemporaryFolder()
        var log = LogConfiguration()
        log.access = .file(path: folder.file("access.log"))
        try await HandlerHarness.run(text, log: log) { harness throws in
            for target in ["/api/a", "/direct/b"] {
                #expect(try harness.get(target, fields: [("X-Request-Id", "mine-\(target)")]).status == 200)
                try harness.settle()
            }
            #expect(origin.log.map { $0.field("X-Request-Id") } == ["mine-/api/a", "mine-/direct/b"])
            // A hit, on the hot path the second time, and what cannot be taken.
            for id in ["hit-1", "hit-2", "two words"] {
                #expect(try harness.get("/api/a", fields: [("X-Request-Id", id)]).status == 200)
            }
            #expect(try harness.get("/direct/c", fields: [("X-Request-Id", "two words")]).status == 200)
            // What Drydock says itself has the id, so that its line can be found.
            let problem = try harness.get("/nowhere", fields: [("X-Request-Id", "lost")])
            #expect(problem.status == 404 && problem.field("X-Request-Id") == "lost")
        }
        let lines = try Self.lines(folder.text("access.log"))
        let ids = lines.map { $0["id"] as? String ?? "" }
        #expect(ids.count == 7)
        #expect(Array(ids.prefix(4)) == ["mine-/api/a", "mine-/direct/b", "hit-1", "hit-2"])
        #expect(ids[4].count == 16 && ids[5].count == 16 && ids[4] != ids[5] && ids[6] == "lost")
        #expect(origin.log.last?.all("X-Request-Id") == [ids[5]])
        #expect((lines[6]["error"] as? String)?.hasPrefix("no service matches /nowhere") == true)
        for format in [LogConfiguration.Format.text, .combined] {
            log.format = format
            try await HandlerHarness.run(text, log: log) { harness throws in
                #expect(try harness.get("/direct/c").status == 200)
                #expect(try harness.get("/nowhere").field("X-Request-Id") == nil)
            }
            #expect(origin.log.last?.field("X-Request-Id") == nil)
        }
    }

    // MARK: - Where the user came from

    @Test(
        arguments: [
            ("http://a/b", "http://a/b"), ("http://a/?q=1&page=2", "http://a/?q=1&page=2"),
            ("http://a/?token=abc", "http://a/?token=***"),
            ("http://a/?q=1&api_key=k&b;sig=x&c", "http://a/?q=1&api_key=***&b;sig=***&c"),
            ("http://a/?acc%65ssToken=abc", "http://a/?acc%65ssToken=***"),
            ("http://a/?token=&token", "http://a/?token=&token"),
            ("http://a/?plain=s3cret&x", "http://a/?x"), ("http://a/?plain=%733cret", "http://a/"),
        ] as [(String, String)]
    )
    func `a referer has no secrets in its query`(value: String, wanted: String) {
        var secrets = SecretQuery()
        secrets.insert("plain", ["s3cret"])
        #expect(LoggedReferer.text(value, secrets) == wanted)
        Array(value.utf8).withUnsafeBytes { bytes in
            let text = LoggedReferer.text(bytes, secrets)
            #expect(text.withBytes { String(decoding: $0, as: UTF8.self) } == wanted)
        }
    }

    @Test func `a line has the referer without the secrets of any service, and the program, on the hot path too`()
        async throws
    {
        let origin = try ScriptedOrigin { .answer(to: $0, fields: [("Cache-Control", "max-age=60")], "x") }
        let text = """
            services:
              - { name: api, match: { prefix: /api }, base_url: "\(origin.url)" }
              - { name: other, match: { prefix: /other }, base_url: "\(origin.url)", query: { appid: { value: s3cret, secret: true } } }
            """
        let folder = try TemporaryFolder()
        var log = LogConfiguration()
        log.access = .file(path: folder.file("access.log"))
        try await HandlerHarness.run(text, log: log) { harness throws in
            for _ in 0..<3 {
                let fields = [("User-Agent", "tester/1"), ("Referer", "http://r/?appid=s3cret&token=t0ken&b=2")]
                #expect(try harness.get("/api/a", fields: fields).status == 200)
                try harness.settle()
            }
        }
        let lines = try Self.lines(folder.text("access.log"))
        #expect(lines.map { $0["referer"] as? String } == Array(repeating: "http://r/?token=***&b=2", count: 3))
        #expect(lines.allSatisfy { $0["user_agent"] as? String == "tester/1" && $0["host"] as? String == "localhost" })
    }

    @Test func `a combined log names the program, on the hot path too`() async throws {
        let folder = try TemporaryFolder()
        var log = LogConfiguration()
        log.access = .file(path: folder.file("access.log"))
        log.format = .combined
        try await ServerHarness.run(log: log) { harness in
            let client = try harness.client()
            for target in ["/hot/10", "/a"] {
                _ = try client.exchange(target, fields: [("User-Agent", "tester"), ("Referer", "http://r/")])
            }
        }
        let lines = folder.text("access.log").split(separator: "\n")
        #expect(lines.count == 2)
        #expect(lines.allSatisfy { $0.hasSuffix(#""http://r/" "tester""#) && $0.hasPrefix("127.0.0.1 - - [") })
    }

    @Test func `a file that was moved away is opened anew`() async throws {
        let folder = try TemporaryFolder()
        let pool = try IOPool(threads: 1)
        defer { pool.stop() }
        var log = LogConfiguration()
        log.access = .file(path: folder.file("access.log"))
        let sink = try AccessLogSink(AccessLogSettings(log), pool: pool)
        sink.append(Array("one\n".utf8))
        await sink.drain()
        try FileManager.default.moveItem(atPath: folder.file("access.log"), toPath: folder.file("old.log"))
        sink.append(Array("two\n".utf8))
        await sink.drain()
        try sink.update(AccessLogSettings(log))
        sink.append(Array("three\n".utf8))
        await sink.drain()
        #expect(folder.text("old.log") == "one\ntwo\n")
        #expect(folder.text("access.log") == "three\n")
        log.access = .file(path: "/nowhere/access.log")
        #expect(throws: SystemError.self) { try sink.update(AccessLogSettings(log)) }
        sink.append(Array("four\n".utf8))
        await sink.drain()
        #expect(folder.text("access.log") == "three\nfour\n")
    }

    @Test func `what nobody takes is dropped and counted`() async throws {
        let folder = try TemporaryFolder()
        let pool = try IOPool(threads: 1)
        defer { pool.stop() }
        #expect(mkfifo(folder.file("pipe"), 0o600) == 0)
        // Holds the pipe open without reading.
        let reader = open(folder.file("pipe"), O_RDONLY | O_NONBLOCK)
        defer { close(reader) }
        var log = LogConfiguration()
        log.access = .file(path: folder.file("pipe"))
        let sink = try AccessLogSink(AccessLogSettings(log), pool: pool, lastWaits: 1)
        for _ in 0..<20 { sink.append([UInt8](repeating: 10, count: 1 << 20)) }
        #expect(sink.droppedBuffers >= 1)
        await sink.drain()
        #expect(sink.droppedBuffers == 20)
    }

    @Test func `a reload changes where lines go and how they look`() async throws {
        let folder = try TemporaryFolder()
        var log = LogConfiguration()
        log.access = .file(path: folder.file("first.log"))
        let harness = try await ServerHarness(log: log)
        func exchange() async throws {
            let result = await withTaskExecutorPreference(BlockingExecutor.shared) {
                Result { try harness.exchange("/a") }
            }
            #expect(try result.get().status == 200)
        }
        try await exchange()
        let sink = try #require(harness.sink)
        func isWritten(_ name: String) async -> Bool {
            await eventually {
                sink.flush()
                return Self.size(folder.file(name)) > 0
            }
        }
        #expect(await isWritten("first.log"))
        log.access = .file(path: folder.file("second.log"))
        log.format = .text
        try sink.update(AccessLogSettings(log))
        try await exchange()
        log.access = .off
        #expect(await isWritten("second.log"))
        try sink.update(AccessLogSettings(log))
        try await exchange()
        await harness.stop()
        #expect(folder.text("first.log").split(separator: "\n").count == 1)
        #expect(folder.text("second.log").hasSuffix("[drydock; fwd=uri-miss] origin=200\n"))
        #expect(folder.text("second.log").split(separator: "\n").count == 1)
    }

    private static func size(_ path: String) -> Int {
        let attributes = try? FileManager.default.attributesOfItem(atPath: path)
        return (attributes?[.size] as? Int) ?? 0
    }

    @Test func `a log that cannot be opened says which`() throws {
        let pool = try IOPool(threads: 1)
        defer { pool.stop() }
        var log = LogConfiguration()
        log.access = .file(path: "/nowhere/access.log")
        let error = #expect(throws: SystemError.self) { _ = try AccessLogSink(AccessLogSettings(log), pool: pool) }
        #expect(error?.description == "open the access log /nowhere/access.log: No such file or directory")
    }
}
