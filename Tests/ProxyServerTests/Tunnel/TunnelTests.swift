// Tunnels after CONNECT and Upgrade: bytes both ways, half-closing, refusals, and an origin that answers otherwise.

import Configuration
import Foundation
import TestSupport
import Testing

@testable import ProxyServer

@Suite struct TunnelTests {
    /// Accepts one connection on loopback and hands it to `serve`, on a thread of its own.
    private static func peer(_ serve: @escaping @Sendable (ScriptedPeer) throws -> Void) throws -> Int {
        let listener = try ScriptedPeer.listen()
        Threads.start {
            guard let peer = try? ScriptedPeer(acceptingOn: listener) else { return }
            try? serve(peer)
            peer.close()
        }
        return listener.port
    }

    private static func connect(_ harness: ServerHarness, _ port: Int, early: String = "", fields: String = "") throws
        -> RawClient
    {
        let client = try harness.client()
        try client.send("CONNECT 127.0.0.1:\(port) HTTP/1.1\r\nHost: 127.0.0.1:\(port)\r\n\(fields)\r\n\(early)")
        let head = try client.readHead(method: "CONNECT")
        #expect(head.status == 200)
        #expect(head.field("Content-Length") == nil)
        #expect(head.field("Transfer-Encoding") == nil)
        return client
    }

