// Origins that break a rule of HTTP/1.1, through the whole server: what clients get is always framed anew, and what was
// oddly framed is not stored.

import TestSupport
import Testing

@testable import ProxyServer

@Suite(.timeLimit(.minutes(5))) struct LeniencyTests {
    struct Row: Sendable, CustomTestStringConvertible {
        let response: String
        /// Why it is not stored; nil where it is.
        var detail: String?
        var testDescription: String { response.debugDescription }

        init(_ start: String, _ lines: String, _ body: String = "hello", detail: String? = nil) {
            response = start + lines + body
            self.detail = detail
        }
    }

    private static let ok = "HTTP/1.1 200 OK\r\nCache-Control: max-age=600\r\n"

    static let rows: [Row] = [
        Row(ok, "X-A : b\r\nContent-Length: 5\r\n\r\n"),
        Row(ok, "X-A:\r\n b\r\nContent-Length: 5\r\n\r\n"),
        Row(ok, "X-A: b\u{1}\r\nContent-Length: 5\r\n\r\n"),
        Row(ok, "X-A: b\r\nTransfer-Encoding: chunked\r\n\r\n", "5 \r\nhello\r\n0 \r\n\r\n"),
        Row(ok, "X-A: b\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\n", detail: "odd-framing"),
        Row(ok, "X-A: b\r\nContent-Length: 5, 5\r\n\r\n", detail: "odd-framing"),
        Row(ok, "X-A: b\nContent-Length: 5\n\n", detail: "odd-framing"),
        Row(
            "HTTP/1.0 200 OK\r\nCache-Control: max-age=600\r\n",
            "X-A: b\r\nTransfer-Encoding: chunked\r\n\r\n",
            "5\r\nhello\r\n0\r\n\r\n",
            detail: "odd-framing"
        ),
    ]

    private static func services(_ origin: ScriptedOrigin, _ keys: String = "") -> String {
        "services: [{ name: s, match: { prefix: /s }, base_url: \"\(origin.url)\"\(keys) }]\nforward: { allow: [127.0.0.1] }"
    }

    @Test(arguments: rows, [false, true])
    func `an answer is passed on with a clean head, and stored unless its framing was odd`(
        row: Row,
        isForwarded: Bool
    ) async throws {
        let origin = try ScriptedOrigin { _ in .raw(row.response) }
        try await HandlerHarness.run(Self.services(origin)) { harness throws in
            let client = try harness.client()
            let target = isForwarded ? "\(origin.url)/x" : "/s/x"
            for turn in 0..<3 {
                let got = try client.exchange(target)
                #expect(got.status == 200 && got.text == "hello" && got.field("X-A") == "b")
                let lengths = got.head.all("Content-Length").count + got.head.all("Transfer-Encoding").count
                #expect(lengths == 1, "\(got.head)")
                let status = got.field("Cache-Status") ?? ""
                if let detail = row.detail {
                    #expect(status.hasSuffix("detail=\(detail)"), "\(status)")
                } else {
                    #expect(status.contains(turn == 0 ? "; stored" : "; hit; "), "\(status)")
                }
            }
            #expect(origin.requests() == (row.detail == nil ? 1 : 3))
            #expect(origin.connections == origin.requests())
        }
    }

    @Test(arguments: rows)
    func `with lenient false it is refused, and by a reload taken again`(row: Row) async throws {
        let origin = try ScriptedOrigin { _ in .raw(row.response) }
        let strict = Self.services(origin, ", lenient: false").replacing(
            "127.0.0.1] }",
            with: "127.0.0.1], lenient: false }"
        )
        try await HandlerHarness.run(strict) { harness throws in
            for target in ["/s/x", "\(origin.url)/x"] {
                let got = try harness.get(target)
                // A chunk may be refused after the head has gone out.
                #expect(got.status == 502 || got.end == .cut, "\(got.head)")
                #expect(got.text != "hello")
            }
            try harness.reload(Self.services(origin))
            #expect(try harness.get("/s/x").text == "hello")
            #expect(try harness.get("\(origin.url)/x").text == "hello")
        }
    }

    @Test func `a status beyond 599 is passed on, and not stored`() async throws {
        let origin = try ScriptedOrigin { _ in
            .raw("HTTP/1.1 799 Own\r\nCache-Control: max-age=600\r\nContent-Length: 5\r\n\r\nhello")
        }
        try await HandlerHarness.run(Self.services(origin)) { harness throws in
            for _ in 0..<2 {
                let got = try harness.get("/s/x")
                #expect(got.status == 799 && got.text == "hello")
                #expect(got.field("Cache-Status")?.hasSuffix("detail=status-unknown") == true)
            }
            #expect(origin.requests() == 2)
        }
    }

    @Test(arguments: [
        "Content-Length : 5", "Content-Length:\r\n 5", "Transfer-Encoding : chunked", "X: a\u{0}b", "X: a\rb",
    ])
    func `what could be read in two ways is 502 all the same`(lines: String) async throws {
        let origin = try ScriptedOrigin { _ in .raw("HTTP/1.1 200 OK\r\n\(lines)\r\n\r\nhello") }
        try await HandlerHarness.run(Self.services(origin)) { harness throws in
            #expect(try harness.get("/s/x").status == 502)
        }
    }

    @Test(arguments: ["response_head: 4KiB, response_line: 4KiB", "response_line: 4KiB", "response_fields: 2"])
    func `the limits of response heads have keys of their own`(limits: String) async throws {
        let policy = String(repeating: "p", count: 9216)
        let origin = try ScriptedOrigin { request in
            .answer(
                to: request,
                fields: [("Cache-Control", "max-age=600"), ("Content-Security-Policy", policy)],
                "hello"
            )
        }
        try await HandlerHarness.run(Self.services(origin)) { harness throws in
            for _ in 0..<2 {
                let got = try harness.get("/s/x")
                #expect(got.text == "hello" && got.field("Content-Security-Policy") == policy)
            }
            #expect(origin.requests() == 1)
            try harness.reload(Self.services(origin) + "\nlimits: { \(limits) }")
            for target in ["/s/y", "\(origin.url)/y"] {
                let got = try harness.get(target)
                #expect(got.status == 502 && got.text.contains("raise limits.response_"), "\(got.text)")
            }
        }
    }

    @Test func `UTF-8 in a target is one resource with its percent-encoded form`() async throws {
        let origin = try ScriptedOrigin { request in
            .answer(to: request, fields: [("Cache-Control", "max-age=600")], "for \(request.target)")
        }
        let keys = ", endpoints: [{ name: e, path: /%C3%BC/e, cache: { mode: none } }]"
        try await HandlerHarness.run(Self.services(origin, keys)) { harness throws in
            let client = try harness.client()
            for target in ["/s/ü?q=€", "/s/%C3%BC?q=%E2%82%AC", "/s/ü?q=€"] {
                #expect(try client.exchange(target).text == "for /%C3%BC?q=%E2%82%AC")
            }
            #expect(origin.requests() == 1)
            // Endpoints see it as it is keyed.
            for target in ["/s/ü/e", "/s/%C3%BC/e"] {
                #expect(try client.exchange(target).field("Cache-Status")?.contains("fwd=bypass") == true)
            }
            #expect(origin.requests() == 3)
        }
    }
}
