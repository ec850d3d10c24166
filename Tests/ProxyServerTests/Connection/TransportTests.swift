// What a connection speaks over does not matter: the same requests get the same bytes.

import EventLoop
import ServiceCore
import TestSupport
import Testing

@testable import ProxyServer

@Suite(.timeLimit(.minutes(5))) struct TransportTests {
    /// In one piece: hits and others, from memory and from files, with bodies of every framing; the
    /// last ends the connection.
    private static let requests = [
        "GET /hot/10 HTTP/1.1\r\nHost: h\r\n\r\n", "GET /hot/20000 HTTP/1.1\r\nHost: h\r\n\r\n",
        "GET /kept/30000 HTTP/1.1\r\nHost: h\r\n\r\n", "GET /fixed/3000 HTTP/1.1\r\nHost: h\r\n\r\n",
        "GET /chunked/5000 HTTP/1.1\r\nHost: h\r\n\r\n", "HEAD /fixed/10 HTTP/1.1\r\nHost: h\r\n\r\n",
        "GET /file/3000 HTTP/1.1\r\nHost: h\r\n\r\n", "GET /empty HTTP/1.1\r\nHost: h\r\n\r\n",
        "POST /count HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello",
        "POST /count HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n2\r\n, \r\n0\r\n\r\n",
        "GET /interim HTTP/1.1\r\nHost: h\r\n\r\n", "GET /trailers HTTP/1.1\r\nHost: h\r\n\r\n",
        "GET /problem HTTP/1.1\r\nHost: h\r\n\r\n",
        "GET /hot/9 HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
    ]

    private static let ends = [
        "GET /hot/3 HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n", "GET /chunked/7 HTTP/1.0\r\n\r\n",
        "nonsense\r\n\r\n",
    ]

    /// All lines but Date, which is another one in the next second.
    private static func undated(_ bytes: [UInt8]) -> String {
        String(decoding: bytes, as: UTF8.self).replacing(/Date: [^\r]*\r\n/, with: "")
    }

    /// What a client of a transport gets that takes and gives at most `step` bytes a call.
    private static func received(
        _ sent: String,
        _ harness: ServerHarness,
        step: Int,
        stutters: Bool,
        record: Int? = nil,
        end: MemoryTransport.End = .afterServer
    ) throws -> MemoryTransport.Result {
        let result = Monitor(MemoryTransport.Result())
        let address = try #require(SocketAddress(numericHost: "127.0.0.1", port: 1))
        harness.server.contexts[0].submit { context, loop in
            context.connect(
                MemoryTransport(
                    Array(sent.utf8),
                    step: step,
                    stutters: stutters,
                    record: record,
                    end: end,
                    result
                ),
                from: address,
                on: loop
            )
        }
        #expect(result.wait(120) { $0.isClosed })
        return result.read { $0 }
    }

    @Test(arguments: ends, [(1, true), (1, false), (7, true), (4_000, false), (1 << 20, true), (1 << 20, false)])
    func `the same requests get the same bytes, whatever they come over`(end: String, way: (Int, Bool)) async throws {
        try await ServerHarness.run { harness in
            let sent = Self.requests.joined() + end
            let client = try harness.client()
            try client.send(sent)
            let expected = Self.undated(try client.readToEnd())
            client.close()
            let result = try Self.received(sent, harness, step: way.0, stutters: way.1)
            #expect(expected.contains("HTTP/1.1 502") && expected.contains("103 "))
            #expect(Self.undated(result.received) == expected)
            #expect(result.hasFinished && !result.isReset)
        }
    }

    @Test(arguments: [(1, true), (7, false), (300, false)], [16_384, 900, 50])
    func `bytes that wait in the transport are read, though no readiness tells of them`(
        way: (step: Int, stutters: Bool),
        record: Int
    ) async throws {
        try await ServerHarness.run { harness in
            let sent = Self.requests.joined() + Self.ends[0]
            let client = try harness.client()
            try client.send(sent)
            let expected = Self.undated(try client.readToEnd())
            client.close()
            let result = try Self.received(sent, harness, step: way.step, stutters: way.stutters, record: record)
            #expect(Self.undated(result.received) == expected)
            #expect(result.hasFinished && !result.isReset)
        }
    }

    @Test func `an end out of order ends whatever is under way`() async throws {
        try await ServerHarness.run { harness in
            // An orderly end of the client lets its answer go on, and one that comes in a body does not.
            for (request, end, isAnswered) in [
                ("GET /t HTTP/1.1\r\nHost: h\r\n\r\n", MemoryTransport.End.orderly, true),
                ("POST /count HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\nhalf", .truncated, false),
                ("GET /wait HTTP/1.1\r\nHost: h\r\n\r\n", .truncated, false),
                ("GET /t HTT", .truncated, false),
            ] {
                let result = try Self.received(request, harness, step: 1 << 20, stutters: false, end: end)
                #expect(result.received.isEmpty != isAnswered, "\(request)")
                #expect(result.hasFinished == false && !result.isReset, "\(request)")
            }
            #expect(harness.observations.seen.wait(120) { $0.cancelled == 1 && $0.bodyErrors == [.clientGone] })
        }
    }

    @Test(arguments: [1 << 20, 900], [MemoryTransport.End.orderly, .truncated])
    func `a tunnel passes on what waits in a transport, and how it ended`(record: Int, end: MemoryTransport.End)
        async throws
    {
        try await ServerHarness.run { harness in
            let (there, back) = (Pattern.bytes(0..<200_000), Pattern.bytes(5..<150_005))
            let address = try #require(SocketAddress(numericHost: "127.0.0.1", port: 1))
            let (near, far) = (Monitor(MemoryTransport.Result()), Monitor(MemoryTransport.Result()))
            harness.server.contexts[0].submit { context, loop in
                let client = DetachedTransport(
                    MemoryTransport(there, step: 700, stutters: true, record: record, near),
                    received: [],
                    unsent: [],
                    waitedFor: WaitedFor(kind: .tunnel, client: "c", since: 0),
                    ended: { _, _ in },
                    handedOver: {
                        let listener = ListenerInfo(role: .proxy, address: address, security: .plain)
                        return ConnectedClient(address, at: listener, isCounted: false)
                    }
                )
                let tunnel = Tunnel(
                    on: loop,
                    in: context,
                    client: client,
                    remote: MemoryTransport(back, step: 1_100, stutters: false, record: record, end: end, far),
                    timeout: nil
                )
                Task.immediate(executorPreference: loop.taskExecutor) {
                    _ = loop
                    _ = await tunnel.run()
                }
            }
            #expect(near.wait(120) { $0.isClosed } && far.wait(120) { $0.isClosed })
            #expect(near.read { $0.isReset } == (end == .truncated))
            #expect(back.starts(with: near.read { $0.received }))
            if end == .orderly {
                #expect(near.read { $0.received } == back && far.read { $0.received } == there)
                #expect(!far.read { $0.isReset })
            }
        }
    }

    @Test(arguments: [1, 1 << 20])
    func `an answer that is cut resets only where its end would look proper`(step: Int) async throws {
        try await ServerHarness.run { harness in
            // Chunked, with a length, and up to the end of the connection.
            for (target, version, resets) in [
                ("/cut", "1.1", false), ("/half", "1.1", false), ("/short", "1.1", false), ("/cut", "1.0", true),
                ("/reset", "1.1", true),
            ] {
                let sent = "GET \(target) HTTP/\(version)\r\nHost: h\r\n\r\n"
                let result = try Self.received(sent, harness, step: step, stutters: false)
                #expect(result.isReset == resets && !result.hasFinished, "\(target) \(version)")
                // Where it is only cut, what was queued goes out first.
                if !resets { #expect(Self.undated(result.received).hasPrefix("HTTP/1.1 200"), "\(target)") }
            }
        }
    }
}
