// The direct way and the waiting path, side by side: the same requests to the same origin have
// the same answers and counts.

import CacheStore
import DownloadCore
import Glibc
import TestSupport
import Testing

@testable import ProxyServer
@testable import ServiceCore

/// How a request is sent: nobody but this proxy looks at either field, and they are of one length.
private enum Way: String {
    case direct = "X-Page: http://page.test"
    /// A web page's request takes the waiting path.
    case waiting = "Origin: http://page.test"
}

private struct Case: CustomTestStringConvertible, Sendable {
    let name: String
    /// The methods of what is sent at once on one connection, and the text, in which `#` stands for Host
    /// and the field of the way.
    let methods: [String]
    let text: String
    let reply: @Sendable (OriginRequest) -> OriginReply
    /// The origin says how long its answer is. Else the waiting path under a policy says so,
    /// too, where all came in time.
    let hasLength: Bool
    /// How long a head may take. Long, but where this is looked at: a busy machine must not decide what the answer is.
    let firstByte: String
    /// Where the reply has a pause: it goes on when the client has so many bytes of the content.
    let goesOnAfter: Int?

    var testDescription: String { name }

    init(
        _ name: String,
        _ text: String,
        hasLength: Bool = true,
        firstByte: String = "2m",
        goesOnAfter: Int? = nil,
        _ reply: @escaping @Sendable (OriginRequest) -> OriginReply
    ) {
        self.name = name
        self.hasLength = hasLength
        self.firstByte = firstByte
        self.goesOnAfter = goesOnAfter
        self.text = text.split(separator: "|").map { $0 + "\r\n\r\n" }.joined()
        methods = text.split(separator: "|").map { String($0.prefix { $0 != " " }) }
        self.reply = reply
    }
}

private let date = ("Date", "Sun, 06 Nov 1994 08:49:37 GMT")
private let noStore = ("Cache-Control", "no-store")
private let get = "GET /x HTTP/1.1\r\n#\r\nConnection: close"

extension OriginReply {
    /// The bytes of all its steps.
    fileprivate var wire: [UInt8] {
        var wire: [UInt8] = []
        for case .bytes(let bytes) in steps { wire += bytes }
        return wire
    }
}

/// Stands for a wait until the client has what has come so far.
private let pause = OriginReply.Step.pause(milliseconds: 0)

private func raw(_ head: String, _ rest: OriginReply.Step...) -> OriginReply {
    OriginReply([OriginReply.text("HTTP/1.1 \(head)\r\nDate: \(date.1)\r\nCache-Control: no-store\r\n\r\n")] + rest)
}

