// Requests through the real handler to a scripted origin: what goes on, what comes back, what is
// stored and under which key.

import DownloadCore
import EventLoop
import HTTPWire
import TestSupport
import Testing

@testable import ProxyServer

private let shared = ("Cache-Control", "max-age=600")

@Suite(.timeLimit(.minutes(5))) struct HandlerTests {
    private static func service(_ origin: ScriptedOrigin, _ rest: String = "") -> String {
        "services: [{ name: s, match: { prefix: /s }, base_url: \"\(origin.url)\"\(rest.isEmpty ? "" : ", " + rest) }]"
    }

    /// Answers with the fields that it was asked with.
    private static func echo(_ names: String...) throws -> ScriptedOrigin {
        try ScriptedOrigin { request in
            .answer(
                to: request,
                fields: [shared],
                names.map { "\($0)=\(request.all($0).joined(separator: ","))" }.joined(separator: ";")
            )
        }
    }

    // MARK: - Upgrade (RFC 9110 section 7.8)

    @Test func `a wish for HTTP2 is ignored, and the answer is stored`() async throws {
        let origin = try Self.echo("Upgrade", "HTTP2-Settings", "Connection")
        try await HandlerHarness.run(Self.service(origin)) { harness throws in
            let client = try harness.client()
            let fields = [
                ("Connection", "Upgrade, HTTP2-Settings"), ("Upgrade", "h2c"), ("HTTP2-Settings", "AAMAAABkAAQA"),
            ]
            let first = try client.exchange("/s/x", fields: fields)
            #expect(first.status == 200)
            #expect(first.text == "Upgrade=;HTTP2-Settings=;Connection=")
            let second = try client.exchange("/s/x", fields: fields)
            #expect(second.field("Cache-Status")?.hasPrefix("drydock; hit; ttl=") == true)
            #expect(try client.exchange("/s/x").field("Cache-Status")?.hasPrefix("drydock; hit; ttl=") == true)
            #expect(origin.requests() == 1)
        }
    }

    @Test(
        arguments: [
            ("h2c", "Upgrade", nil), ("HTTP/2.0, TLS/1.3", "Upgrade", nil), ("websocket", "keep-alive", nil),
            ("websocket", "Upgrade", "websocket"), ("h2c, websocket", "upgrade", "websocket"), ("", "Upgrade", nil),
        ] as [(String, String, String?)]
    )
    func `only what a tunnel can carry is asked for`(upgrade: String, connection: String, expected: String?) {
        let fields = Fields([("Host", "a"), ("Upgrade", upgrade), ("Connection", connection)])
        let request = RequestHead(method: .get, target: "/", version: .http11, fields: fields)
        #expect(UpgradeTunnel.wantedProtocols(request, .none)?.filter { $0 != " " } == expected)
        #expect(UpgradeTunnel.wantedProtocols(request, .length(3)) == nil)
        let old = RequestHead(method: .get, target: "/", version: .http10, fields: fields)
        #expect(UpgradeTunnel.wantedProtocols(old, .none) == nil)
    }

    @Test func `an upgrade keeps to the endpoints, and goes through services`() async throws {
        let origin = try ScriptedOrigin { request in
            guard request.field("Upgrade") != nil else { return .answer("plain \(request.target)") }
            let fields = [
                ("Connection", "Upgrade"), ("Upgrade", "websocket"), ("X-Target", request.target),
                ("X-Seen", request.field("X-Mark") ?? "none"),
            ]
            return OriginReply([OriginReply.head(101, fields: fields), .converse { $0 }])
        }
        let text = """
            services:
              - name: listed
                match: { prefix: /listed }
                base_url: "\(origin.url)/base"
                unlisted: 404
                endpoints: [{ name: chat, path: /chat, headers: { set: { X-Mark: chat } } }]
              - { name: outer, match: { prefix: /outer }, base_url: service:listed, headers: { set: { X-Mark: outer } } }
            """
        let fields = [("Connection", "Upgrade"), ("Upgrade", "websocket")]
        try await HandlerHarness.run(text) { harness throws in
            #expect(try harness.get("/listed/other", fields: fields).status == 404)
            #expect(try harness.get("/outer/other", fields: fields).status == 404)
            #expect(origin.requests() == 0)
            for prefix in ["/listed", "/outer"] {
                let client = try harness.client()
                try client.request("GET", prefix + "/chat", fields: fields)
                let head = try client.readHead()
                #expect(head.status == 101)
                #expect(head.field("X-Target") == "/base/chat")
                #expect(head.field("X-Seen") == "chat")
                try client.send("echo")
                #expect(try client.readRaw(4) == Array("echo".utf8))
            }
        }
    }

    // MARK: - Fields of requests

    @Test func `TE is asked for on the next connection, too`() async throws {
        let origin = try Self.echo("TE", "Connection")
        try await HandlerHarness.run(Self.service(origin)) { harness throws in
            let fields = [("TE", "trailers"), ("Connection", "TE")]
            #expect(try harness.get("/s/x", fields: fields).text == "TE=trailers;Connection=TE")
            #expect(try harness.get("/s/y", fields: [("TE", "gzip")]).text == "TE=;Connection=")
        }
    }

    @Test(arguments: [
        "X-Forwarded-Host", "X-Forwarded-For", "X-Forwarded-Proto", "Forwarded", "X-Original-URL", "X-Rewrite-URL",
        "X-HTTP-Method-Override", "x-forwarded-prefix", "X-Host", "X_Forwarded_Host", "x-forwarded_proto", "X_REAL_IP",
        "X-Real-IP", "X-Scheme", "X-Original-URI", "True-Client-IP", "CF-Connecting-IP", "X-Client-IP",
        "X-Cluster-Client-IP", "Accept_Language", "Script_Name",
    ])
    func `a field outside the key does not choose what is stored`(name: String) async throws {
        let origin = try Self.echo(name)
        let text = Self.service(origin) + "\nforward: { enabled: true, allow: [\"127.0.0.1\"] }"
        try await HandlerHarness.run(text) { harness throws in
            let fields = [(name, "evil")]
            #expect(try harness.get("/s/x", fields: fields).text == "\(name)=")
            #expect(try harness.get("\(origin.url)/f", fields: fields).text == "\(name)=")
            // What is never shared goes on as it came.
            #expect(try harness.exchange("POST", "/s/x", fields: fields, body: []).text == "\(name)=evil")
        }
    }

    @Test func `what Connection names does not choose a variant`() async throws {
        let origin = try ScriptedOrigin { request in
            let language = request.field("Accept-Language") ?? "none"
            return .answer(to: request, fields: [shared, ("Vary", "Accept-Language")], language)
        }
        try await HandlerHarness.run(Self.service(origin)) { harness throws in
            let german = [("Accept-Language", "de")]
            let hidden = german + [("Connection", "Accept-Language")]
            #expect(try harness.get("/s/x", fields: hidden).text == "none")
            #expect(try harness.get("/s/x", fields: german).text == "de")
            #expect(origin.requests() == 2)
        }
    }

    @Test func `where the client's Host goes on it is part of the key`() async throws {
        let origin = try Self.echo("Host")
        let text = """
            services:
              - { name: s, match: { prefix: /s }, base_url: "\(origin.url)", host: preserve }
              - { name: outer, match: { prefix: /outer }, base_url: service:s }
            """
        try await HandlerHarness.run(text) { harness throws in
            for prefix in ["/s", "/outer"] {
                for _ in 0..<2 {
                    for host in ["localhost", "a.localhost", "localhost:81"] {
                        let answer = try harness.get(prefix + "/x", host: host)
                        #expect(answer.text == "Host=\(host)", "\(prefix)")
                    }
                }
            }
            #expect(origin.requests() == 3)
        }
    }

    @Test(arguments: [("100-continue", 200), ("100-Continue", 200), ("200-ok", 417), ("100-continue, more", 417)])
    func `an expectation that is not known is 417`(value: String, status: Int) async throws {
        let origin = try Self.echo("Expect")
        try await HandlerHarness.run(Self.service(origin)) { harness throws in
            let answer = try harness.get("/s/x", fields: [("Expect", value)])
            #expect(answer.status == status)
            #expect(origin.requests() == (status == 200 ? 1 : 0))
            // Without a body there is nothing to wait for.
            if status == 200 { #expect(answer.text == "Expect=") }
        }
    }

    // MARK: - OPTIONS, TRACE and Max-Forwards

    @Test func `OPTIONS without a path asks the origin as a whole`() async throws {
        let origin = try ScriptedOrigin { request in .answer(request.target) }
        try await HandlerHarness.run("forward: { enabled: true, allow: [\"127.0.0.1\"] }") { harness throws in
            #expect(try harness.exchange("OPTIONS", origin.url).text == "*")
            #expect(try harness.exchange("OPTIONS", origin.url + "/").text == "/")
            #expect(try harness.exchange("OPTIONS", origin.url + "?q").text == "/?q")
            let own = try harness.exchange("OPTIONS", "*")
            #expect(own.status == 200 && own.field("Allow")?.contains("GET") == true)
            #expect(origin.requests() == 3)
        }
    }

    @Test(
        arguments: [
            ("OPTIONS", "0", nil), ("OPTIONS", "1", "0"), ("OPTIONS", "10", "9"), ("OPTIONS", "+0", "+0"),
            ("OPTIONS", "x", "x"), ("DELETE", "0", "0"),
        ] as [(String, String, String?)]
    )
    func `Max-Forwards counts for OPTIONS`(method: String, hops: String, seen: String?) async throws {
        let origin = try Self.echo("Max-Forwards")
        try await HandlerHarness.run(Self.service(origin)) { harness throws in
            let fields = [("Max-Forwards", hops), ("Authorization", "secret"), ("X-Kept", "1")]
            let answer = try harness.exchange(method, "/s/x", fields: fields)
            #expect(answer.status == 200)
            #expect(origin.requests() == (seen == nil ? 0 : 1))
            if let seen { #expect(answer.text == "Max-Forwards=\(seen)") }
        }
    }

    @Test(arguments: ["TRACE", "trace", "TRACK"], ["prefix", "host", "forward"])
    func `TRACE does not reach the origin, whose answer would have the credentials in it`(
        method: String,
        way: String
    ) async throws {
        let origin = try ScriptedOrigin { request in .answer(request.field("Authorization") ?? "none") }
        let configuration = """
            forward: { enabled: true, allow: ["127.0.0.1"] }
            services:
              - { name: s, match: { prefix: /s }, base_url: "\(origin.url)", headers: { set: { Authorization: "Bearer of-the-service" } } }
              - { name: h, match: { host: h.test }, base_url: "\(origin.url)", headers: { set: { Authorization: "Bearer of-the-service" } } }
            """
        try await HandlerHarness.run(configuration) { harness throws in
            for hops in [[], [("Max-Forwards", "0")], [("Max-Forwards", "2")]] {
                let answer =
                    switch way {
                    case "prefix": try harness.exchange(method, "/s/x", fields: hops)
                    case "host": try harness.exchange(method, "/x", host: "h.test", fields: hops)
                    default: try harness.exchange(method, origin.url + "/x", fields: hops)
                    }
                #expect(answer.status == 405)
                #expect(answer.field("Allow") == "GET, HEAD, POST, PUT, DELETE, PATCH, OPTIONS, CONNECT")
                #expect(!answer.text.contains("of-the-service"))
            }
            for url in ["/s/x", "\(origin.url)/x"] {
                let said = try harness.batchKey(BatchItem(url: url, method: method))
                #expect(said.contains("downloads nothing") || said.contains("asks for the request itself"), "\(said)")
            }
            #expect(origin.requests() == 0)
        }
    }

    // MARK: - Storing

    @Test func `a GET that says it has no body is stored`() async throws {
        let origin = try Self.echo("Content-Length")
        try await HandlerHarness.run(Self.service(origin)) { harness throws in
            #expect(try harness.get("/s/x", body: []).text == "Content-Length=")
            #expect(try harness.get("/s/x").field("Age") != nil)
            #expect(origin.requests() == 1)
        }
    }

    @Test func `a HEAD and a 304 say what the answer to GET says`() async throws {
        let origin = try ScriptedOrigin { request in .resource(request, etag: "\"1\"", fields: [shared], "text") }
        try await HandlerHarness.run(Self.service(origin)) { harness throws in
            _ = try harness.get("/s/x")
            let client = try harness.client()
            for fields in [[], [("If-None-Match", "\"1\"")]] {
                for method in ["GET", "HEAD"] {
                    let answer = try client.exchange(method, "/s/x", fields: fields)
                    #expect(answer.status == (fields.isEmpty ? 200 : 304))
                    for name in ["Date", "ETag", "Cache-Control", "Age", "Via", "Cache-Status"] {
                        #expect(answer.head.all(name).count == 1, "\(method) \(answer.status) \(name)")
                    }
                    #expect(answer.field("Via") == "1.1 drydock")
                    #expect(answer.field("Age").flatMap { Int($0) } ?? -1 >= 0)
                    #expect(!answer.head.reason.isEmpty)
                    #expect(answer.body.count == (method == "GET" && fields.isEmpty ? 4 : 0))
                    if answer.status == 200 { #expect(answer.field("Content-Length") == "4") }
                }
            }
            #expect(origin.requests() == 1)
        }
    }

    @Test(
        arguments: [
            ("/s/x", [("Location", "/base/other")], ["/s/x", "/s/other"]),
            ("/s/y", [("Location", "other")], ["/s/other"]), ("/s/y", [("Content-Location", "/base/x")], ["/s/x"]),
            ("/s/y", [("Location", "http://ORIGIN/base/x")], ["/s/x"]),
            ("/s/y", [("Location", "http://other.test/base/x")], []), ("/s/y", [("Location", "/x")], []),
            ("/s/y", [], []),
        ] as [(String, [(String, String)], [String])]
    )
    func `an unsafe request invalidates what it names`(
        target: String,
        fields: [(String, String)],
        gone: [String]
    ) async throws {
        let origin = try ScriptedOrigin { request in
            guard request.method == "POST" else { return .answer(to: request, fields: [shared], "text") }
            let host = request.field("Host") ?? ""
            return .answer(201, fields: fields.map { ($0.0, $0.1.replacing("ORIGIN", with: host)) }, "made")
        }
        let text = """
            services:
              - name: s
                match: { prefix: /s }
                base_url: "\(origin.url)/base"
                endpoints: [{ name: other, path: /other, query: { a: b } }]
              - { name: outer, match: { prefix: /outer }, base_url: service:s }
            """
        try await HandlerHarness.run(text) { harness throws in
            let all = ["/s/x", "/s/other", "/outer/x", "/outer/other"]
            for prefix in ["/s", "/outer"] {
                for stored in all { _ = try harness.get(stored) }
                let path = target.dropFirst(2)
                #expect(try harness.exchange("POST", prefix + path, body: []).status == 201)
                for stored in all {
                    // It is the same URL of the origin, whichever service has stored it.
                    let isGone = gone.contains { stored.hasSuffix($0.dropFirst(2)) }
                    let status = try harness.get(stored).field("Cache-Status") ?? ""
                    #expect(status.contains("hit") == !isGone, "POST \(prefix + path): \(stored) \(status)")
                }
            }
        }
    }

    @Test func `Date goes by the clock of the daemon`() async throws {
        try await HandlerHarness.run("") { harness throws in
            func date() throws -> Int64 {
                let text = try harness.get("/x").field("Date") ?? ""
                return try #require(HTTPDate.parse(text, now: harness.clock.now()))
            }
            let before = try date()
            harness.clock.advance(seconds: 7200)
            let after = try date()
            #expect((before + 7200...harness.clock.now()).contains(after))
            harness.clock.reset()
            let again = try date()
            #expect((before...harness.clock.now()).contains(again))
        }
    }

    @Test func `an unsafe forward request invalidates Location, too`() async throws {
        let origin = try ScriptedOrigin { request in
            request.method == "PUT"
                ? .answer(201, fields: [("Location", "/made")], "")
                : .answer(to: request, fields: [shared], "text")
        }
        try await HandlerHarness.run("forward: { enabled: true, allow: [\"127.0.0.1\"] }") { harness throws in
            for path in ["/made", "/kept"] { _ = try harness.get(origin.url + path) }
            _ = try harness.exchange("PUT", origin.url + "/put", body: [])
            #expect(try harness.get(origin.url + "/made").field("Cache-Status")?.contains("uri-miss") == true)
            #expect(try harness.get(origin.url + "/kept").field("Cache-Status")?.contains("hit") == true)
        }
    }
}

extension HandlerHarness {
    /// A GET over a connection of its own.
    func get(
        _ target: String,
        host: String = "localhost",
        fields: [(String, String)] = [],
        body: [UInt8]? = nil
    ) throws -> RawResponse {
        try exchange("GET", target, host: host, fields: fields, body: body)
    }
}
