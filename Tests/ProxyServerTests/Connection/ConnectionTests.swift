// Requests and answers over one connection: order, reuse, heads, and what the bytes on the wire are.

import HTTPWire
import TestSupport
import Testing

@testable import ProxyServer

@Suite struct ConnectionTests {
    @Test func `an answer has its framing, a Date, and the connection serves the next request`() async throws {
        try await ServerHarness.run { harness in
            let client = try harness.client()
            for _ in 0..<3 {
                let response = try client.exchange("/hello")
                #expect(response.status == 200)
                #expect(response.text == "/hello")
                #expect(response.framing == .length(6))
                #expect(response.head.all("Date").count == 1)
                #expect(response.field("Connection") == nil)
            }
        }
    }

    @Test func `pipelined requests are answered in order, hot and waiting ones mixed`() async throws {
        try await ServerHarness.run { harness in
            let client = try harness.client()
            let targets = (0..<100).map { $0 % 3 == 0 ? "/hot/\($0)" : "/t\($0)" }
            try client.send(targets.map { "GET \($0) HTTP/1.1\r\nHost: localhost\r\n\r\n" }.joined())
            for (index, target) in targets.enumerated() {
                let response = try client.readResponse()
                #expect(response.status == 200)
                if index % 3 == 0 {
                    #expect(response.body == Pattern.bytes(0..<index))
                    #expect(response.field("Age") == "7")
                } else {
                    #expect(response.text == target)
                }
            }
        }
    }

