// Request bodies: lengths and chunks, 100-continue, unread bodies, back-pressure, and what cuts them.

import HTTPWire
import TestSupport
import Testing

@testable import ProxyServer

/// A client whose sending half is used by another thread than its reading half.
private struct SendingHalf: @unchecked Sendable {
    // Protected by use: the two halves share nothing but the descriptor, which neither changes.
    let client: RawClient
}

@Suite struct RequestBodyTests {
    @Test(arguments: [0, 1, 65536, 1_000_000])
    func `bodies with a length and chunked bodies arrive whole`(count: Int) async throws {
        try await ServerHarness.run { harness in
            let client = try harness.client()
            #expect(try client.exchange("POST", "/count", body: Pattern.bytes(0..<count)).text == "\(count)")
            try client.request("POST", "/count", fields: [("Transfer-Encoding", "chunked")])
            var sent = 0
            while sent < count {
                let piece = min(10_000, count - sent)
                try client.send("\(String(piece, radix: 16))\r\n")
                try client.sendPattern(piece, from: sent)
                try client.send("\r\n")
                sent += piece
            }
            try client.send("0\r\nTrailer: x\r\n\r\n")
            #expect(try client.readResponse().text == "\(count)")
            #expect(try client.exchange("/next").text == "/next")
        }
    }

    @Test func `a chunked body is understood at every split`() async throws {
        try await ServerHarness.run { harness in
            let bytes = Array("3;a=b\r\nabc\r\n2\r\nde\r\n0\r\nT: x\r\n\r\nGET /next HTTP/1.1\r\nHost: h\r\n\r\n".utf8)
            for split in 1..<bytes.count {
                let client = try harness.client()
                try client.request("POST", "/echo", fields: [("Transfer-Encoding", "chunked")])
                try client.send(bytes, splitAt: [split], pause: 1)
                #expect(try client.readResponse().text == "abcde", "split at \(split)")
                #expect(try client.readResponse().text == "/next", "split at \(split)")
            }
        }
    }

    @Test func `100 Continue is sent once, when the body is wanted`() async throws {
        try await ServerHarness.run { harness in
            let client = try harness.client()
            try client.send("POST /count HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n")
            #expect(try client.readRaw(25) == Array("HTTP/1.1 100 Continue\r\n\r\n".utf8))
            try client.send("he")
            try client.send("llo")
            let response = try client.readResponse()
            #expect(response.interim.isEmpty)
            #expect(response.text == "5")
            #expect(try client.exchange("/next").text == "/next")
        }
    }

    @Test func `a client that expects 100 and gets an early answer is not asked for its body`() async throws {
        try await ServerHarness.run { harness in
            let client = try harness.client()
            try client.send("POST /early HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n")
            let response = try client.readResponse()
            #expect(response.interim.isEmpty)
            #expect(response.text == "/early")
            #expect(response.field("Connection") == "close")
            #expect(try client.isClosedByServer())
        }
    }

    @Test func `a short unread body is drained, and never parsed as a request`() async throws {
        try await ServerHarness.run { harness in
            let client = try harness.client()
            let body = Array("GET /smuggled HTTP/1.1\r\nHost: h\r\n\r\n".utf8)
            #expect(try client.exchange("POST", "/early", body: body).text == "/early")
            #expect(try client.exchange("/next").text == "/next")
            try client.send("POST /early HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n")
            #expect(try client.readResponse().text == "/early")
            try client.send(Array("\(String(body.count, radix: 16))\r\n".utf8) + body + Array("\r\n0\r\n\r\n".utf8))
            #expect(try client.exchange("/last").text == "/last")
            #expect(harness.observations.seen.read { $0.targets } == ["/early", "/next", "/early", "/last"])
        }
    }

    @Test func `a long unread body ends the connection, and the answer is not lost`() async throws {
        try await ServerHarness.run { harness in
            let client = try harness.client()
            try client.request("POST", "/early", fields: [("Content-Length", "10000000")])
            try client.sendPattern(1_000_000)
            let response = try client.readResponse()
            #expect(response.text == "/early")
            #expect(response.field("Connection") == "close")
            #expect(try client.isClosedByServer())

            let chunked = try harness.client()
            try chunked.request("POST", "/early", fields: [("Transfer-Encoding", "chunked")])
            #expect(try chunked.readResponse().text == "/early")
            try chunked.send("100000\r\n")
            try? chunked.sendPattern(1 << 20)
            #expect(try chunked.isClosedByServer())
        }
    }

    @Test func `a body that is not read holds its sender back`() async throws {
        try await ServerHarness.run { harness in
            let sender = Counter()
            Threads.start {
                // Far more than the read buffer and the kernel's buffers hold: ends when the connection does.
                let client = try? harness.client()
                try? client?.request("POST", "/gate", fields: [("Content-Length", "200000000")])
                try? client?.sendPattern(200_000_000)
                sender.add()
            }
            #expect(harness.observations.seen.wait(120) { $0.waiting == 1 })
            #expect(harness.comesToRest { harness.received })
            #expect(sender.value == 0 && harness.received < 1 << 20)
            harness.gate.open()
            #expect(sender.wait(for: 1))
        }
    }

    @Test(arguments: [
        "5\nhello\r\n", "g\r\n", "-5\r\nhello\r\n", "0x5\r\nhello\r\n", "5 \r\nhello\r\n", "5\r\nhelloo\r\n",
        "11111111111111111\r\n", "5;a\rb\r\nhello\r\n", "5\r\nhello\n0\r\n\r\n", "0\r\nbad name: x\r\n\r\n",
    ])
    func `a malformed chunk is refused and the connection closed`(chunk: String) async throws {
        try await ServerHarness.run { harness in
            let other = try harness.client()
            #expect(try other.exchange("/a").text == "/a")
            let client = try harness.client()
            try client.send("POST /count HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk)
            #expect(try client.readResponse().status == 400)
            #expect(try client.isClosedByServer())
            #expect(try other.exchange("/b").text == "/b")
        }
    }

    @Test func `a body cut by the client fails, and nobody is answered`() async throws {
        try await ServerHarness.run { harness in
            let client = try harness.client()
            try client.send("POST /count HTTP/1.1\r\nHost: h\r\nContent-Length: 50\r\n\r\nshort")
            client.finishSending()
            #expect(try client.isClosedByServer())
            #expect(harness.observations.seen.wait(120) { $0.bodyErrors == [.clientGone] })
        }
    }

    @Test func `an echo with a slow reader keeps both sides bounded`() async throws {
        try await ServerHarness.run { harness in
            let count = 8_000_000
            let client = try harness.client(receiveBuffer: 8192)
            try client.request("POST", "/echo", fields: [("Content-Length", "\(count)")])
            let sender = SendingHalf(client: client)
            Threads.start { try? sender.client.sendPattern(count) }
            _ = try client.readHead(method: "POST")
            var offset = 0
            var isPattern = true
            let end = try client.readBody { piece in
                isPattern = isPattern && Pattern.matches(piece, at: offset)
                offset += piece.count
            }
            #expect(end == .complete)
            #expect(offset == count)
            #expect(isPattern)
        }
    }
}
