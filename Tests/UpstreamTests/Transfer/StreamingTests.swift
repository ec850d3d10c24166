// Bodies in both directions: back-pressure, bounded memory, and sources that wait, end early or fail.

import EventLoop
import HTTPWire
import TestSupport
import Testing
import Upstream

@Suite struct StreamingTests {
    @Test(arguments: [false, true], Carriage.allCases)
    func `64 MiB pass a slow consumer whole, in bounded pieces`(isChunked: Bool, carriage: Carriage) throws {
        let size = 64 << 20
        let origin = try ScriptedOrigin { _ in
            guard isChunked else { return .pattern(size) }
            let chunk = 1 << 20
            var steps = [OriginReply.head(200, fields: [("Transfer-Encoding", "chunked")])]
            for offset in stride(from: 0, to: size, by: chunk) {
                steps += [OriginReply.text("100000\r\n"), .pattern(chunk, from: offset), OriginReply.text("\r\n")]
            }
            return OriginReply(steps + [OriginReply.text("0\r\n\r\n")])
        }
        let rig = try Rig(by: carriage)
        defer { rig.close() }
        let pauses = Counter()
        let heard = rig.run(
            UpstreamRequest(url: origin.url),
            prepare: { recorder in
                recorder.onBytes = { [loop = rig.loop, inside = rig.inside] _, _ in
                    // Every piece is held until the loop's next turn.
                    pauses.add()
                    loop.submit { _ in inside.transfers[1]?.resume() }
                    return .pause
                }
            },
            seconds: 240
        )
        #expect(heard.isFinished)
        #expect(heard.bodyLength == size)
        #expect(heard.bodyIsPattern)
        #expect(heard.largestPiece <= 512 << 10)
        #expect(pauses.value >= size / (512 << 10))
    }

    @Test(arguments: Carriage.allCases)
    func `a consumer may pause while nothing comes, and no deadline runs`(carriage: Carriage) throws {
        let gate = Gate()
        defer { gate.open() }
        let origin = try ScriptedOrigin { _ in
            OriginReply([
                OriginReply.head(200, fields: [("Content-Length", "10000")]), .wait(gate), .pattern(10_000, from: 0),
                .cut,
            ])
        }
        let rig = try Rig(by: carriage)
        defer { rig.close() }
        let timeouts = Timeouts(connect: nil, firstByte: nil, idle: 100_000_000, total: nil)
        let (heard, number) = rig.watch(UpstreamRequest(url: origin.url, timeouts: timeouts)) { recorder in
            recorder.onHead = { $0.pause() }
        }
        #expect(heard.wait(120) { $0.head != nil })
        #expect(!heard.wait(0.2) { $0.isOver }, "twice as long as it may be silent")
        gate.open()
        #expect(origin.waitForEnds(allBut: 0))
        rig.turn()
        #expect(heard.read { $0.bodyLength } == 0)
        // All of it has come by then.
        rig.with(number) { $0.resume() }
        #expect(heard.wait(120) { $0.isFinished })
        #expect(heard.read { $0.bodyLength == 10_000 && $0.bodyIsPattern })
    }