private let cases: [Case] = [
    Case("a short body", get) { .answer(to: $0, fields: [date, noStore], "hello") },
    Case("no body", get) { .answer(to: $0, fields: [date, noStore], "") },
    Case("three mebibytes", get) { _ in .pattern(3 << 20, fields: [date, noStore]) },
    Case("much in a row", "GET /1 HTTP/1.1\r\n#|GET /2 HTTP/1.1\r\n#|\(get)") { _ in
        .pattern(300_000, fields: [date, noStore])
    },
    Case("much, and more than its length", get) { _ in
        OriginReply([.bytes(raw("200 OK\r\nContent-Length: 200000").wire + [UInt8](repeating: 97, count: 200_009))])
    },
    Case("much, its head first", get, goesOnAfter: 0) { _ in
        raw("200 OK\r\nContent-Length: 200000", pause, .pattern(200_000, from: 0))
    },
    // In one write: in how many chunks it goes on depends on how many reads it comes in.
    Case("chunks", get, hasLength: false) { _ in
        OriginReply([.bytes(OriginReply.chunked(["one", "two", "three"], fields: [date, noStore]).wire)])
    },
    Case("chunks with trailers", get, hasLength: false) { _ in
        raw("200 OK\r\nTransfer-Encoding: chunked", OriginReply.text("3\r\nabc\r\n0\r\nX-Sum: 6\r\n\r\n"))
    },
    Case("up to the end of the connection", get, hasLength: false) { _ in
        raw("200 OK", OriginReply.text("all of it"), .cut)
    },
    Case("chunks for HTTP/1.0", "GET /x HTTP/1.0\r\n#", hasLength: false) { _ in
        .chunked(["one", "two"], fields: [date, noStore])
    },
    Case("HTTP/1.0 that stays", "GET /x HTTP/1.0\r\n#\r\nConnection: keep-alive|\(get)") {
        .answer(to: $0, fields: [date, noStore], "hello")
    },
    Case("three in a row", "GET /1 HTTP/1.1\r\n#|HEAD /2 HTTP/1.1\r\n#|\(get)") {
        .answer(to: $0, fields: [date, noStore], $0.target)
    },
    Case("HEAD", "HEAD /x HTTP/1.1\r\n#\r\nConnection: close") { .answer(to: $0, fields: [date, noStore], "hello") },
    Case("HEAD without a length", "HEAD /x HTTP/1.1\r\n#\r\nConnection: close") { _ in
        raw("200 OK\r\nTransfer-Encoding: chunked")
    },
    Case("204", get) { _ in raw("204 No Content") },
    Case("304", "GET /x HTTP/1.1\r\n#\r\nIf-None-Match: \"a\"\r\nConnection: close") { _ in
        raw("304 Not Modified\r\nETag: \"a\"")
    },
    Case("304 that nothing asked for", get) { _ in raw("304 Not Modified\r\nETag: \"a\"") },
    Case("a part", "GET /x HTTP/1.1\r\n#\r\nRange: bytes=0-4\r\nConnection: close") { _ in
        raw("206 Partial Content\r\nContent-Range: bytes 0-4/10\r\nContent-Length: 5", OriginReply.text("hello"))
    },
    Case("a part that nobody asked for", get) { _ in
        raw("206 Partial Content\r\nContent-Range: bytes 0-4/10\r\nContent-Length: 5", OriginReply.text("hello"))
    },
    Case("a wider part", "GET /x HTTP/1.1\r\n#\r\nRange: bytes=0-4\r\nConnection: close") { _ in
        raw("206 Partial Content\r\nContent-Range: bytes 0-9/10\r\nContent-Length: 10", OriginReply.text("hellohello"))
    },
    Case("a part of another length", "GET /x HTTP/1.1\r\n#\r\nRange: bytes=0-4\r\nConnection: close") { _ in
        raw("206 Partial Content\r\nContent-Range: bytes 0-4/10\r\nContent-Length: 3", OriginReply.text("hel"))
    },
    Case("404", get) { .answer(404, to: $0, fields: [date, noStore], "no") },
    Case("500", get) { .answer(500, to: $0, fields: [date, noStore], "broken") },
    Case("early hints", get) { request in
        OriginReply([OriginReply.text("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n")])
            .then(.answer(to: request, fields: [date, noStore], "hello"))
    },
    Case("what points at the origin", get) { request in
        let location = "http://\(request.field("Host") ?? "")/there"
        return .answer(
            302,
            to: request,
            fields: [date, noStore, ("Location", location), ("Set-Cookie", "a=b; Path=/")],
            ""
        )
    },
    Case("fields of the origin's connection", get) { _ in
        raw(
            "200 OK\r\nContent-Length: 2\r\nConnection: X-Mine\r\nX-Mine: 1\r\nX-Yours: 2\r\nKeep-Alive: timeout=5",
            OriginReply.text("ok")
        )
    },
    Case("an origin's connection that stays", get) { _ in
        raw(
            "200 OK\r\nContent-Length: 2\r\nConnection: keep-alive\r\nKeep-Alive: timeout=5\r\nClose: 1",
            OriginReply.text("ok")
        )
    },
    Case("an origin's connection that ends", get) { _ in
        raw("200 OK\r\nContent-Length: 2\r\nConnection: close\r\nClose: 1", OriginReply.text("ok"))
    },
    Case("two lengths", get) { _ in raw("200 OK\r\nContent-Length: 2\r\nContent-Length: 2", OriginReply.text("ok")) },
    Case("a list of lengths", get) { _ in raw("200 OK\r\nContent-Length: 2, 2", OriginReply.text("ok")) },
    Case("a length with a zero in front", get) { _ in raw("200 OK\r\nContent-Length: 02", OriginReply.text("ok")) },
    Case("a length of 0", get) { _ in raw("200 OK\r\nContent-Length: 0") },
    Case("a length of 10", get) { _ in raw("200 OK\r\ncontent-length:10", OriginReply.text("0123456789")) },
    Case("no reason", get) { _ in raw("200 \r\nContent-Length: 2", OriginReply.text("ok")) },
    Case("a reason of its own", get) { _ in raw("299 As \u{e9} \tlike\r\nContent-Length: 2", OriginReply.text("ok")) },
    Case("behind other proxies", get) { _ in
        raw("200 OK\r\nContent-Length: 2\r\nVia: 1.0 a\r\nX: 1\r\nCache-Status: a; hit", OriginReply.text("ok"))
    },
    Case("behind a cache", get) { _ in
        raw("200 OK\r\nContent-Length: 2\r\nCache-Status: a; hit", OriginReply.text("ok"))
    },
    Case("a proxy's own fields", get) { _ in
        raw("200 OK\r\nContent-Length: 2\r\nProxy-Authentication-Info: a\r\nX: 1\r\nX: 2", OriginReply.text("ok"))
    },
    Case("an origin that speaks HTTP/1.0", get) { _ in
        .raw("HTTP/1.0 200 OK\r\nDate: \(date.1)\r\nCache-Control: no-store\r\nContent-Length: 2\r\n\r\nok")
    },
    Case("no Date", get) { _ in .raw("HTTP/1.1 200 OK\r\nCache-Control: no-store\r\nContent-Length: 2\r\n\r\nok") },
    Case("more than its length", get) { _ in raw("200 OK\r\nContent-Length: 2", OriginReply.text("okay")) },
    Case("no head", get) { _ in .cut },
    Case("half a head", get) { _ in OriginReply([OriginReply.text("HTTP/1.1 200 OK\r\nContent-"), .cut]) },
    Case("a head that is none", get) { _ in .raw("HTTP/1.1 200 OK\r\nNa(me: value\r\n\r\n") },
    Case("a body that is cut", get, goesOnAfter: 5) { _ in
        raw("200 OK\r\nContent-Length: 10", OriginReply.text("hello"), pause, .cut)
    },
    Case("chunks that are cut", get, goesOnAfter: 5) { _ in
        raw("200 OK\r\nTransfer-Encoding: chunked", OriginReply.text("5\r\nhello\r\n"), pause, .cut)
    },
    Case("a chunk that is none", get) { _ in
        raw("200 OK\r\nTransfer-Encoding: chunked", OriginReply.text("5\r\nhello\r\nxyz\r\n"))
    },
    Case("a mebibyte that is cut", get, goesOnAfter: 1 << 20) { _ in
        raw("200 OK\r\nContent-Length: 2000000", .pattern(1 << 20, from: 0), pause, .cut)
    },
    Case("too late", get, firstByte: "100ms") { _ in .never },
]

