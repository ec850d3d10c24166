// Large bodies in memory: from the file behind them, or copied, as the transport wants them.

import EventLoop
import TestSupport
import Testing

@testable import ProxyServer

@Suite(.timeLimit(.minutes(5))) struct CopiedBodyTests {
    private static let size = 300_000

    /// What a client gets that asks twice, once on the hot path and once on the waiting path.
    private static func received(
        _ harness: HandlerHarness,
        copiesMemory: Bool,
        stutters: Bool
    ) throws -> MemoryTransport.Result {
        let fields = ["X-None: 1", "Cache-Control: max-age=999999999", "Connection: close"]
        let sent = fields[..<2].map { "GET /s/x HTTP/1.1\r\nHost: localhost\r\n\($0)\r\n\r\n" }.joined()
        let last = "GET /s/x HTTP/1.1\r\nHost: localhost\r\nRange: bytes=5-\r\n\(fields[2])\r\n\r\n"
        let result = Monitor(MemoryTransport.Result())
        let address = try #require(SocketAddress(numericHost: "127.0.0.1", port: 1))
        harness.server.contexts[0].submit { context, loop in
            let step = stutters ? 70_000 : 1 << 20
            context.connect(
                MemoryTransport(
                    Array((sent + last).utf8),
                    step: step,
                    stutters: stutters,
                    copiesMemory: copiesMemory,
                    result
                ),
                from: address,
                on: loop
            )
        }
        #expect(result.wait(120) { $0.isClosed })
        return result.read { $0 }
    }

    private static func body(_ bytes: [UInt8]) -> [String] {
        String(decoding: bytes, as: UTF8.self).split(separator: "HTTP/1.1 2").map { answer in
            "\(answer.prefix(2)) \(answer.split(separator: "\r\n\r\n", maxSplits: 1).last ?? "")"
        }
    }

    @Test func `the same bytes come copied and from files`() async throws {
        let origin = try ScriptedOrigin { request in
            let body = (0..<Self.size / 10).map { ".\(1_000_000_00 + $0)".prefix(10) }.joined()
            return .answer(to: request, fields: [("Cache-Control", "max-age=600"), ("ETag", "\"a\"")], body)
        }
        let text = "services: [{ name: s, match: { prefix: /s }, base_url: \"\(origin.url)\" }]"
        try await HandlerHarness.run(text) { harness throws in
            _ = try harness.exchange("GET", "/s/x")
            try harness.settle()
            for stutters in [false, true] {
                let copied = try Self.received(harness, copiesMemory: true, stutters: stutters)
                let sent = try Self.received(harness, copiesMemory: false, stutters: stutters)
                let bodies = Self.body(copied.received)
                #expect(bodies.map(\.utf8.count) == [Self.size + 3, Self.size + 3, Self.size - 2])
                #expect(bodies == Self.body(sent.received))
                #expect(copied.sentFromFiles == 0)
                // A short rest is copied in any case.
                #expect(sent.sentFromFiles > 2 * Self.size)
            }
            #expect(origin.requests() == 1)
        }
    }
}
