// Long content that is passed on from socket to socket: the same bytes and ends as when it is read,
// for whoever comes next, too.

import DownloadCore
import EventLoop
import Foundation
import TestSupport
import Testing

@testable import ProxyServer

@Suite(.timeLimit(.minutes(5))) struct PassedContentTests {
    private static let length = 4 << 20

    private static func services(_ origin: ScriptedOrigin) -> String {
        """
        services: [{ name: none, match: { prefix: /none }, base_url: "\(origin.url)", cache: { mode: none } }]
        """
    }

    private static func head(_ length: Int) -> OriginReply.Step {
        OriginReply.head(200, fields: [("Content-Length", "\(length)"), ("Date", "Tue, 01 Jul 2025 10:00:00 GMT")])
    }

    /// What the path says: so many bytes in one piece or in two, with urgent data between them, or cut.
    private static func origin() throws -> ScriptedOrigin {
        try ScriptedOrigin { request in
            let parts = request.target.split(separator: "/").map(String.init)
            let count = parts.count > 1 ? Int(parts[1]) ?? 0 : 0
            switch parts.first {
            case "urgent":
                return OriginReply([
                    Self.head(2 * count), .pattern(count, from: 0), .urgent(33), .pattern(count, from: count),
                ])
            case "cut": return OriginReply([Self.head(2 * count), .pattern(count, from: 0), .cut])
            // In one write, so that it is there before the next request.
            case "excess":
                return OriginReply([Self.head(count), .bytes(Pattern.bytes(0..<count) + Array("more".utf8))])
            case "hang": return OriginReply([Self.head(2 * count), .pattern(count, from: 0), .hang])
            default: return OriginReply([Self.head(count), .pattern(count, from: 0)])
            }
        }
    }

    private static func run(_ body: @escaping @Sendable (HandlerHarness, ScriptedOrigin) throws -> Void) async throws {
        let origin = try origin()
        try await HandlerHarness.run(services(origin)) { harness throws in
            // The Host is known then.
            _ = try harness.get("/none/all/1")
            try body(harness, origin)
        }
    }

    @Test func `of whatever length it is`() async throws {
        try await Self.run { harness, origin in
            // Around the length from which it is moved, with the head and without it, and what fits no pipe.
            let lengths = [32_000, 32_500, 32_600, 32_700, 32_767, 32_768, 32_769, 40_000, 65_000, 65_536, 65_800]
            for length in lengths + [262_144, 300_001, Self.length] {
                let (before, direct) = (try harness.counters(), try harness.direct())
                for _ in 0..<2 {
                    let answer = try harness.get("/none/all/\(length)")
                    #expect(answer.status == 200 && answer.body == Pattern.bytes(0..<length), "\(length)")
                }
                let after = try harness.counters()
                #expect(try harness.direct() == direct + 2)
                #expect(length < 1 << 20 || after[.bytesSpliced] > before[.bytesSpliced], "\(length)")
            }
            #expect(origin.connections == 1)
        }
    }

    @Test func `to clients that say HTTP/1.0, or that it is their last request`() async throws {
        try await Self.run { harness, _ in
            for line in ["HTTP/1.0\r\nHost: localhost", "HTTP/1.1\r\nHost: localhost\r\nConnection: close"] {
                let client = try harness.client()
                try client.send("GET /none/all/\(Self.length) \(line)\r\n\r\n")
                let answer = try client.readResponse()
                #expect(answer.body == Pattern.bytes(0..<Self.length))
                #expect(try client.isClosedByServer())
            }
        }
    }

    @Test func `urgent data in it stops nothing, and is no part of it`() async throws {
        try await Self.run { harness, _ in
            for count in [20_000, 100_000, 1_000_000] {
                let answer = try harness.get("/none/urgent/\(count)")
                #expect(answer.body == Pattern.bytes(0..<2 * count), "\(count)")
            }
        }
    }

    @Test func `what comes behind it is no part of it, and the connection is not used again`() async throws {
        try await Self.run { harness, origin in
            for number in 1...3 {
                for (target, length) in [("/none/excess/100000", 100_000), ("/none/all/5", 5)] {
                    let answer = try harness.get(target)
                    #expect(answer.body == Pattern.bytes(0..<length))
                }
                #expect(origin.connections == number + 1)
            }
        }
    }

    @Test func `where it is cut, the client's answer is cut`() async throws {
        try await Self.run { harness, _ in
            for count in [20_000, 500_000, 2_000_000] {
                let client = try harness.client()
                try client.request("GET", "/none/cut/\(count)")
                _ = try client.readHead()
                var received = 0
                let end = try? client.readBody { piece in
                    #expect(Pattern.matches(piece, at: received))
                    received += piece.count
                }
                #expect(end != .complete)
                #expect(received == count)
            }
        }
    }

    /// What is in the pipe when the client's socket is full, or has gone, is nobody else's.
    @Test func `a client that leaves while it does not read, or that an operator ends, harms no other`() async throws {
        try await Self.run { harness, _ in
            for isCancelled in [false, true] {
                let before = try harness.counters()
                let client = try RawClient(port: harness.port, receiveBuffer: 4096)
                try client.request("GET", "/none/hang/\(Self.length)")
                _ = try client.readHead()
                try harness.comesToRest(beyond: before[.bytesOut] + 1 << 16) { $0[.bytesOut] }
                let moved = try harness.counters()[.bytesSpliced]
                #expect(moved > before[.bytesSpliced])
                if isCancelled {
                    let ended = try harness.ask { [core = harness.core] _ in core.housekeeping.cancel { _ in true } }
                    #expect(ended.fetches == 1)
                } else {
                    client.reset()
                }
                try harness.waitForConnections(0)
                let after = try harness.counters()
                #expect(after[.errorAborted] == before[.errorAborted] + 1)
                for length in [5, 100_000, Self.length] {
                    let answer = try harness.get("/none/all/\(length)")
                    #expect(answer.body == Pattern.bytes(0..<length))
                }
                client.close()
            }
        }
    }
}