    @Test(arguments: [(30, 100, 1), (64, 100, 2), (30, 16_000, 20)])
    func `answers to pipelined requests leave together`(count: Int, size: Int, most: Int) async throws {
        try await ServerHarness.run { harness in
            let client = try harness.client()
            try client.send(String(repeating: "GET /hot/\(size) HTTP/1.1\r\nHost: h\r\n\r\n", count: count))
            for _ in 0..<count { #expect(try client.readResponse().body == Pattern.bytes(0..<size)) }
            #expect((1...most).contains(client.segmentsReceived), "\(client.segmentsReceived)")
        }
    }

    @Test(arguments: [3_000, 4_096, 4_097])
    func `what the socket does not take of a small answer follows once the client reads`(size: Int) async throws {
        try await ServerHarness.run { harness in
            let client = try harness.client(receiveBuffer: 4096)
            // One by one, so that each is answered alone; more than a socket holds.
            for _ in 0..<1_500 { try client.send("GET /hot/\(size) HTTP/1.1\r\nHost: h\r\n\r\n") }
            for _ in 0..<1_500 {
                let response = try client.readResponse()
                #expect(response.body == Pattern.bytes(0..<size) && response.field("Age") == "7")
            }
        }
    }

    @Test(arguments: [1, 7, 100])
    func `what was put together comes before whatever is next`(count: Int) async throws {
        let hot = String(repeating: "GET /hot/10 HTTP/1.1\r\nHost: h\r\n\r\n", count: count)
        let ends = [
            ("GET /t HTTP/1.1\r\nHost: h\r\n\r\n", 200),
            ("GET /t HTTP/1.1\r\nConnection: close\r\nHost: h\r\n\r\n", 200),
            ("GET /hot/9 HTTP/1.1\r\nConnection: close\r\nHost: h\r\n\r\n", 200), ("GET /hot/9 HTTP/1.1\r\n\r\n", 400),
            ("GET /hot/200000 HTTP/1.1\r\nHost: h\r\n\r\n", 200), ("nonsense\r\n\r\n", 400), ("GET /hot/9 HTT", nil),
        ]
        try await ServerHarness.run { harness in
            for (end, status) in ends {
                let client = try harness.client(receiveBuffer: 4096)
                try client.send(hot + end)
                if status == nil { client.finishSending() }
                for _ in 0..<count { #expect(try client.readResponse().body == Pattern.bytes(0..<10), "\(end)") }
                if let status {
                    #expect(try client.readResponse().status == status, "\(end)")
                } else {
                    #expect(try client.isClosedByServer())
                }
            }
        }
    }

    @Test func `a pair of pipelined requests is understood at every split`() async throws {
        try await ServerHarness.run { harness in
            let body = "a=1&b=2"
            let pair = Array(
                """
                POST /count HTTP/1.1\r\nHost: localhost\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)\
                GET /hot/5 HTTP/1.1\r\nHost: localhost\r\n\r\n
                """.utf8
            )
            for split in 1..<pair.count {
                let client = try harness.client()
                try client.send(pair, splitAt: [split], pause: 1)
                #expect(try client.readResponse().text == "\(body.utf8.count)", "split at \(split)")
                #expect(try client.readResponse().body == Pattern.bytes(0..<5), "split at \(split)")
            }
        }
    }

    @Test(
        arguments: [
            ("GET /a HTTP/1.1\r\nHost: h\r\n", true, nil),
            ("GET /a HTTP/1.1\r\nHost: h\r\nConnection: close\r\n", false, "close"),
            ("GET /a HTTP/1.0\r\n", false, "close"),
            ("GET /a HTTP/1.0\r\nConnection: keep-alive\r\n", true, "keep-alive"),
            ("GET /hot/3 HTTP/1.1\r\nHost: h\r\n", true, nil),
            ("GET /hot/3 HTTP/1.1\r\nHost: h\r\nConnection: close\r\n", false, "close"),
            ("GET /hot/3 HTTP/1.0\r\n", false, "close"),
            ("GET /hot/3 HTTP/1.0\r\nConnection: keep-alive\r\n", true, "keep-alive"),
        ] as [(String, Bool, String?)]
    )
    func `a connection is kept as its version and Connection say`(
        head: String,
        isKept: Bool,
        field: String?
    ) async throws {
        try await ServerHarness.run { harness in
            let client = try harness.client()
            try client.send(head + "\r\n")
            let response = try client.readResponse()
            #expect(response.status == 200)
            #expect(response.field("Connection") == field)
            if isKept {
                #expect(try client.exchange("/again").text == "/again")
            } else {
                #expect(try client.isClosedByServer())
            }
        }
    }

    @Test func `a request after one that asked to close is not answered`() async throws {
        try await ServerHarness.run { harness in
            let client = try harness.client()
            try client.send("GET /a HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\nGET /b HTTP/1.1\r\nHost: h\r\n\r\n")
            #expect(try client.readResponse().text == "/a")
            #expect(try client.isClosedByServer())
            #expect(harness.observations.seen.read { $0.targets } == ["/a"])
        }
    }

    @Test(arguments: [0, 1, 65536, 300_000, 3_000_000])
    func `bodies arrive whole, with a length, chunked, and from a file`(count: Int) async throws {
        try await ServerHarness.run { harness in
            let client = try harness.client()
            for path in ["fixed", "chunked"] {
                let response = try client.exchange("/\(path)/\(count)")
                #expect(response.end == .complete)
                #expect(response.body.count == count)
                for start in stride(from: 0, to: count, by: 65536) {
                    let end = min(count, start + 65536)
                    let from = start % (1 << 20)
                    #expect(Array(response.body[start..<end]) == Pattern.bytes(from..<from + end - start))
                }
                #expect(response.framing == (path == "chunked" ? .chunked : count == 0 ? .none : .length(count)))
            }
            #expect(try client.exchange("/file/\(count)").body == Pattern.bytes(0..<count))
        }
    }

    @Test func `to an HTTP-1.0 client a body of unknown length ends with the connection`() async throws {
        try await ServerHarness.run { harness in
            let client = try harness.client()
            try client.send("GET /chunked/5000 HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
            let response = try client.readResponse()
            #expect(response.framing == .untilClose)
            #expect(response.field("Connection") == "close")
            #expect(response.body == Pattern.bytes(0..<5000))
        }
    }

    @Test func `interim responses go before the final one, and not to HTTP-1.0`() async throws {
        try await ServerHarness.run { harness in
            let client = try harness.client()
            let response = try client.exchange("/interim")
            #expect(response.interim.map(\.status) == [103])
            #expect(response.interim.first?.field("Link") == "</a>; rel=preload")
            #expect(response.text == "final")
            try client.send("GET /interim HTTP/1.0\r\n\r\n")
            #expect(try client.readResponse().interim.isEmpty)
        }
    }

    @Test func `an answer cut before HTTP-1.0 could see its end is reset`() async throws {
        try await ServerHarness.run { harness in
            let client = try harness.client()
            try client.send("GET /cut HTTP/1.0\r\n\r\n")
            let response = try? client.readResponse()
            #expect(response == nil || response?.end == .cut)
        }
    }

    @Test(arguments: ["hot", "kept"])
    func `a big answer on the hot path survives a slow reader`(source: String) async throws {
        try await ServerHarness.run { harness in
            let client = try harness.client(receiveBuffer: 4096)
            try client.send(String(repeating: "GET /\(source)/2000000 HTTP/1.1\r\nHost: h\r\n\r\n", count: 3))
            for _ in 0..<3 { #expect(try client.readResponse().body == Pattern.bytes(0..<2_000_000)) }
        }
    }

    @Test func `bodies from the heap and from files leave in order, with their own heads`() async throws {
        try await ServerHarness.run { harness in
            let client = try harness.client()
            let counts = [65_535, 65_536, 0, 1, 300_000, 65_537, 100_000]
            let targets = counts.flatMap { ["/kept/\($0)", "/hot/\($0)", "/t"] }
            try client.send(targets.map { "GET \($0) HTTP/1.1\r\nHost: h\r\n\r\n" }.joined())
            for count in counts {
                for _ in 0..<2 {
                    let response = try client.readResponse()
                    #expect(response.body == Pattern.bytes(0..<count) && response.field("Age") == "7", "\(count)")
                }
                #expect(try client.readResponse().text == "/t")
            }
        }
    }

    @Test func `a client that leaves in the middle of a file harms no other`() async throws {
        try await ServerHarness.run { harness in
            for _ in 0..<20 {
                let leaving = try harness.client(receiveBuffer: 4096)
                try leaving.send("GET /kept/2000000 HTTP/1.1\r\nHost: h\r\n\r\n")
                _ = try leaving.readHead()
            }
            #expect(try harness.client().exchange("/kept/2000000").body == Pattern.bytes(0..<2_000_000))
        }
    }

    @Test func `whole requests that came before the client's end are answered where they can be at once`() async throws
    {
        try await ServerHarness.run { harness in
            let client = try harness.client()
            let count = 500
            try client.send(String(repeating: "GET /hot/100 HTTP/1.1\r\nHost: h\r\n\r\n", count: count))
            client.finishSending()
            for _ in 0..<count { #expect(try client.readResponse().body.count == 100) }
            #expect(try client.isClosedByServer())
        }
    }

    @Test func `one busy connection does not keep another waiting for ever`() async throws {
        try await ServerHarness.run { harness in
            let requests = String(repeating: "GET /hot/10 HTTP/1.1\r\nHost: h\r\n\r\n", count: 2000)
            let stop = Gate()
            let served = Counter()
            for _ in 0..<2 {
                Threads.start {
                    guard let busy = try? harness.client() else { return }
                    while !stop.wait(seconds: 0) {
                        guard (try? busy.send(requests)) != nil else { return }
                        for _ in 0..<2000 { _ = try? busy.readResponse() }
                        served.add()
                    }
                }
            }
            #expect(served.wait(for: 2))
            let client = try harness.client()
            for _ in 0..<20 { #expect(try client.exchange("/a").text == "/a") }
            stop.open()
        }
    }

    @Test func `a client that leaves ends the task that answers it`() async throws {
        try await ServerHarness.run { harness in
            // A client that has only ended its side may read on: that ends what is to end with it.
            for (target, leave) in [
                ("/wait", { $0.reset() }), ("/wait/bound", { $0.close() }), ("/wait/bound", { $0.finishSending() }),
            ] as [(String, (RawClient) -> Void)] {
                let before = harness.observations.seen.read { $0.cancelled }
                let client = try harness.client()
                try client.request("GET", target)
                #expect(harness.observations.seen.wait(120) { $0.waiting == before + 1 })
                leave(client)
                #expect(harness.observations.seen.wait(120) { $0.cancelled == before + 1 })
            }
        }
    }
}
