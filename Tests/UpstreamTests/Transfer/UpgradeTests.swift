// Requests for another protocol: the socket after a 101, an ordinary answer else, and never a
// connection of anybody else's.

import EventLoop
import HTTPWire
import TestSupport
import Testing

@testable import Upstream

@Suite(.timeLimit(.minutes(5))) struct UpgradeTests {
    private static let switching = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n"

    private static func upgrade(_ url: String, _ timeouts: Timeouts = Timeouts()) -> UpstreamRequest {
        let fields = Fields([("Connection", "Upgrade"), ("Upgrade", "echo")])
        return UpstreamRequest(url: url, fields: fields, timeouts: timeouts, isUpgrade: true)
    }

    /// Answers an upgrade with a 101 and what follows it, and sends back whatever comes then.
    private static func echo(_ before: String = "", behind: String = "") throws -> ScriptedOrigin {
        try ScriptedOrigin { request in
            guard request.field("Upgrade") == "echo" else { return .answer(to: request, "plain") }
            return OriginReply([.bytes(Array((before + switching + behind).utf8)), .converse { $0 }])
        }
    }

    @Test("after a 101 the connection is the delegate's, with what came behind the head")
    func switched() throws {
        let origin = try Self.echo("HTTP/1.1 103 Early\r\nLink: </a>\r\n\r\n", behind: "first")
        let rig = try Rig()
        defer { rig.close() }
        let end = SwitchedEnd()
        let heard = rig.run(Self.upgrade(origin.url), prepare: { recorder in recorder.onSwitch = { end.take($0) } })
        #expect(heard.calls == "is")
        #expect(heard.head?.status == 101)
        #expect(heard.behind == Array("first".utf8))
        // No longer a connection of the client's, and no transfer.
        #expect(rig.connectionCount == 0)
        #expect(rig.activeCount == 0)
        #expect(end.exchange("ping", on: rig) == "ping")
        end.close(on: rig)
    }

    @Test("an upgrade goes to the addresses that its terms name, and no name is asked for")
    func namedAddresses() throws {
        let origin = try Self.echo()
        let rig = try Rig()
        defer { rig.close() }
        let address = try #require(SocketAddress(numericHost: "127.0.0.1", port: UInt16(origin.port)))
        let terms = UpstreamTerms(url: "http://never-asked.invalid:\(origin.port)", addresses: [address])
        let fields = Fields([("Connection", "Upgrade"), ("Upgrade", "echo")])
        #expect(rig.run(UpstreamRequest(fields: fields, terms: terms, isUpgrade: true)).head?.status == 101)
        #expect(origin.connections == 1)
    }

    @Test("a socket that nobody takes is closed")
    func untaken() throws {
        let origin = try Self.echo()
        let rig = try Rig()
        defer { rig.close() }
        #expect(rig.run(Self.upgrade(origin.url)).behind == [])
        #expect(Descriptors.areGone(to: origin.port))
    }

    @Test("an upgrade takes no idle connection, and leaves none")
    func ownConnection() throws {
        let origin = try ScriptedOrigin { .answer(to: $0, "plain") }
        let rig = try Rig()
        defer { rig.close() }
        #expect(rig.get(origin.url).text == "plain")
        #expect(rig.connectionCount == 1)
        #expect(rig.run(Self.upgrade(origin.url)).text == "plain")
        #expect(rig.connectionCount == 1)
        #expect(origin.connections == 2)
        #expect(rig.get(origin.url).text == "plain")
        #expect(origin.connections == 2)
    }

    @Test("another answer than a 101 comes as any other does, held back where its consumer holds back")
    func anotherAnswer() throws {
        let origin = try ScriptedOrigin { _ in .pattern(1 << 20) }
        let rig = try Rig()
        defer { rig.close() }
        let (heard, number) = rig.watch(Self.upgrade(origin.url)) { $0.onBytes = { _, _ in .pause } }
        let isOver = blockUntil {
            for _ in 0..<1000 where !heard.wait(0.001, until: { $0.isOver }) { rig.with(number) { $0.resume() } }
            return heard.read { $0.isOver }
        }
        #expect(isOver)
        heard.read { heard in
            #expect(heard.isFinished)
            #expect(heard.bodyLength == 1 << 20 && heard.bodyIsPattern)
        }
    }

    @Test(
        "interim responses without end are refused, by their number and by their length",
        arguments: [(200, 10), (60, 8000)]
    )
    func interims(_ count: Int, _ length: Int) throws {
        let hint = "HTTP/1.1 103 Early\r\nX: \(String(repeating: "x", count: length))\r\n\r\n"
        let origin = try Self.echo(String(repeating: hint, count: count))
        let rig = try Rig()
        defer { rig.close() }
        let heard = rig.run(Self.upgrade(origin.url))
        #expect(heard.error?.kind == .protocolViolation(WireError(.tooManyInterims, side: .response)))
        #expect(Descriptors.areGone(to: origin.port))
    }

    @Test(
        "a 101 whose end is in doubt is refused, in the words of the doubt",
        arguments: [
            (WireReason.bareLineFeed, "HTTP/1.1 101 X\nUpgrade: echo\n\nfirst"),
            (.contentLengthRepeated, "HTTP/1.1 101 X\r\nUpgrade: echo\r\nContent-Length: 0, 0\r\n\r\nfirst"),
            (.transferEncodingInHTTP10, "HTTP/1.0 101 X\r\nTransfer-Encoding: chunked\r\n\r\nfirst"),
            (.bareLineFeed, "HTTP/1.1 103 Early\nLink: </a>\n\nHTTP/1.1 101 X\r\nUpgrade: echo\r\n\r\nfirst"),
            (
                .contentLengthRepeated,
                "HTTP/1.1 103 Early\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n"
                    + "HTTP/1.1 101 X\nUpgrade: echo\n\nfirst"
            ),
        ]
    )
    func oddSwitch(_ reason: WireReason, _ response: String) throws {
        let origin = try ScriptedOrigin { _ in .raw(response) }
        let rig = try Rig()
        defer { rig.close() }
        let heard = rig.run(Self.upgrade(origin.url))
        #expect(heard.error?.kind == .protocolViolation(WireError(reason, side: .response)))
        #expect(heard.error?.detail.contains(reason.rawValue) == true)
    }

    @Test("the deadline of the first byte is for the whole head, however it comes")
    func drip() throws {
        let drops = (0..<100).flatMap { _ in [OriginReply.Step.bytes([0x78]), .pause(milliseconds: 20)] }
        let start = OriginReply.Step.bytes(Array("HTTP/1.1 101 Switching Protocols\r\nX: ".utf8))
        let origin = try ScriptedOrigin { _ in OriginReply([start] + drops) }
        let rig = try Rig()
        defer { rig.close() }
        let heard = rig.run(Self.upgrade(origin.url, Timeouts(firstByte: 200_000_000)))
        #expect(heard.error?.kind == .timeout(.firstByte))
        #expect(Descriptors.areGone(to: origin.port))
    }

    @Test("libcurl carries no upgrade")
    func notByLibcurl() throws {
        let origin = try Self.echo()
        let rig = try Rig(by: .libcurl)
        defer { rig.close() }
        #expect(rig.run(Self.upgrade(origin.url)).error?.kind == .request)
        #expect(origin.requests() == 0)
    }
}