    @Test func `bytes go both ways, those sent with the head included`() async throws {
        try await ServerHarness.run { harness in
            let port = try Self.peer { peer in
                try peer.send(Array("hello ".utf8))
                while let bytes = try peer.read() { try peer.send(bytes) }
            }
            let client = try Self.connect(harness, port, early: "early ")
            #expect(
                Set([try client.readRaw(6), try client.readRaw(6)]) == [Array("hello ".utf8), Array("early ".utf8)]
            )
            try client.send("GET / HTTP/1.1\r\n\r\n")
            #expect(try client.readRaw(18) == Array("GET / HTTP/1.1\r\n\r\n".utf8))
            client.finishSending()
            #expect(try client.isClosedByServer())
            #expect(harness.observations.seen.wait(120) { $0.delivered == 24 })
            #expect(harness.counters[.tunnelsOpened] == 1)
            #expect(harness.counters[.tunnelsClosed] == 1)
            #expect(blockUntil { harness.server.limits.open == 0 })
        }
    }

    @Test func `the end of one direction is passed on, and the other goes on`() async throws {
        try await ServerHarness.run { harness in
            let port = try Self.peer { peer in
                var count = 0
                while let bytes = try peer.read() { count += bytes.count }
                try peer.send(Array("got \(count)".utf8))
            }
            let client = try Self.connect(harness, port)
            try client.sendPattern(3_000_000)
            client.finishSending()
            #expect(String(decoding: try client.readToEnd(), as: UTF8.self) == "got 3000000")
        }
    }

    @Test("a reset on one side is a reset on the other", arguments: ["origin", "client"])
    func resets(side: String) async throws {
        try await ServerHarness.run { harness in
            let (asked, saw) = (Counter(), Monitor<String?>(nil))
            let port = try Self.peer { peer in
                try peer.send(Array("half".utf8))
                guard side == "client" else {
                    // Not before the client has read.
                    _ = try peer.read()
                    return peer.reset()
                }
                asked.add()
                do {
                    while try peer.read() != nil {}
                    saw.update { $0 = "an end" }
                } catch TestSupportError.system(_, let code) {
                    saw.update { $0 = code == ECONNRESET ? "a reset" : "error \(code)" }
                }
            }
            let client = try Self.connect(harness, port)
            #expect(try client.readRaw(4) == Array("half".utf8))
            if side == "client" {
                client.reset()
                #expect(saw.wait(120) { $0 != nil })
                #expect(saw.read { $0 } == "a reset")
            } else {
                try client.send(".")
                let error = #expect(throws: TestSupportError.self) { _ = try client.readToEnd() }
                #expect(error?.description.hasSuffix("Connection reset by peer") == true)
            }
            #expect(blockUntil { harness.counters[.tunnelsClosed] == 1 })
        }
    }

    @Test func `a slow reader holds the other side back, and gets every byte`() async throws {
        try await ServerHarness.run { harness in
            let count = 20_000_000
            let sent = Counter()
            let port = try Self.peer { peer in
                try peer.send(Pattern.bytes(0..<count))
                sent.add()
            }
            let client = try Self.connect(harness, port)
            #expect(harness.comesToRest { harness.counters[.bytesOut] })
            #expect(sent.value == 0 || harness.counters[.bytesOut] < UInt64(count))
            #expect(try client.readRaw(65536) == Pattern.bytes(0..<65536))
            #expect(try client.readToEnd() == Pattern.bytes(65536..<count))
        }
    }

    @Test func `a tunnel in which nothing moves ends`() async throws {
        var settings = ServerSettings()
        settings.linger = 100_000_000
        try await ServerHarness.run(settings: settings) { harness in
            let port = try Self.peer { peer in while try peer.read() != nil {} }
            let client = try Self.connect(harness, port, fields: "Impatient: 1\r\n")
            #expect(try client.isClosedByServer())
        }
    }

    @Test(arguments: ["GET /ws/chat", "GET /outer/chat", "CONNECT"])
    func `a tunnel may be idle for as long as its service, or forward mode, says`(request: String) async throws {
        let isConnect = request == "CONNECT"
        let port = try Self.peer { peer in
            if !isConnect {
                _ = try peer.readHead()
                try peer.send(Array("HTTP/1.1 101 X\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n".utf8))
            }
            while try peer.read() != nil {}
        }
        let url = "http://127.0.0.1:\(port)"
        let text = """
            forward: { allow: [127.0.0.1], connect: { allow: ["127.0.0.1:\(port)"] }, timeout: { tunnel: 100ms } }
            services:
              - { name: ws, match: { prefix: /ws }, base_url: "\(url)", timeout: { tunnel: 100ms } }
              - { name: inner, match: { prefix: /inner }, base_url: "\(url)", timeout: { tunnel: none } }
              - { name: outer, match: { prefix: /outer }, base_url: "service:inner", timeout: { tunnel: 100ms } }
            """
        let folder = try TemporaryFolder()
        var log = LogConfiguration()
        log.access = .file(path: folder.file("access.log"))
        log.format = .json
        try await HandlerHarness.run(text, log: log) { harness throws in
            let client = try harness.client()
            let line = isConnect ? "CONNECT 127.0.0.1:\(port)" : request
            try client.send("\(line) HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
            #expect(try client.readHead(method: isConnect ? "CONNECT" : "GET").status == (isConnect ? 200 : 101))
            #expect(try client.isClosedByServer())
            #expect(
                blockUntil { folder.text("access.log").contains("the tunnel was idle for longer than timeout.tunnel") }
            )
        }
    }

    @Test func `a target that refuses is a 502, and what follows is never read as a request`() async throws {
        try await ServerHarness.run { harness in
            let port = try freePort()
            let client = try harness.client()
            let early = "GET /smuggled HTTP/1.1\r\nHost: h\r\n\r\n"
            try client.send("CONNECT 127.0.0.1:\(port) HTTP/1.1\r\nHost: h\r\n\r\n" + early)
            let response = try client.readResponse()
            #expect(response.status == 502)
            #expect(response.field("Proxy-Status")?.hasPrefix("drydock; error=connection_refused") == true)
            #expect(response.field("Connection") == "close")
            #expect(try client.isClosedByServer())
            #expect(!harness.observations.seen.read { $0.targets.contains("/smuggled") })
        }
    }

    @Test func `names are resolved, and rules are checked after that`() async throws {
        try await ServerHarness.run { harness in
            let port = try Self.peer { peer in try peer.send(Array("hello".utf8)) }
            let strict = try harness.client()
            try strict.send("CONNECT localhost:\(port) HTTP/1.1\r\nHost: h\r\nStrict: 1\r\n\r\n")
            let refused = try strict.readResponse()
            #expect(refused.status == 502)
            #expect(refused.field("Proxy-Status")?.contains("destination_ip_prohibited") == true)
            let client = try harness.client()
            try client.send("CONNECT localhost:\(port) HTTP/1.1\r\nHost: h\r\n\r\n")
            #expect(try client.readHead(method: "CONNECT").status == 200)
            #expect(try client.readRaw(5) == Array("hello".utf8))
        }
    }

    @Test func `an upgrade becomes a tunnel after a 101`() async throws {
        try await ServerHarness.run { harness in
            let port = try Self.peer { peer in
                let head = try peer.readHead()
                guard head.hasPrefix("GET /socket HTTP/1.1\r\n"), head.lowercased().contains("upgrade: websocket"),
                    head.contains("Sec-WebSocket-Key: abc"), !head.contains("Keep-Alive")
                else { return }
                try peer.send(
                    Array(
                        """
                        HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
                        Sec-WebSocket-Accept: xyz\r\n\r\nfirst
                        """.utf8
                    )
                )
                while let bytes = try peer.read() { try peer.send(bytes) }
            }
            let client = try harness.client()
            let fields = [
                ("Connection", "keep-alive, Upgrade"), ("Keep-Alive", "x"), ("Upgrade", "websocket"),
                ("Sec-WebSocket-Key", "abc"),
            ]
            try client.request("GET", "/upgrade/\(port)", fields: fields)
            let head = try client.readHead()
            #expect(head.status == 101)
            #expect(head.field("Upgrade") == "websocket")
            #expect(head.field("Connection")?.lowercased() == "upgrade")
            #expect(head.field("Sec-WebSocket-Accept") == "xyz")
            #expect(head.field("Via") == "1.1 test")
            #expect(try client.readRaw(5) == Array("first".utf8))
            try client.send("ping")
            #expect(try client.readRaw(4) == Array("ping".utf8))
        }
    }

    @Test("what a client sends behind its upgrade waits for the 101, and is not lost")
    func earlyBytes() async throws {
        try await ServerHarness.run { harness in
            let port = try Self.peer { peer in
                _ = try peer.readHead()
                // It came in one piece with the head.
                harness.turn()
                guard peer.isSilent else { return }
                try peer.send(Array("HTTP/1.1 101 X\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n".utf8))
                while let bytes = try peer.read() { try peer.send(bytes) }
            }
            let client = try harness.client()
            let head = "GET /upgrade/\(port) HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n"
            try client.send(head + "early ")
            #expect(try client.readHead().status == 101)
            try client.send("late")
            #expect(try client.readRaw(10) == Array("early late".utf8))
        }
    }

    @Test(arguments: [
        ("HTTP/1.1 403 No\r\nContent-Length: 4\r\n\r\nnope", 403, "nope"),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n1\r\nd\r\n0\r\n\r\n", 200, "abcd"),
        ("HTTP/1.1 103 Early\r\n\r\nHTTP/1.1 200 OK\r\n\r\nto the end", 200, "to the end"),
        ("HTTP/1.1 204 None\r\n\r\n", 204, ""),
    ])
    func `another answer than a 101 is relayed as an ordinary one`(
        answer: String,
        status: Int,
        body: String
    ) async throws {
        try await ServerHarness.run { harness in
            let port = try Self.peer { peer in
                _ = try peer.readHead()
                try peer.send(Array(answer.utf8))
            }
            let client = try harness.client()
            let fields = [("Connection", "Upgrade"), ("Upgrade", "websocket")]
            let response = try client.exchange("GET", "/upgrade/\(port)", fields: fields)
            #expect(response.status == status)
            #expect(response.text == body)
            #expect(response.end == .complete)
            #expect(response.interim.count == (answer.contains("103") ? 1 : 0))
            #expect(try client.exchange("/next").text == "/next")
        }
    }

    @Test(arguments: [
        ("", 502, "connection_terminated"), ("HTTP/1.1 20", 502, "connection_terminated"),
        ("HTTP/1.1 101 X\nUpgrade: a\n\n", 502, "http_protocol_error"),
        ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n", 502, "http_protocol_error"),
    ])
    func `an upgrade that the origin answers badly is a 502`(answer: String, status: Int, error: String) async throws {
        try await ServerHarness.run { harness in
            let port = try Self.peer { peer in
                _ = try peer.readHead()
                try peer.send(Array(answer.utf8))
            }
            let client = try harness.client()
            let fields = [("Connection", "Upgrade"), ("Upgrade", "websocket")]
            let response = try client.exchange("GET", "/upgrade/\(port)", fields: fields)
            #expect(response.status == status)
            #expect(response.field("Proxy-Status")?.hasPrefix("drydock; error=\(error)") == true)
        }
    }

    private static let upgrade = [("Connection", "Upgrade"), ("Upgrade", "websocket")]

    @Test("an interim answer to an upgrade ends its fields of this hop here, and names this proxy")
    func interimFields() async throws {
        try await ServerHarness.run { harness in
            let port = try Self.peer { peer in
                _ = try peer.readHead()
                let early = """
                    HTTP/1.1 103 Early\r\nConnection: close, X-Hop\r\nX-Hop: 1\r\nKeep-Alive: timeout=5\r\n\
                    Proxy-Authenticate: Basic\r\nTransfer-Encoding: chunked\r\nUpgrade: a\r\nLink: </a>\r\n\r\n
                    """
                try peer.send(Array("HTTP/1.1 100 Continue\r\n\r\n\(early)HTTP/1.1 204 No\r\n\r\n".utf8))
            }
            let response = try harness.client().exchange("GET", "/upgrade/\(port)", fields: Self.upgrade)
            #expect(response.status == 204)
            #expect(response.interim.map(\.status) == [103])
            let fields = try #require(response.interim.first).fields.map { "\($0.name): \($0.value)" }
            #expect(fields == ["Link: </a>", "Via: 1.1 test"])
        }
    }

    @Test(
        "interim answers to an upgrade have a bound, and then it is a 502 that names it",
        arguments: [(100, 10, 200), (101, 10, 502), (40, 6000, 200), (50, 6000, 502), (100_000, 10, 502)]
    )
    func interimsWithoutEnd(_ count: Int, _ length: Int, _ status: Int) async throws {
        try await ServerHarness.run { harness in
            let port = try Self.peer { peer in
                _ = try peer.readHead()
                let hint = "HTTP/1.1 103 Early\r\nX: \(String(repeating: "x", count: length))\r\n\r\n"
                let end = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
                try peer.send(Array((String(repeating: hint, count: count) + end).utf8))
            }
            let client = try harness.client()
            let response = try client.exchange("GET", "/upgrade/\(port)", fields: Self.upgrade)
            #expect(response.status == status)
            #expect(response.interim.count == (status == 200 ? count : min(count - 1, length == 10 ? 100 : 43)))
            if status == 502 {
                #expect(response.field("Proxy-Status")?.hasPrefix("drydock; error=http_protocol_error") == true)
                #expect(response.text.contains("too-many-interims"))
            }
            #expect(try client.exchange("/next").text == "/next")
        }
    }

    @Test("interim answers do not put the deadline of the final one off")
    func interimsAndTheDeadline() async throws {
        try await ServerHarness.run { harness in
            let port = try Self.peer { peer in
                _ = try peer.readHead()
                for _ in 0..<90 {
                    try peer.send(Array("HTTP/1.1 102 Processing\r\n\r\n".utf8))
                    usleep(20_000)
                    // However slow the loop is, it looks at its deadlines between two of them.
                    harness.turn()
                }
                while try peer.read() != nil {}
            }
            let fields = Self.upgrade + [("Impatient", "1")]
            let response = try harness.client().exchange("GET", "/upgrade/\(port)", fields: fields)
            #expect(response.status == 504)
            #expect(response.field("Proxy-Status")?.contains("error=http_response_timeout") == true)
            #expect(response.interim.count < 90)
        }
    }

    @Test func `an origin that does not answer an upgrade is a 504`() async throws {
        try await ServerHarness.run { harness in
            let port = try Self.peer { peer in
                _ = try peer.readHead()
                while try peer.read() != nil {}
            }
            let client = try harness.client()
            let fields = [("Connection", "Upgrade"), ("Upgrade", "websocket"), ("Impatient", "1")]
            let response = try client.exchange("GET", "/upgrade/\(port)", fields: fields)
            #expect(response.status == 504)
            #expect(response.field("Proxy-Status")?.contains("error=http_response_timeout") == true)
            #expect(try client.exchange("/next").text == "/next")
        }
    }

    @Test func `a client that leaves before the 101 takes the origin's connection with it`() async throws {
        try await ServerHarness.run { harness in
            let (asked, ended) = (Counter(), Counter())
            let port = try Self.peer { peer in
                _ = try peer.readHead()
                asked.add()
                while try peer.read() != nil {}
                ended.add()
            }
            let client = try harness.client()
            try client.request("GET", "/upgrade/\(port)", fields: [("Connection", "Upgrade"), ("Upgrade", "x")])
            #expect(asked.wait(for: 1))
            client.close()
            #expect(ended.wait(for: 1))
        }
    }

    @Test func `draining cuts a tunnel that does not end in time`() async throws {
        let harness = try await ServerHarness()
        let (open, ended) = (Counter(), Counter())
        let port = try Self.peer { peer in
            while try peer.read() != nil { open.add() }
            ended.add()
        }
        Threads.start {
            guard let client = try? Self.connect(harness, port) else { return }
            try? client.send("x")
            _ = try? client.readToEnd()
            ended.add()
        }
        await withTaskExecutorPreference(BlockingExecutor.shared) { #expect(open.wait(for: 1)) }
        await harness.stop(grace: 50_000_000)
        await withTaskExecutorPreference(BlockingExecutor.shared) { #expect(ended.wait(for: 2)) }
        #expect(harness.server.limits.open == 0)
    }

    @Test func `an answer to an upgrade that ends short is cut`() async throws {
        try await ServerHarness.run { harness in
            let port = try Self.peer { peer in
                _ = try peer.readHead()
                try peer.send(Array("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort".utf8))
            }
            let client = try harness.client()
            let fields = [("Connection", "Upgrade"), ("Upgrade", "websocket")]
            #expect(try client.exchange("GET", "/upgrade/\(port)", fields: fields).end == .cut)
        }
    }
}
