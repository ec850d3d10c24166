// One fetch for many: 200 clients on a slow origin, an origin that breaks off, and one reader that stalls.

import Foundation
import TestSupport
import Testing

extension Scenarios {
    @Suite(.timeLimit(.minutes(2))) struct SharedFills {
        static let size = 8 << 20
        static let mebibyte = 1 << 20
        static let clients = 200

        /// What one client saw.
        struct Seen: Sendable {
            var status = 0
            var bytes = 0
            var isPattern = true
            var end: RawBodyEnd?
            var isCollapsed = false
        }

        /// Reads `head` bytes, tells `holding`, reads the rest.
        static func follow(_ client: RawClient, holding: Counter) throws -> Seen {
            var seen = Seen()
            let head = try client.readHead()
            seen.status = head.status
            seen.isCollapsed = head.field("Cache-Status")?.contains("collapsed") == true
            let check = { (piece: UnsafeRawBufferPointer) in
                seen.isPattern = seen.isPattern && Pattern.matches(piece, at: seen.bytes)
                seen.bytes += piece.count
            }
            seen.end = try client.readBody(upTo: mebibyte, check)
            holding.add()
            if seen.end == nil { seen.end = try client.readBody(check) }
            return seen
        }

        static func followAll(_ daemon: Daemon, _ target: String, whenAllHold: @escaping @Sendable () -> Void) throws
            -> [Seen]
        {
            let holding = Counter()
            Threads.start("conductor") {
                if holding.wait(for: clients) { whenAllHold() }
            }
            return try Threads.run(clients) { _ in
                let client = try daemon.client()
                try client.request("GET", target)
                return try follow(client, holding: holding)
            }
        }

        static func head(_ chunked: Bool) -> [OriginReply.Step] {
            let framing = chunked ? ("Transfer-Encoding", "chunked") : ("Content-Length", "\(size)")
            let head = OriginReply.head(200, fields: [framing, ("Cache-Control", "max-age=600")])
            return chunked ? [head, OriginReply.text(String(size, radix: 16) + "\r\n")] : [head]
        }

        @Test(arguments: [false, true])
        func twoHundredClientsShareOneFetch(chunked: Bool) throws {
            allowManyFiles()
            let gate = Gate()
            let end = chunked ? [OriginReply.text("\r\n0\r\n\r\n")] : []
            let origin = try ScriptedOrigin { _ in
                let middle: [OriginReply.Step] = [
                    .pattern(Self.mebibyte, from: 0), .wait(gate),
                    .pattern(Self.size - Self.mebibyte, from: Self.mebibyte),
                ]
                return OriginReply(Self.head(chunked) + middle + end)
            }
            let daemon = try Daemon(services(service("slow", origin.url)))
            let seen = try Self.followAll(daemon, "/slow/file") { gate.open() }
            #expect(seen.count { $0.status == 200 && $0.isPattern && $0.bytes == Self.size } == Self.clients)
            #expect(seen.count { $0.end == .complete } == Self.clients)
            #expect(seen.count { $0.isCollapsed } == Self.clients - 1)
            #expect(origin.requests() == 1)
            let later = try daemon.exchange("/slow/file")
            #expect(later.cacheStatus?.isHit == true)
            #expect(later.body.count == Self.size)
            #expect(origin.requests() == 1)
        }

        @Test(arguments: [false, true])
        func aFetchThatBreaksOffIsCompleteForNobodyAndStoredNowhere(chunked: Bool) throws {
            allowManyFiles()
            let gate = Gate()
            let origin = try ScriptedOrigin { request in
                if request.connection > 1 { return .answer("the second time") }
                let middle: [OriginReply.Step] = [
                    .pattern(Self.mebibyte, from: 0), .wait(gate), .pattern(4 * Self.mebibyte, from: Self.mebibyte),
                    .cut,
                ]
                return OriginReply(Self.head(chunked) + middle)
            }
            let daemon = try Daemon(services(service("slow", origin.url)))
            let seen = try Self.followAll(daemon, "/slow/file") { gate.open() }
            #expect(seen.count { $0.end == .cut } == Self.clients)
            #expect(seen.count { $0.isPattern && $0.bytes <= 5 * Self.mebibyte } == Self.clients)
            #expect(origin.requests() == 1)
            let stored = try daemon.command("list")
            #expect(stored.succeeded && !stored.output.contains("/file"), "\(stored.report)")
            let later = try daemon.exchange("/slow/file")
            #expect(later.text == "the second time")
            #expect(later.cacheStatus?.isHit == false)
            #expect(origin.requests() == 2)
        }

        @Test func aStalledReaderDoesNotSlowTheOthers() throws {
            let big = 48 << 20
            let gate = Gate()
            let origin = try ScriptedOrigin { _ in
                let fields = [("Content-Length", "\(big)"), ("Cache-Control", "max-age=600")]
                return OriginReply([
                    OriginReply.head(200, fields: fields), .pattern(65_536, from: 0), .wait(gate),
                    .pattern(big - 65_536, from: 65_536),
                ])
            }
            let daemon = try Daemon(services(service("slow", origin.url)))
            let stalled = try daemon.client(receiveBuffer: 16_384)
            try stalled.request("GET", "/slow/file")
            #expect(try stalled.readHead().status == 200)

            let holding = Counter()
            Threads.start("conductor") {
                if holding.wait(for: 8) { gate.open() }
            }
            let counts = try Threads.run(8) { _ -> Int in
                let client = try daemon.client()
                try client.request("GET", "/slow/file")
                guard try client.readHead().status == 200 else { return 0 }
                holding.add()
                var bytes = 0
                let end = try client.readBody { piece in
                    if Pattern.matches(piece, at: bytes) { bytes += piece.count }
                }
                return end == .complete ? bytes : 0
            }
            // All of them are done while the first has read nothing of its body.
            #expect(counts == Array(repeating: big, count: 8))
            var bytes = 0
            let end = try stalled.readBody { piece in
                if Pattern.matches(piece, at: bytes) { bytes += piece.count }
            }
            #expect(end == .complete)
            #expect(bytes == big)
            #expect(origin.requests() == 1)
        }

        @Test func whatTurnsOutUncacheableIsFetchedByEachForItself() throws {
            let gate = Gate()
            let arrived = Counter()
            let origin = try ScriptedOrigin { _ in
                arrived.add()
                gate.wait()
                return .answer("for one only \(UInt64.random(in: 0 ... .max))", fields: [("Cache-Control", "private")])
            }
            let daemon = try Daemon(services(service("mine", origin.url)))
            let clients = try daemon.begin("/mine/page", count: 10)
            #expect(arrived.wait(for: 1))
            gate.open()
            let texts = try clients.map { try $0.readResponse().text }
            #expect(Set(texts).count == 10, "an answer for one client went to another: \(texts)")
            #expect(origin.requests() == 10)
        }
    }
}
