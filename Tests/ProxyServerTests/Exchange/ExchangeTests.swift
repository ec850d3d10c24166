// What an exchange comes to for its client, whatever carries it: HTTP/1.1, or frames in which several exchanges share a
// connection.

import Configuration
import EventLoop
import TestSupport
import Testing

@testable import ProxyServer

@Suite(.timeLimit(.minutes(5))) struct ExchangeTests {
    /// Runs `body` with a server that takes both carriers on its listener.
    private static func run(
        settings: ServerSettings = ServerSettings(),
        log: LogConfiguration? = nil,
        _ carriage: Carriage,
        _ body: @escaping @Sendable (ServerHarness, CarriedClient) throws -> Void
    ) async throws {
        try await ServerHarness.run(settings: settings, log: log, connections: KnockingTransport.both) { harness in
            try body(harness, CarriedClient(port: harness.port, carriage))
        }
    }

    @Test(arguments: Carriage.allCases)
    func `one answer after the other, hot and waiting ones mixed`(carriage: Carriage) async throws {
        try await Self.run(carriage) { harness, client in
            for index in 0..<50 {
                let isHot = index % 3 == 0
                let answer = try client.ask(isHot ? "/hot/\(index)" : "/t\(index)")
                #expect(answer.status == 200 && answer.isWhole)
                #expect(answer.body == (isHot ? Pattern.bytes(0..<index) : Array("/t\(index)".utf8)))
                #expect(answer.field("Age") == (isHot ? "7" : nil))
            }
            #expect(harness.observations.seen.read { $0.targets.count } == 33)
        }
    }

    @Test(arguments: Carriage.allCases)
    func `requests that come together are all answered`(carriage: Carriage) async throws {
        try await Self.run(carriage) { _, client in
            let numbers = try (0..<60).map { try client.send($0 % 2 == 0 ? "/hot/\($0 * 40)" : "/fixed/\($0 * 1_000)") }
            for (index, number) in numbers.enumerated() {
                let count = index % 2 == 0 ? index * 40 : index * 1_000
                #expect(try client.answer(to: number).body == Pattern.bytes(0..<count))
            }
        }
    }

    @Test(arguments: Carriage.allCases, ["/fixed/1000", "/hot/1000", "/none", "/chunked/10", "/kept/1000"])
    func `HEAD gets the head alone`(carriage: Carriage, target: String) async throws {
        try await Self.run(carriage) { _, client in
            let answer = try client.ask(target, method: "HEAD")
            #expect(answer.body.isEmpty && answer.isWhole)
            if target.hasSuffix("1000") { #expect(answer.field("Content-Length") == "1000") }
            #expect(try client.ask("/next").text == "/next")
        }
    }

    @Test(arguments: Carriage.allCases, [("/empty", 204, nil), ("/none", 404, "0")] as [(String, Int, String?)])
    func `an answer without content says so`(carriage: Carriage, wanted: (String, Int, String?)) async throws {
        try await Self.run(carriage) { _, client in
            let answer = try client.ask(wanted.0)
            #expect(answer.status == wanted.1 && answer.field("Content-Length") == wanted.2)
            #expect(answer.body.isEmpty && answer.isWhole)
            #expect(try client.ask("/next").text == "/next")
        }
    }

    @Test(arguments: Carriage.allCases, [0, 1, 65_536, 300_000, 1_900_000])
    func `content arrives whole, of a length, of none, from memory and from files`(carriage: Carriage, count: Int)
        async throws
    {
        try await Self.run(carriage) { _, client in
            for path in ["fixed", "chunked"] {
                let answer = try client.ask("/\(path)/\(count)")
                #expect(answer.isWhole && answer.body.count == count)
                for start in stride(from: 0, to: count, by: 65_536) {
                    let (end, from) = (min(count, start + 65_536), start % (1 << 20))
                    #expect(Array(answer.body[start..<end]) == Pattern.bytes(from..<from + end - start))
                }
            }
            for path in ["file", "hot", "kept"] {
                let answer = try client.ask("/\(path)/\(count)")
                #expect(answer.isWhole && answer.body == Pattern.bytes(0..<count), "\(path)")
            }
        }
    }

    @Test(arguments: Carriage.allCases)
    func `interim responses and trailers are around the answer`(carriage: Carriage) async throws {
        try await Self.run(carriage) { _, client in
            let answer = try client.ask("/interim")
            #expect(answer.interim == [103] && answer.text == "final")
            let long = try client.ask("/trailers")
            #expect(long.text == "body" && long.trailers == ["Checksum: abc"])
        }
    }

    @Test(arguments: Carriage.allCases, ["/short", "/half", "/cut", "/reset"])
    func `an answer that ends short is never complete`(carriage: Carriage, target: String) async throws {
        try await Self.run(carriage) { _, client in
            let answer = try? client.ask(target)
            #expect(answer?.isWhole != true)
            // A reset may overtake what came before it.
            if target != "/reset" || carriage == .framed { #expect(answer?.status == 200) }
        }
    }

    @Test(arguments: Carriage.allCases)
    func `what is beyond the declared length is dropped, and who forgets a request answers 500`(carriage: Carriage)
        async throws
    {
        try await Self.run(carriage) { _, client in
            #expect(try client.ask("/excess").text == "four")
            let forgotten = try client.ask("/silent")
            #expect(forgotten.status == 500 && forgotten.field("Content-Type") == "application/problem+json")
            #expect(try client.ask("/problem").status == 502)
        }
    }

    @Test(arguments: Carriage.allCases, [0, 1, 65_536, 700_000])
    func `the content of requests arrives whole, and is held back until somebody pulls it`(
        carriage: Carriage,
        count: Int
    )
        async throws
    {
        try await Self.run(carriage) { harness, client throws in
            let sent = Pattern.bytes(0..<count)
            #expect(try client.ask("/count", method: "POST", body: sent).text == "\(count)")
            // Not more, since the client sends all before it reads.
            let less = Array(sent.prefix(60_000))
            #expect(try client.ask("/echo", method: "PUT", body: less).body == less)
            #expect(harness.observations.seen.read { $0.bodies } == [count])
        }
    }

    @Test(arguments: Carriage.allCases)
    func `a client is told to go on once, when its content is wanted`(carriage: Carriage) async throws {
        try await Self.run(carriage) { _, client in
            let fields = [("Expect", "100-continue"), ("Content-Length", "5")]
            if carriage == .http1 {
                try client.raw.request("POST", "/count", fields: fields)
                #expect(try client.raw.readOneInterim() == 100)
                try client.raw.send("hello")
                #expect(try client.raw.readResponse().text == "5")
            } else {
                let head = FramedHead("POST /count", [("Host", "h")] + fields)
                try client.send(Frame(kind: .post, number: 9, content: head.bytes))
                #expect(try client.nextFrame() == Frame(kind: .interim, number: 9, content: Array("100".utf8)))
                try client.send(Frame(kind: .content, number: 9, content: Array("hello".utf8)))
                try client.send(Frame(kind: .end, number: 9))
                let answer = try client.answer(to: 9)
                #expect(answer.text == "5" && answer.interim.isEmpty)
            }
        }
    }

    @Test(arguments: Carriage.allCases)
    func `a client that leaves ends whatever is under way for it`(carriage: Carriage) async throws {
        try await Self.run(carriage) { harness, client in
            _ = try client.send("/wait")
            #expect(harness.observations.seen.wait(120) { $0.waiting == 1 })
            client.leave()
            #expect(harness.observations.seen.wait(120) { $0.cancelled == 1 })
        }
    }

    @Test(arguments: Carriage.allCases)
    func `a stalled client bounds what is queued for it`(carriage: Carriage) async throws {
        try await ServerHarness.run(connections: KnockingTransport.both) { harness in
            let client = try CarriedClient(port: harness.port, carriage, receiveBuffer: 4096)
            let number = try client.send("/fixed/30000000")
            #expect(harness.observations.seen.wait(120) { $0.mostQueued > OutputQueue.highWatermark - 65_536 })
            #expect(harness.observations.seen.read { $0.mostQueued } <= OutputQueue.highWatermark + (72 << 10))
            #expect(harness.observations.seen.read { $0.delivered } < 30_000_000)
            let answer = try client.answer(to: number)
            #expect(answer.isWhole && answer.body.count == 30_000_000)
        }
    }

    @Test(arguments: Carriage.allCases)
    func `an answer is counted and logged once, with its protocol`(carriage: Carriage) async throws {
        let folder = try TemporaryFolder()
        var log = LogConfiguration()
        log.access = .file(path: folder.file("access.log"))
        log.format = .combined
        try await Self.run(log: log, carriage) { harness, client in
            for target in ["/hot/9", "/t", "/cut"] { _ = try? client.ask(target) }
            #expect(blockUntil { harness.counters.answers.count == 3 })
        }
        let lines = folder.text("access.log").split(separator: "\n")
        let name = carriage == .http1 ? "HTTP/1.1" : "HTTP/2.0"
        #expect(lines.count == 3)
        for (line, part) in zip(
            lines,
            ["\"GET /hot/9 \(name)\" 200 9 ", "\"GET /t \(name)\" 200 2 ", "\"GET /cut \(name)\" 200 7 "]
        ) {
            #expect(line.contains(part), "\(line)")
        }
    }

    // MARK: - Several at once

    @Test func `exchanges of one connection end in any order, and one that is given up ends alone`() async throws {
        try await Self.run(.framed) { harness, client in
            let waiting = try client.send("/wait")
            let gated = try client.send("/gate")
            #expect(harness.observations.seen.wait(120) { $0.waiting == 2 })
            #expect(try client.ask("/t").text == "/t")
            #expect(try client.ask("/hot/500").body == Pattern.bytes(0..<500))
            try client.send(Frame(kind: .reset, number: waiting))
            #expect(harness.observations.seen.wait(120) { $0.cancelled == 1 })
            harness.gate.open()
            #expect(try client.answer(to: gated).text == "opened")
        }
    }

    // MARK: - Before there is a connection

    @Test func `who does not shake hands is let go, and holds no slot`() async throws {
        var settings = ServerSettings()
        settings.headTimeout = 50_000_000
        settings.perClient = 1
        let turns = ["", "[frames", "[gopher]", "GET / HTTP/1.1\r\n\r\n"]
        try await ServerHarness.run(settings: settings, connections: KnockingTransport.both) { harness in
            for knock in turns {
                let client = try RawClient(port: harness.port)
                try client.send(knock)
                #expect(try client.isClosedByServer(), "\(knock)")
                client.close()
            }
            let client = try CarriedClient(port: harness.port, .framed)
            #expect(try client.ask("/t").text == "/t")
            #expect(harness.counters[.errorTimeout] == 2 && harness.counters[.errorWire] == 2)
            #expect(harness.counters.connections == 1)
        }
    }

    @Test(arguments: Carriage.allCases)
    func `what comes with the handshake is answered, and who is not admitted hears it after it`(carriage: Carriage)
        async throws
    {
        var settings = ServerSettings()
        settings.perClient = 1
        try await ServerHarness.run(settings: settings, connections: KnockingTransport.both) { harness in
            let client = try CarriedClient(port: harness.port, carriage, knocks: false)
            let knock = Array("[\(carriage.rawValue)]".utf8)
            try client.raw.send(knock)
            let number = try client.send("/hot/5000")
            #expect(try client.raw.readRaw(knock.count) == knock)
            #expect(try client.answer(to: number).body == Pattern.bytes(0..<5_000))
            let second = try CarriedClient(port: harness.port, carriage)
            let refusal = try second.answer(to: 0)
            #expect(refusal.status == 503)
            #expect(try client.ask("/t").text == "/t")
        }
    }
}
