// What the daemon's own log says of clients and of what becomes of their requests: why, how often, and no secrets.

import Configuration
import EventLoop
import HTTPWire
import Logging
import Policies
import TestSupport
import Testing

@testable import DrydockDaemon
@testable import ProxyServer

/// What was logged, a text per line: `level message name=value`, names in order.
private final class KeptLog: Sendable {
    let kept = Monitor([String]())

    var lines: [String] { kept.read { $0 } }

    func logger(_ level: Logger.Level) -> Logger { Logger(label: "test") { _ in Handler(log: self, logLevel: level) } }

    func serverLog(_ level: Logger.Level = .info) -> ServerLog { ServerLog(logger(level)) }

    private struct Handler: LogHandler {
        let log: KeptLog
        var logLevel: Logger.Level
        var metadata: Logger.Metadata = [:]

        subscript(metadataKey key: String) -> Logger.Metadata.Value? {
            get { metadata[key] }
            set { metadata[key] = newValue }
        }

        func log(event: LogEvent) {
            let fields = (event.metadata ?? [:]).sorted { $0.key < $1.key }.map { " \($0.key)=\($0.value)" }.joined()
            log.kept.update { $0.append("\(event.level) \(event.message)\(fields)") }
        }
    }
}

@Suite(.timeLimit(.minutes(5))) struct ServerLogTests {
    // MARK: - What clients do wrong

    @Test(
        arguments: [
            (
                [0x16, 0x03, 0x01, 0x02, 0x00, 0x01, 0x00], 400,
                "a client speaks TLS to this port, which takes plain HTTP: use http:// in its URL, not https://"
            ), ([0x16], 400, "a client speaks TLS to this port"),
            (
                Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8), 505,
                "a client speaks HTTP/2 to this port, which takes HTTP/1.1: switch HTTP/2 off in the client, such as by curl --http1.1"
            ),
            (Array("GET /a b HTTP/1.1\r\n".utf8), 400, "refused what a client sent, which is not acceptable HTTP/1.1"),
            ([0x16, 0x04, 0x01], 400, "refused what a client sent"),
            (Array("GET / HTTP/2.0\r\nHost: h\r\n\r\n".utf8), 505, "refused what a client sent"),
        ] as [([UInt8], Int, String)]
    )
    func `what is no request is told with its reason`(bytes: [UInt8], status: Int, text: String) async throws {
        let log = KeptLog()
        try await ServerHarness.run(daemonLog: log.serverLog()) { harness in
            let client = try harness.client()
            try client.send(bytes)
            let answer = try client.readResponse()
            #expect(answer.status == status)
            let line = try #require(log.lines.first)
            #expect(log.lines.count == 1 && line.hasPrefix("notice \(text)"), "\(log.lines)")
            #expect(
                line.contains(" client=127.0.0.1") && line.contains(" listener=127.0.0.1:\(harness.port)"),
                "\(line)"
            )
            if text.hasPrefix("refused") {
                #expect(line.contains(" error="), "\(line)")
            } else {
                #expect(!line.contains(" error=") && answer.text.contains(text), "\(answer.text)")
            }
        }
    }

    @Test func `a body that breaks the rules is told, too`() async throws {
        let log = KeptLog()
        try await ServerHarness.run(daemonLog: log.serverLog()) { harness in
            for target in ["/count", "/a"] {
                let client = try harness.client()
                let head = "POST \(target) HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
                try client.send(head + "xyz\r\n")
                _ = try client.readResponse()
            }
        }
        #expect(log.lines.count == 2, "\(log.lines)")
        #expect(log.lines.allSatisfy { $0.contains("error=chunk-size-malformed at byte 0") }, "\(log.lines)")
    }

    @Test func `ten lines of a kind in two minutes, and how many were left out`() {
        let log = KeptLog()
        let server = log.serverLog()
        let minute: UInt64 = 60_000_000_000
        for number in 0..<100 { server.tell(.malformed, [("n", "\(number)")], now: minute) }
        #expect(log.lines == (0..<10).map { "notice \(ClientTrouble.malformed.text) n=\($0)" })
        // Another kind has lines of its own.
        server.tell(.tls, [], now: minute)
        #expect(log.lines.last == "notice \(ClientTrouble.tls.text)")
        server.tellLeftOut(now: 3 * minute - 1)
        #expect(log.lines.count == 11)
        server.tellLeftOut(now: 3 * minute)
        let told = "notice \(ClientTrouble.malformed.text) left_out=90 more such lines in two minutes"
        #expect(log.lines.count == 12 && log.lines.last == told)
        server.tellLeftOut(now: 9 * minute)
        #expect(log.lines.count == 12)
        for number in 0..<12 { server.tell(.malformed, [("n", "\(number)")], now: 9 * minute) }
        #expect(log.lines.count == 22)
        // The next one says it, too, where nobody asks in between.
        server.tell(.malformed, [("n", "later")], now: 12 * minute)
        #expect(log.lines.suffix(2).first?.hasSuffix("left_out=2 more such lines in two minutes") == true)
        #expect(log.lines.last?.hasSuffix(" n=later") == true)
    }

    @Test func `accepting that fails again and again is told as seldom`() {
        let log = KeptLog()
        let server = log.serverLog()
        for _ in 0..<100 { server.tell(.accept, [("error", "no")], now: 1) }
        #expect(log.lines.count == 10 && log.lines[0] == "warning \(ClientTrouble.accept.text) error=no")
        server.tellLeftOut(now: 121_000_000_000)
        let told = "warning \(ClientTrouble.accept.text) left_out=90 more such lines in two minutes"
        #expect(log.lines.count == 11 && log.lines.last == told)
    }

    @Test func `who may not connect is told`() async throws {
        let log = KeptLog()
        var settings = ServerSettings()
        settings.clients = []
        try await ServerHarness.run(settings: settings, daemonLog: log.serverLog()) { harness throws in
            #expect(try harness.client().readResponse().status == 403)
        }
        #expect(
            log.lines == [
                "notice refused a client's connection client=127.0.0.1 error=127.0.0.1 may not use this proxy; add it to clients"
            ]
        )
    }

    @Test func `a refused or failed CONNECT and a failed upgrade are told with their targets`() async throws {
        let log = KeptLog()
        let origin = try ScriptedOrigin { .answer(403, to: $0, "no") }
        let text = """
            forward: { connect: { allow: ["*:443", "*:\(origin.port)", "127.0.0.1:1"] } }
            services:
              - { name: ws, match: { prefix: /ws }, base_url: "\(origin.url)" }
              - { name: tls, match: { prefix: /tls }, base_url: "https://127.0.0.1:1" }
              - { name: gone, match: { prefix: /gone }, base_url: "http://127.0.0.1:1" }
            """
        try await HandlerHarness.run(text, daemonLog: log.serverLog()) { harness throws in
            for (target, status) in [
                ("mail.test:25", 403), ("127.0.0.1:\(origin.port)", 502), ("127.0.0.1:1", 502),
            ] {
                let client = try harness.client()
                try client.send("CONNECT \(target) HTTP/1.1\r\nHost: \(target)\r\n\r\n")
                #expect(try client.readResponse(method: "CONNECT").status == status)
            }
            let upgrade = [("Connection", "Upgrade"), ("Upgrade", "websocket")]
            #expect(try harness.get("/ws/chat", fields: upgrade).status == 403)
            #expect(try harness.get("/tls/chat", fields: upgrade).status == 502)
            #expect(try harness.get("/gone/chat", fields: upgrade).status == 502)
        }
        let lines = log.lines
        #expect(lines.count == 6, "\(lines)")
        for line in lines.prefix(2) { #expect(line.hasPrefix("notice refused a CONNECT client=127.0.0.1 error=")) }
        #expect(lines[0].hasSuffix(" service=connect target=mail.test:25"), "\(lines[0])")
        #expect(lines[2].hasPrefix("notice a CONNECT failed client=127.0.0.1 error="), "\(lines[2])")
        #expect(lines[2].hasSuffix(" service=connect target=127.0.0.1:1"), "\(lines[2])")
        #expect(
            lines[3]
                == "notice an upgrade failed client=127.0.0.1 error=the origin answered 403 to it, not 101 service=ws target=/ws/chat"
        )
        #expect(lines[4].contains("cannot connect to 127.0.0.1:1") && lines[4].contains("service=tls"), "\(lines[4])")
        #expect(lines[5].contains("cannot connect to 127.0.0.1:1") && lines[5].contains("service=gone"), "\(lines[5])")
    }

    // MARK: - What becomes of requests

    private static func text(_ origin: ScriptedOrigin, _ folder: TemporaryFolder) throws -> String {
        try folder.write("x.txt", "hello")
        return
            """
            services:
              - name: api
                match: { prefix: /api }
                base_url: "\(origin.url)"
                auth: { bearer: s3cret-bearer }
                headers: { set: { X-Api-Key: s3cret-field } }
                query: { api_key: s3cret-item }
                endpoints: [{ name: things, path: /things/* }]
              - { name: outer, match: { prefix: /outer }, base_url: service:api, query: { token: s3cret-outer } }
              - { name: play, match: { prefix: /play }, demo: { enabled: true, files: "\(folder.path)", file: x.txt } }
            """
    }

    @Test func `at debug level each request tells who answered, by which rule, and what its origin was asked`()
        async throws
    {
        let log = KeptLog()
        let origin = try ScriptedOrigin { request in
            if request.field("If-None-Match") != nil {
                return .answer(304, to: request, fields: [("ETag", "\"1\"")], "")
            }
            let control = request.target.contains("private") ? "private" : "max-age=0"
            return .answer(to: request, fields: [("Cache-Control", control), ("ETag", "\"1\"")], "x")
        }
        let folder = try TemporaryFolder()
        try await HandlerHarness.run(Self.text(origin, folder), daemonLog: log.serverLog(.debug)) { harness throws in
            func told(_ method: String, _ target: String, _ id: String, body: [UInt8]? = nil) throws -> [String] {
                let before = log.lines.count
                let fields = [("X-Request-Id", id)]
                let answer = try harness.exchange(method, target, fields: fields, body: body)
                #expect(answer.status == 200, "\(target) \(answer.text)")
                // The last line comes when the last byte has gone.
                #expect(log.kept.wait(120) { $0.last?.hasPrefix("debug answered ") == true && $0.count > before })
                try harness.settle()
                let lines = Array(log.lines[before...])
                #expect(lines.allSatisfy { $0.contains(" id=\(id)") }, "\(lines)")
                return lines
            }
            func expect(_ lines: [String], _ wanted: [[String]]) {
                #expect(lines.count == wanted.count, "\(lines)")
                for (line, parts) in zip(lines, wanted) {
                    for part in parts { #expect(line.contains(part), "\(part) in \(line)") }
                }
            }
            let url = "url=\(origin.url)/things/1"
            expect(
                try told("GET", "/api/things/1", "first"),
                [
                    ["debug request ", "client=127.0.0.1", "method=GET", "target=/api/things/1", "host=localhost"],
                    [
                        "debug decided ", "service=api", "endpoint=things", "matched=prefix /api",
                        "source=store, then origin", "key=\(origin.url)/things/1",
                    ], ["debug asks the origin ", "method=GET", url],
                    ["debug the origin answered ", "status=200", url],
                    [
                        "debug answer ", "what=the origin's, which is stored", "fwd=uri-miss",
                        "rule=RFC 9111 section 4.3",
                    ],
                    ["debug answered ", "status=200", "bytes=1", "service=api"],
                ]
            )
            let checked = try told("GET", "/api/things/1", "second")
            #expect(
                checked.contains { $0.contains("asks the origin") && $0.contains("if-none-match=\"1\"") },
                "\(checked)"
            )
            #expect(
                checked.contains { $0.contains("what=what is stored, which the origin has confirmed") },
                "\(checked)"
            )
            let refused = try told("GET", "/api/private", "third")
            #expect(
                refused.contains {
                    $0.contains("what=the origin's, which is not stored") && $0.contains("detail=private")
                        && $0.contains("rule=RFC 9111 section 5.2.2.7")
                },
                "\(refused)"
            )
            let posted = try told("POST", "/api/things/1", "fourth", body: [1])
            #expect(posted.contains { $0.contains("rule=POST is passed on") }, "\(posted)")
            let played = try told("GET", "/play/x", "fifth")
            #expect(
                played.contains { $0.contains("source=demo") } && played.contains { $0.contains("what=a demo answer") }
            )
            let inner = try told("GET", "/outer/things/2", "sixth")
            #expect(
                inner.contains { $0.contains("asks the origin") && $0.contains("url=service:api/things/2") },
                "\(inner)"
            )
            #expect(
                inner.contains { $0.contains("asks the origin") && $0.contains("url=\(origin.url)/things/2") },
                "\(inner)"
            )
            // None of it was answered where nothing is told.
            #expect(try harness.direct() == 0)
        }
        #expect(
            origin.log.allSatisfy {
                $0.target.contains("s3cret") && $0.field("Authorization") == "Bearer s3cret-bearer"
            }
        )
        #expect(!log.lines.contains { $0.contains("s3cret") }, "\(log.lines)")
    }

    @Test func `what fails, and what is refused, says why`() async throws {
        let log = KeptLog()
        let text = """
            services: [{ name: gone, match: { prefix: /gone }, base_url: "http://127.0.0.1:1" }]
            """
        try await HandlerHarness.run(text, daemonLog: log.serverLog(.debug)) { harness throws in
            #expect(try harness.get("/gone/x").status == 502)
            #expect(log.kept.wait(120) { $0.last?.hasPrefix("debug answered ") == true })
            #expect(
                log.lines.contains { $0.hasPrefix("debug the origin failed ") && $0.contains("error=") },
                "\(log.lines)"
            )
            #expect(log.lines.last?.contains("status=502") == true && log.lines.last?.contains("error=") == true)
            log.kept.update { $0 = [] }
            let lost = try harness.get("/lost")
            #expect(log.kept.wait(120) { $0.last?.hasPrefix("debug answered ") == true })
            let id = try #require(lost.field("X-Request-Id"))
            #expect(log.lines.count == 2 && log.lines.allSatisfy { $0.contains("id=\(id)") }, "\(log.lines)")
            #expect(log.lines.last?.contains("error=no service matches /lost") == true, "\(log.lines)")
        }
    }

    @Test func `below debug level nothing is told of requests that go well`() async throws {
        let log = KeptLog()
        let origin = try ScriptedOrigin { .answer(to: $0, fields: [("Cache-Control", "max-age=60")], "x") }
        let folder = try TemporaryFolder()
        try await HandlerHarness.run(Self.text(origin, folder), daemonLog: log.serverLog(.info)) { harness throws in
            for _ in 0..<3 {
                #expect(try harness.get("/api/things/1").status == 200)
                try harness.settle()
            }
        }
        #expect(log.lines.isEmpty, "\(log.lines)")
    }

    // MARK: - The lines themselves

    private static let line = DaemonLine(
        time: (1_795_225_445, 7),
        level: "notice",
        message: "a \"b\"",
        fields: [("error", "one\ntwo\u{7F}"), ("time", "3")]
    )

    @Test func `a line of the daemon's own log is text, or one JSON object`() {
        #expect(
            String(decoding: Self.line.text("drydock"), as: UTF8.self)
                == "2026-11-21T01:44:05Z notice drydock: a \"b\" error=one\\x0Atwo\\x7F time=3\n"
        )
        #expect(
            String(decoding: Self.line.json, as: UTF8.self)
                == #"{"time":"2026-11-21T01:44:05.007Z","level":"notice","message":"a \"b\"","error":"one\u000atwo\u007f","time_":"3"}"#
                + "\n"
        )
    }

    @Test func `no control of a terminal goes into a text line`() {
        let line = DaemonLine(time: (0, 0), level: "debug", message: "m", fields: [("a", "\u{9B}2J é")])
        #expect(String(decoding: line.text("drydock"), as: UTF8.self).hasSuffix(" m a=\\x9B2J é\n"))
    }

    @Test func `both follow the configuration`() {
        var log = LogConfiguration()
        let settings = LogSettings(log)
        #expect(!settings.isJSON && settings.level(of: .daemon) == .info)
        log.level = .debug
        for format in LogConfiguration.Format.allCases {
            log.format = format
            settings.set(log)
            #expect(settings.isJSON == (format == .json) && settings.level(of: .daemon) == .debug)
        }
    }
}
