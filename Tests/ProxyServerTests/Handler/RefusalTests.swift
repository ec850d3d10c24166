// What http-rules.md refuses of requests, over a socket: answered, closed, and nobody else hurt.

import TestSupport
import Testing

@testable import ProxyServer

@Suite struct RefusalTests {
    static let refusals: [(rule: String, bytes: String, status: Int)] = [
        ("1", "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
        ("2", "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\nabc", 400),
        ("2", "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3, 3\r\n\r\nabc", 400),
        ("3", "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: +5\r\n\r\nabcde", 400),
        ("3", "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 0x5\r\n\r\nabcde", 400),
        ("3", "POST / HTTP/1.1\r\nHost: h\r\nContent-Length:\r\n\r\n", 400),
        ("3", "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 9223372036854775808\r\n\r\n", 400),
        ("4", "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: xchunked\r\n\r\n", 501),
        ("4", "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked, gzip\r\n\r\n", 400),
        ("5", "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", 400),
        ("6", "GET / HTTP/1.0\r\nContent-Length: 3\r\n\r\nabc", 400),
        ("6", "POST / HTTP/1.0\r\n\r\n", 411),
        ("15", "GET / HTTP/1.1\r\nHost: h\r\nName : x\r\n\r\n", 400),
        ("15", "GET / HTTP/1.1\r\nHost: h\r\n: x\r\n\r\n", 400),
        ("17", "GET / HTTP/1.1\r\nHost: h\r\nA: b\r\n c\r\n\r\n", 400),
        ("17", "GET / HTTP/1.1\r\nHost: h\r\nA: b\u{0}c\r\n\r\n", 400),
        ("17", "GET / HTTP/1.1\nHost: h\n\n", 400),
        (
            "18",
            "GET / HTTP/1.1\r\nHost: h\r\n" + String(repeating: "A: b\r\n", count: 101) + "\r\n",
            431
        ),
        ("18", "GET / HTTP/1.1\r\nHost: h\r\nA: " + String(repeating: "x", count: 8193) + "\r\n\r\n", 431),
        (
            "18",
            "GET / HTTP/1.1\r\nHost: h\r\n"
                + String(repeating: "A: " + String(repeating: "x", count: 1000) + "\r\n", count: 70) + "\r\n",
            431
        ),
        ("18", "GET /" + String(repeating: "x", count: 8192) + " HTTP/1.1\r\nHost: h\r\n\r\n", 414),
        ("19", "GET / HTTP/1.1\r\n\r\n", 400),
        ("19", "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400),
        ("19", "GET / HTTP/1.1\r\nHost: a b\r\n\r\n", 400),
        ("20", "GET /a#b HTTP/1.1\r\nHost: h\r\n\r\n", 400),
        ("20", "GET * HTTP/1.1\r\nHost: h\r\n\r\n", 400),
        ("20", "GET a HTTP/1.1\r\nHost: h\r\n\r\n", 400),
        ("22", "GET / HTTP/2.0\r\nHost: h\r\n\r\n", 505),
        ("22", "GET / HTTP/0.9\r\nHost: h\r\n\r\n", 505),
        ("22", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505),
    ]

    @Test(arguments: refusals)
    func `bytes that a rule refuses are answered and the connection closed`(
        rule: String,
        bytes: String,
        status: Int
    ) async throws {
        try await ServerHarness.run { harness in
            let other = try harness.client()
            #expect(try other.exchange("/a").text == "/a")
            let client = try harness.client()
            // A request in front, and one behind that must never be seen.
            try client.send("GET /before HTTP/1.1\r\nHost: h\r\n\r\n")
            #expect(try client.readResponse().text == "/before")
            try client.send(bytes + "GET /behind HTTP/1.1\r\nHost: h\r\n\r\n")
            let response = try client.readResponse()
            #expect(response.status == status)
            #expect(response.field("Connection") == "close")
            #expect(response.field("Content-Type") == "application/problem+json")
            #expect(response.field("Proxy-Status")?.hasPrefix("drydock; error=http_request_error") == true)
            #expect(try client.isClosedByServer())
            #expect(try other.exchange("/b").text == "/b")
            #expect(harness.observations.seen.read { $0.targets } == ["/a", "/before", "/b"])
            #expect(harness.counters[.errorWire] == 1)
        }
    }

    @Test func `an unknown method is passed through`() async throws {
        try await ServerHarness.run { harness in
            let response = try harness.exchange("/pot", method: "BREW")
            #expect(response.text == "/pot")
        }
    }

    @Test func `dots in a target reach the handler as sent`() async throws {
        try await ServerHarness.run { harness in
            for target in ["/a/../../etc/passwd", "/%2e%2e/x", "//x", "/a%00b"] {
                let response = try harness.exchange(target)
                #expect(response.text == target)
            }
        }
    }
}