@Suite(.timeLimit(.minutes(5))) struct DirectTests {
    private static func services(_ origin: ScriptedOrigin, _ rest: String = "", firstByte: String = "2m") -> String {
        """
        defaults: { timeout: { first_byte: \(firstByte) } }
        services:
          - { name: none, match: { prefix: /none }, base_url: "\(origin.url)", cache: { mode: none }\(rest) }
          - { name: plain, match: { prefix: /plain }, base_url: "\(origin.url)"\(rest) }
          - { name: dead, match: { prefix: /dead }, base_url: "http://127.0.0.1:1", cache: { mode: none } }
        """
    }

    /// What a client gets for a text of requests, as lines, and what was counted meanwhile.
    private static func result(
        _ harness: HandlerHarness,
        _ prefix: String,
        _ methods: [String],
        _ text: String,
        _ way: Way,
        goesOn: (RawClient) throws -> [UInt8] = { _ in [] }
    ) throws -> (lines: [String], counted: [UInt64], direct: Int) {
        let (before, direct) = (try harness.counters(), try harness.direct())
        let client = try harness.client()
        let text = text.replacing("#", with: "Host: localhost\r\n\(way.rawValue)").replacing(" /", with: " \(prefix)/")
        try client.send(text)
        var lines: [String] = []
        do {
            for method in methods {
                let final = try client.readHead(method: method)
                for head in client.interim + [final] {
                    lines.append("\(head.version) \(head.status) \(head.reason)")
                    lines += head.fields.map { "\($0.name): \($0.value)" }.filter { !$0.hasPrefix("Date: ") }
                }
                var body = try goesOn(client)
                let end = try client.readBody { body += $0 }
                lines += client.trailers.map { "trailer \($0.name): \($0.value)" }
                // How it is framed is in the fields.
                lines.append("\(end) \(body.count) \(body.hashValue)")
            }
            lines.append("closed: \(try client.isClosedByServer())")
        } catch {
            lines.append("error: \(error)")
        }
        client.close()
        try harness.waitForConnections(0)
        let after = try harness.counters()
        // How the bytes go is no part of the answer.
        let counted = Counter.allCases.filter { $0 != .bytesSpliced }.map { after[$0] &- before[$0] }
        return (lines, counted, try harness.direct() - direct)
    }

    @Test(arguments: cases)
    fileprivate func `both ways give the same answer`(one: Case) async throws {
        let held = Monitor(Gate?.none)
        let origin = try ScriptedOrigin { request in
            let steps = one.reply(request).steps.map { step -> OriginReply.Step in
                guard case .pause = step else { return step }
                let gate = Gate()
                held.update { $0 = gate }
                return .wait(gate)
            }
            return OriginReply(steps)
        }
        try await HandlerHarness.run(Self.services(origin, firstByte: one.firstByte)) { harness throws in
            func result(_ prefix: String, _ way: Way) throws -> (lines: [String], counted: [UInt64], direct: Int) {
                try Self.result(harness, prefix, one.methods, one.text, way) { client in
                    guard let count = one.goesOnAfter else { return [] }
                    var body: [UInt8] = []
                    _ = try client.readBody(upTo: count) { body += $0 }
                    held.read { $0 }?.open()
                    return body
                }
            }
            for prefix in one.hasLength ? ["/none", "/plain"] : ["/none"] {
                // The Host is known then, and that nothing of these keys can be stored.
                let first = try result(prefix, .waiting)
                let waiting = try result(prefix, .waiting)
                let direct = try result(prefix, .direct)
                #expect(direct.lines == waiting.lines)
                #expect(direct.counted == waiting.counted)
                #expect(waiting.direct == 0)
                if prefix == "/none" {
                    #expect(direct.direct == one.methods.count)
                    #expect(direct.lines == first.lines)
                }
            }
        }
    }

    @Test func `what cannot be stored is passed on where that is known, and stored as soon as it can be`() async throws
    {
        let isPrivate = Monitor(true)
        let origin = try ScriptedOrigin { request in
            let control = isPrivate.read { $0 } ? "no-store" : "max-age=60"
            return .answer(to: request, fields: [("Cache-Control", control)], "hello")
        }
        try await HandlerHarness.run(Self.services(origin)) { harness throws in
            for direct in [0, 1, 2] {
                let answer = try harness.get("/plain/x")
                #expect(answer.field("Cache-Status") == "drydock; fwd=uri-miss; fwd-status=200; detail=no-store")
                #expect(try harness.direct() == direct)
            }
            isPrivate.update { $0 = false }
            let expected = [
                "drydock; fwd=uri-miss; fwd-status=200; detail=remembered-uncacheable",
                "drydock; fwd=uri-miss; fwd-status=200; stored",
            ]
            for status in expected { #expect(try harness.get("/plain/x").field("Cache-Status") == status) }
            #expect(try harness.get("/plain/x").field("Cache-Status")?.contains("; hit") == true)
            #expect(origin.requests() == 5)
            // Other methods, and requests that say more of caching, take the waiting path.
            isPrivate.update { $0 = true }
            _ = try harness.get("/plain/y")
            _ = try harness.get("/plain/y", fields: [("Cache-Control", "no-cache")])
            _ = try harness.exchange("HEAD", "/plain/y")
            #expect(try harness.direct() == 3)
        }
    }

    @Test func `each answer says its own status and reason`() async throws {
        let origin = try ScriptedOrigin { request in
            .answer(request.target == "/404" ? 404 : 200, to: request, fields: [date, noStore], request.target)
        }
        try await HandlerHarness.run(Self.services(origin)) { harness throws in
            for target in ["/none/200", "/plain/200", "/plain/404"] { _ = try harness.get(target) }
            let before = try harness.direct()
            for target in ["/none/200", "/none/404", "/plain/404", "/plain/200", "/none/200", "/none/200"] {
                let answer = try harness.get(target)
                let reason =
                    target.hasPrefix("/none")
                    ? "bypass; fwd-status=#; detail=cache-off" : "uri-miss; fwd-status=#; detail=no-store"
                let status = target.hasSuffix("404") ? 404 : 200
                let expected = reason.replacing("#", with: "\(status)")
                #expect(answer.status == status)
                #expect(answer.field("Cache-Status") == "drydock; fwd=\(expected)")
                #expect(answer.field("Via") == "1.1 drydock")
                #expect(answer.text == String(target.suffix(4)))
            }
            #expect(try harness.direct() == before + 6)
        }
    }

    @Test(arguments: ["/none", "/plain"])
    func `a refused connection is the same problem`(prefix: String) async throws {
        let origin = try ScriptedOrigin { .answer(to: $0, fields: [date, noStore], "hello") }
        try await HandlerHarness.run(Self.services(origin)) { harness throws in
            let text = get + "\r\n\r\n"
            _ = try Self.result(harness, prefix, ["GET"], text, .waiting)
            origin.stop()
            let waiting = try Self.result(harness, prefix, ["GET"], text, .waiting)
            let direct = try Self.result(harness, prefix, ["GET"], text, .direct)
            #expect(direct.lines == waiting.lines)
            #expect(direct.counted == waiting.counted)
            #expect(direct.direct == 1)
            #expect(direct.lines.first == "HTTP/1.1 502 Bad Gateway")
            #expect(try harness.get("/dead/x").status == 502)
        }
    }

    /// Stands still before a head, in a body, or answers.
    private static func stalling(_ gate: Gate) throws -> ScriptedOrigin {
        try ScriptedOrigin { request in
            switch request.target {
            case "/head": OriginReply([.wait(gate)]).then(.answer("late"))
            case "/body":
                OriginReply([
                    OriginReply.head(200, fields: [("Content-Length", "9")]), OriginReply.text("abc"), .wait(gate),
                ])
            default: .answer(to: request, fields: [noStore], "hello")
            }
        }
    }

    @Test func `a client that leaves ends the fetch and gives its slot back`() async throws {
        let gate = Gate()
        let origin = try Self.stalling(gate)
        defer { gate.open() }
        let text = Self.services(origin, ", max_concurrent: 1, max_queue: { length: 1, wait: 2m }")
        try await HandlerHarness.run(text) { harness throws in
            _ = try harness.get("/none/x")
            for target in ["/head", "/body"] {
                let before = try harness.counters()
                let client = try harness.client()
                try client.request("GET", "/none" + target)
                if target == "/body" {
                    _ = try client.readHead()
                } else {
                    #expect(origin.waitForRequests(1, target: target))
                }
                client.reset()
                try harness.waitForConnections(0)
                let after = try harness.counters()
                #expect(after[.errorAborted] == before[.errorAborted] + 1)
                // There is one slot.
                #expect(try harness.get("/none/x").text == "hello")
            }
            #expect(try harness.direct() == 4)
        }
    }

    @Test func `without a free slot a request waits for its turn`() async throws {
        let gate = Gate()
        let origin = try ScriptedOrigin { request in
            request.target == "/slow" ? OriginReply([.wait(gate)]).then(.answer("late")) : .answer("hello")
        }
        let text = Self.services(origin, ", max_concurrent: 1, max_queue: { length: 1, wait: 2m }")
        try await HandlerHarness.run(text) { harness throws in
            _ = try harness.get("/none/x")
            let (first, second) = (try harness.client(), try harness.client())
            try first.request("GET", "/none/slow")
            #expect(origin.waitForRequests(1, target: "/slow"))
            try second.request("GET", "/none/x")
            #expect(try harness.direct() == 1)
            gate.open()
            #expect(try first.readResponse().text == "late")
            #expect(try second.readResponse().text == "hello")
        }
    }

    @Test func `a slow client gets every byte, and the origin waits for it`() async throws {
        let length = 8 << 20
        let origin = try ScriptedOrigin { _ in .pattern(length) }
        try await HandlerHarness.run(Self.services(origin)) { harness throws in
            _ = try harness.get("/none/x")
            for fields in [[], [("Connection", "close")]] {
                let before = try harness.counters()[.bytesOut]
                let client = try RawClient(port: harness.port, receiveBuffer: 4096)
                try client.request("GET", "/none/x", fields: fields)
                _ = try client.readHead()
                // More than the sockets' buffers and the queue hold has to wait meanwhile.
                try harness.comesToRest(beyond: before) { $0[.bytesOut] }
                var received = 0
                let end = try client.readBody { piece in
                    #expect(Pattern.matches(piece, at: received))
                    received += piece.count
                }
                #expect(end == .complete)
                #expect(received == length)
            }
            #expect(try harness.direct() == 2)
        }
    }

    @Test func `an operator finds a fetch from its first byte on`() async throws {
        let gate = Gate()
        let origin = try Self.stalling(gate)
        defer { gate.open() }
        try await HandlerHarness.run(Self.services(origin)) { harness throws in
            let ended = Monitor([CancelledFetches]())
            // The source decides what is called when a request goes out.
            try harness.ask { [core = harness.core] handler in
                guard let route = handler.routes.plan.service(named: "none"), let address = route.plan.origin else {
                    return
                }
                let source = OriginSource(
                    service: route.plan,
                    origin: address,
                    plan: route.itself.request,
                    runtime: route.runtime,
                    client: handler.client,
                    onFetch: {
                        ended.update { $0.append(core.housekeeping.cancel { $0.description.hasSuffix("/head") }) }
                    }
                )
                handler.routes.services.use(source, for: route.itself)
            }
            _ = try harness.get("/none/x")
            let answer = try harness.get("/none/head")
            #expect(answer.status == 503)
            #expect(try harness.direct() == 1)
            #expect(ended.read { $0 } == [CancelledFetches(), CancelledFetches(fetches: 1, waiters: 1)])
        }
    }

    @Test(arguments: [Way.direct, .waiting])
    fileprivate func `an operator ends a fetch`(way: Way) async throws {
        let gate = Gate()
        let origin = try Self.stalling(gate)
        defer { gate.open() }
        try await HandlerHarness.run(Self.services(origin)) { harness throws in
            _ = try harness.get("/none/x")
            let parts = way.rawValue.split(separator: ": ", maxSplits: 1).map(String.init)
            for target in ["/head", "/body"] {
                let client = try harness.client()
                try client.request("GET", "/none" + target, fields: [(parts[0], parts[1])])
                if target == "/body" {
                    #expect(try client.readHead().status == 200)
                    #expect(try client.readBody(upTo: 3) { _ in } == nil)
                } else {
                    #expect(origin.waitForRequests(1, target: target))
                }
                #expect(harness.core.housekeeping.cancel { _ in true } == CancelledFetches(fetches: 1, waiters: 1))
                if target == "/body" {
                    #expect(try client.readBody { _ in } == .cut)
                } else {
                    let answer = try client.readResponse()
                    #expect(answer.status == 503)
                    #expect(answer.text.contains("drydock cancel"))
                    #expect(answer.field("Cache-Status") == "drydock; fwd=bypass; detail=connection_terminated")
                }
            }
        }
    }
}

extension HandlerHarness {
    /// Requests that have taken the direct way so far; blocks until the loop has told.
    func direct() throws -> Int {
        try ask { $0.directRequests }
    }

    /// Blocks until so many connections are open.
    func waitForConnections(_ count: UInt64) throws {
        let areSo = try blockUntil { try counters().connections == count }
        guard areSo else { throw TestSupportError.timedOut("the connections") }
    }

    /// Blocks until a counter has passed `floor` and has then stood still for some time, in which the loop has turned.
    func comesToRest(beyond floor: UInt64, _ number: (CounterValues) -> UInt64) throws {
        guard try TestSupport.comesToRest(beyond: floor, { number(try counters()) }) else {
            throw TestSupportError.timedOut("the counter, which stands at \(number(try counters()))")
        }
    }
}