    @Test(arguments: Carriage.allCases)
    func `a consumer that holds on stops the origin, not the loop`(carriage: Carriage) throws {
        let origin = try ScriptedOrigin { request in
            request.target == "/other" ? .answer(to: request, "x") : .pattern(256 << 20)
        }
        let rig = try Rig(by: carriage)
        defer { rig.close() }
        let (heard, number) = rig.watch(UpstreamRequest(url: "\(origin.url)/big")) { $0.onBytes = { _, _ in .pause } }
        #expect(heard.wait(120) { $0.bodyLength > 0 })
        let before = heard.read { $0.bodyLength }
        for _ in 0..<50 { #expect(rig.get("\(origin.url)/other").isFinished) }
        #expect(heard.read { $0.bodyLength } == before)
        #expect(before <= 512 << 10)
        rig.with(number) { $0.cancel() }
        #expect(heard.read { !$0.isOver })
    }

    @Test(arguments: Carriage.allCases)
    func `a connection held back at its first bytes is not taken for an idle one`(carriage: Carriage) throws {
        let origin = try ScriptedOrigin { _ in .pattern(1 << 20) }
        let rig = try Rig(by: carriage)
        defer { rig.close() }
        for round in 0..<50 {
            let (heard, number) = rig.watch(UpstreamRequest(url: "\(origin.url)/\(round)")) { recorder in
                recorder.onBytes = { _, heard in heard.bodyLength <= 512 << 10 ? .pause : .continue }
            }
            let isOver = blockUntil {
                for _ in 0..<1000 where !heard.wait(0.001, until: { $0.isOver }) { rig.with(number) { $0.resume() } }
                return heard.read { $0.isOver }
            }
            #expect(isOver)
            #expect(heard.read { $0.isFinished && $0.bodyLength == 1 << 20 && $0.bodyIsPattern })
        }
        #expect(origin.connections == 1)
    }

    @Test(arguments: [BodyFraming.length(32 << 20), .chunked], Carriage.allCases)
    func `a body is streamed up whole`(framing: BodyFraming, carriage: Carriage) throws {
        let origin = try ScriptedOrigin { .answer(to: $0, "\($0.bodyLength) \($0.bodyIsPattern)") }
        let rig = try Rig(by: carriage)
        defer { rig.close() }
        let request = UpstreamRequest(method: .put, url: origin.url, bodyFraming: framing)
        let heard = rig.run(request, source: { PatternSource(32 << 20) }, seconds: 240)
        #expect(heard.text == "\(32 << 20) true")
        let sent = origin.log[0]
        #expect(sent.field("Transfer-Encoding") == (framing == .chunked ? "chunked" : nil))
        #expect(sent.field("Content-Length") == (framing == .chunked ? nil : "\(32 << 20)"))
        #expect(sent.field("Expect") == nil)
    }

    @Test(arguments: Carriage.allCases)
    func `an origin that does not read holds the source back`(carriage: Carriage) throws {
        let gate = Gate()
        let origin = try ScriptedOrigin(
            bodyHook: { _ in gate.wait() },
            { .answer(to: $0, "\($0.bodyLength) \($0.bodyIsPattern)") }
        )
        let rig = try Rig(by: carriage)
        defer { rig.close() }
        let size = 64 << 20
        let reads = Counter()
        let request = UpstreamRequest(method: .put, url: origin.url, bodyFraming: .length(UInt64(size)))
        let (heard, _) = rig.start(request, source: { CountingSource(PatternSource(size), reads) })
        #expect(reads.wait(for: 1))
        // Until the sockets are full: the count then stands still.
        #expect(rig.comesToRest { reads.value })
        #expect(reads.value < size / 2)
        gate.open()
        #expect(heard.wait(240) { $0.isOver })
        #expect(heard.read { $0.text } == "\(size) true")
    }

    @Test(arguments: Carriage.allCases)
    func `a source may wait as often as it likes, and say in its own call that it need not`(carriage: Carriage) throws {
        let origin = try ScriptedOrigin { .answer(to: $0, String(decoding: $0.body, as: UTF8.self)) }
        let rig = try Rig(by: carriage)
        defer { rig.close() }
        let request = UpstreamRequest(method: .post, url: origin.url, bodyFraming: .chunked)
        let heard = rig.run(request) { [inside = rig.inside] in
            let source = ScriptedSource([.wait, .bytes([0x61]), .wait, .wait, .bytes([0x62, 0x63]), .wait, .end])
            source.onRead = { inside.transfers[1]?.bodyAvailable() }
            return source
        }
        #expect(heard.text == "abc")
    }

    @Test(arguments: [BodyFraming.length(9), .chunked], Carriage.allCases)
    func `a source that fails gives the request up`(framing: BodyFraming, carriage: Carriage) throws {
        let origin = try ScriptedOrigin { .answer(to: $0, "") }
        let rig = try Rig(by: carriage)
        defer { rig.close() }
        let request = UpstreamRequest(method: .post, url: origin.url, bodyFraming: framing)
        let heard = rig.run(request) { ScriptedSource([.bytes([1, 2, 3]), .failed]) }
        #expect(heard.error?.kind == .requestBody)
        #expect(origin.waitForRequests(1))
        #expect(origin.log.allSatisfy { !$0.isComplete })
        #expect(Descriptors.areGone(to: origin.port))
    }

    @Test(arguments: Carriage.allCases)
    func `a source shorter than its length gives the request up, a longer one is cut`(carriage: Carriage) throws {
        let origin = try ScriptedOrigin { .answer(to: $0, "\($0.bodyLength)") }
        let rig = try Rig(by: carriage)
        defer { rig.close() }
        let request = UpstreamRequest(method: .post, url: origin.url, bodyFraming: .length(9))
        #expect(rig.run(request) { PatternSource(5) }.error?.kind == .requestBody)
        #expect(origin.waitForRequests(1))
        #expect(origin.log.allSatisfy { !$0.isComplete })
        #expect(rig.run(request) { PatternSource(20) }.text == "9")
    }

    @Test func `Expect is passed on where the request has it, and the interim response comes back`() throws {
        let origin = try ScriptedOrigin { .answer(to: $0, "\($0.bodyLength)") }
        let rig = try Rig()
        defer { rig.close() }
        let fields = Fields([("Expect", "100-continue"), ("Content-Length", "4")])
        let request = UpstreamRequest(method: .post, url: origin.url, fields: fields, bodyFraming: .length(4))
        let heard = rig.run(request) { PatternSource(4) }
        #expect(heard.interims.map(\.status) == [100])
        #expect(heard.text == "4")
        #expect(origin.log[0].field("Expect") == "100-continue")
    }

    @Test("no Expect goes through libcurl, whatever the request has", arguments: [true, false])
    func expectByLibcurl(hasBody: Bool) throws {
        let origin = try ScriptedOrigin { .answer(to: $0, "\($0.bodyLength)") }
        let rig = try Rig(by: .libcurl)
        defer { rig.close() }
        var fields = Fields([("Expect", "100-continue"), ("X-Own", "1")])
        if hasBody { fields.set(.contentLength, "4") }
        let framing: BodyFraming = hasBody ? .length(4) : .none
        let request = UpstreamRequest(method: .post, url: origin.url, fields: fields, bodyFraming: framing)
        let heard = rig.run(request, source: { hasBody ? PatternSource(4) : nil })
        #expect(heard.text == (hasBody ? "4" : "0"))
        #expect(heard.interims.isEmpty)
        #expect(origin.log[0].field("Expect") == nil && origin.log[0].field("X-Own") == "1")
    }
}

/// Counts the bytes that are taken from another source; loop-bound.
final class CountingSource: RequestBodySource {
    private let inner: any RequestBodySource
    private let count: Counter

    init(_ inner: any RequestBodySource, _ count: Counter) {
        self.inner = inner
        self.count = count
    }

    func read(into buffer: UnsafeMutableRawBufferPointer) -> BodyRead {
        let read = inner.read(into: buffer)
        if case .bytes(let bytes) = read { count.add(bytes) }
        return read
    }
}
