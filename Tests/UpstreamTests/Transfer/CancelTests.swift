// The ends that nobody waits for: cancellation at every point, shutdown, and what is left of the descriptors.

import EventLoop
import HTTPWire
import TestSupport
import Testing

@testable import Upstream

@Suite struct CancelTests {
    enum Point: CaseIterable, Sendable { case start, head, bytes, held, end, reading, waiting }

    @Test(arguments: Point.allCases, Carriage.allCases)
    func `a storm of cancelled transfers leaves nothing behind`(point: Point, carriage: Carriage) throws {
        let origin = try ScriptedOrigin { request in
            request.target == "/good" ? .answer(to: request, "good") : .pattern(1 << 20)
        }
        let rig = try Rig(by: carriage)
        let ended = Counter()
        let cancelled = Counter()
        for number in 1...100 {
            var request = UpstreamRequest(url: "\(origin.url)/\(number)")
            if point == .reading || point == .waiting {
                request.method = .post
                request.bodyFraming = .chunked
            }
            let source: @Sendable () -> (any RequestBodySource)? = { [inside = rig.inside] in
                guard point == .reading || point == .waiting else { return nil }
                let source = ScriptedSource([.bytes([1]), .wait])
                source.onRead = {
                    if point == .reading { inside.transfers[number]?.cancel() }
                    cancelled.add()
                }
                return source
            }
            _ = rig.start(request, source: source) { [loop = rig.loop, inside = rig.inside] recorder in
                recorder.onHead = { transfer in if point == .head { transfer.cancel() } }
                recorder.onBytes = { transfer, _ in
                    if point == .bytes { transfer.cancel() }
                    if point == .held { loop.submit { _ in inside.transfers[number]?.cancel() } }
                    if point == .head { cancelled.add() }
                    return .pause
                }
                recorder.onEnd = { transfer in
                    transfer.cancel()
                    ended.add()
                }
            }
            if point == .start { rig.with(number) { $0.cancel() } }
            if point == .end { rig.with(number) { $0.resume() } }
            if point == .waiting {
                #expect(cancelled.wait(for: number))
                rig.with(number) { $0.cancel() }
            }
        }
        if point == .end {
            let areOver = blockUntil {
                for _ in 0..<100 where ended.value < 100 {
                    for number in 1...100 { rig.with(number) { $0.resume() } }
                }
                return ended.value == 100
            }
            #expect(areOver)
        } else {
            #expect(blockUntil { rig.activeCount == 0 })
            #expect(ended.value == 0)
        }
        if point == .head { #expect(cancelled.value == 0) }
        #expect(rig.activeCount == 0)
        #expect(rig.get("\(origin.url)/good").text == "good")
        rig.close()
        #expect(Descriptors.areGone(to: origin.port))
    }

    @Test(arguments: Carriage.allCases)
    func `nothing comes after cancel, which may come again`(carriage: Carriage) throws {
        let origin = try ScriptedOrigin { _ in .pattern(4 << 20) }
        let rig = try Rig(by: carriage)
        defer { rig.close() }
        let (heard, number) = rig.watch(UpstreamRequest(url: origin.url)) { recorder in
            recorder.onBytes = { transfer, _ in
                transfer.cancel()
                transfer.resume()
                transfer.bodyAvailable()
                transfer.cancel()
                return .continue
            }
        }
        #expect(heard.wait(120) { $0.bodyLength > 0 })
        rig.with(number) {
            $0.resume()
            $0.bodyAvailable()
            $0.cancel()
        }
        #expect(heard.read { $0.calls } == "hb")
        #expect(rig.activeCount == 0)
    }

    @Test(arguments: Carriage.allCases)
    func `shutdown fails what is under way, and what comes later, and frees every descriptor`(carriage: Carriage) throws
    {
        let origin = try ScriptedOrigin { request in
            request.target == "/idle" ? .answer(to: request, "x") : .pattern(64 << 20)
        }
        let gate = Gate()
        let rig = try Rig(by: carriage) { _, _ in
            gate.wait()
            return .notFound
        }
        for _ in 0..<3 { #expect(rig.get("\(origin.url)/idle").isFinished) }
        let started = (0..<10).map { _ in
            rig.watch(UpstreamRequest(url: "\(origin.url)/big")) { $0.onBytes = { _, _ in .pause } }.heard
        }
        let resolving = rig.start(UpstreamRequest(url: "http://never.test/")).heard
        for heard in started { #expect(heard.wait(120) { $0.bodyLength > 0 }) }
        #expect(rig.connectionCount >= 10)
        rig.sync { [inside = rig.inside] _ in inside.client?.shutdown() }
        for heard in started + [resolving] { #expect(heard.read { $0.error?.kind } == .cancelled) }
        #expect(Descriptors.areGone(to: origin.port))
        #expect(rig.get("\(origin.url)/idle").error?.kind == .cancelled)
        gate.open()
        rig.close()
    }

    @Test func `where libcurl could not begin, plain http goes on, https says so, and the shutdown ends all of it`()
        throws
    {
        let origin = try ScriptedOrigin { request in
            request.target == "/held" ? .pattern(64 << 20) : .answer(to: request, "x")
        }
        let rig = try Rig(carriers: .wireAlone)
        defer { rig.close() }
        #expect(rig.get("\(origin.url)/idle").text == "x")
        let refused = rig.get("https://127.0.0.1:\(origin.port)/")
        #expect(refused.error?.kind == .internal)
        #expect(refused.error?.detail.contains("libcurl could not begin") == true)
        let (held, _) = rig.watch(UpstreamRequest(url: "\(origin.url)/held")) { $0.onBytes = { _, _ in .pause } }
        #expect(held.wait(120) { $0.bodyLength > 0 })
        rig.sync { [inside = rig.inside] _ in inside.client?.shutdown() }
        #expect(held.read { $0.error?.kind } == .cancelled)
        #expect(Descriptors.areGone(to: origin.port))
        #expect(rig.get("\(origin.url)/idle").error?.kind == .cancelled)
        #expect(rig.activeCount == 0)
    }

    @Test(arguments: ["head", "bytes", "end"], Carriage.allCases)
    func `shutdown from a delegate ends everything in order`(point: String, carriage: Carriage) throws {
        let origin = try ScriptedOrigin { .answer(to: $0, "hello") }
        let rig = try Rig(by: carriage)
        defer { rig.close() }
        let others = (0..<5).map { _ in rig.start(UpstreamRequest(url: origin.url)).heard }
        let (heard, _) = rig.watch(UpstreamRequest(url: origin.url)) { [inside = rig.inside] recorder in
            recorder.onHead = { _ in if point == "head" { inside.client?.shutdown() } }
            recorder.onBytes = { _, _ in
                if point == "bytes" { inside.client?.shutdown() }
                return .continue
            }
            recorder.onEnd = { _ in if point == "end" { inside.client?.shutdown() } }
        }
        #expect(heard.wait(120) { $0.isOver })
        for other in others { #expect(other.wait(120) { $0.isOver }) }
        #expect(heard.read { $0.isFinished } == (point == "end"))
        #expect(Descriptors.areGone(to: origin.port))
    }

    @Test(arguments: Carriage.allCases)
    func `a delegate starts the next transfer from the end of the last, a thousand times`(carriage: Carriage) throws {
        let origin = try ScriptedOrigin { .answer(to: $0, "x") }
        let rig = try Rig(by: carriage)
        defer { rig.close() }
        let done = Counter()
        rig.sync { [inside = rig.inside] _ in
            Chain(inside, origin.url, done).next()
        }
        #expect(done.wait(for: 1000))
        #expect(origin.connections == 1)
    }

    @Test(arguments: Carriage.allCases)
    func `an origin that is not there is refused, and says what to do`(carriage: Carriage) throws {
        let port = try freePort()
        let rig = try Rig(by: carriage)
        defer { rig.close() }
        let heard = rig.get("http://127.0.0.1:\(port)/")
        #expect(heard.error?.kind == .connectionRefused)
        #expect(heard.error?.status == 502)
        #expect(heard.error?.proxyStatus == "connection_refused")
        #expect(heard.error?.isUnsent == true)
        #expect(heard.error?.detail.contains("127.0.0.1:\(port)") == true)
        #expect(heard.error?.detail.contains("check that the origin runs") == true)
    }
}

/// Starts itself again at each end; loop-bound.
private final class Chain: TransferDelegate {
    private let inside: OnLoop
    private let url: String
    private let done: Counter

    init(_ inside: OnLoop, _ url: String, _ done: Counter) {
        self.inside = inside
        self.url = url
        self.done = done
    }

    func next() { _ = inside.client?.start(UpstreamRequest(url: url), body: nil, delegate: self) }

    func transfer(_ transfer: Transfer, received interim: ResponseHead) {}
    func transfer(_ transfer: Transfer, received head: ResponseHead, framing: BodyFraming) {}
    func transfer(_ transfer: Transfer, received bytes: UnsafeRawBufferPointer) -> TransferFlow { .continue }
    func transfer(_ transfer: Transfer, failed error: UpstreamError) {}
    func transferFinished(_ transfer: Transfer, trailers: Fields) {
        done.add()
        if done.value < 1000 { next() }
    }
}
