// Deadlines: which passes when, and that none runs while somebody else holds the transfer up.

import EventLoop
import HTTPWire
import TestSupport
import Testing

@testable import Upstream

@Suite struct DeadlineTests {
    private static let all = Timeouts(connect: 10, firstByte: 20, idle: 30, total: 1000)

    @Test func `each phase has its own deadline, counted from its start`() {
        var deadlines = Deadlines(Self.all, now: 100)
        #expect(deadlines.next?.at == 110)
        #expect(deadlines.expired(now: 109) == nil)
        #expect(deadlines.expired(now: 110) == .resolve)
        deadlines.enter(.connecting, now: 105)
        #expect(deadlines.expired(now: 110) == .connect)
        deadlines.enter(.sending, now: 108)
        #expect(deadlines.expired(now: 137) == nil)
        #expect(deadlines.expired(now: 138) == .idle)
        deadlines.progress(now: 130)
        #expect(deadlines.expired(now: 159) == nil)
        deadlines.enter(.waiting, now: 150)
        #expect(deadlines.expired(now: 169) == nil)
        #expect(deadlines.expired(now: 170) == .firstByte)
        deadlines.enter(.receiving, now: 160)
        deadlines.progress(now: 180)
        #expect(deadlines.expired(now: 209) == nil)
        #expect(deadlines.expired(now: 210) == .idle)
    }

    @Test func `suspended time does not count, for any of them`() {
        var deadlines = Deadlines(Timeouts(connect: nil, firstByte: nil, idle: 30, total: 100), now: 0)
        deadlines.enter(.receiving, now: 10)
        deadlines.setSuspended(true, now: 20)
        #expect(deadlines.next == nil)
        #expect(deadlines.expired(now: 1_000_000) == nil)
        deadlines.setSuspended(true, now: 500)
        deadlines.setSuspended(false, now: 1020)
        #expect(deadlines.next?.at == 1040)
        deadlines.progress(now: 1030)
        #expect(deadlines.expired(now: 1059) == nil)
        deadlines.progress(now: 1099)
        #expect(deadlines.expired(now: 1099) == nil)
        #expect(deadlines.expired(now: 1100) == .total)
    }

    @Test func `progress during a suspension is not counted twice`() {
        var deadlines = Deadlines(Timeouts(connect: nil, firstByte: nil, idle: 30, total: nil), now: 0)
        deadlines.enter(.receiving, now: 0)
        deadlines.setSuspended(true, now: 10)
        deadlines.progress(now: 90)
        deadlines.setSuspended(false, now: 100)
        #expect(deadlines.next?.at == 130)
    }

    @Test func `without a limit there is no deadline, and the largest does not overflow`() {
        var deadlines = Deadlines(.none, now: 5)
        for phase in [Deadlines.Phase.resolving, .connecting, .sending, .waiting, .receiving] {
            deadlines.enter(phase, now: 6)
            #expect(deadlines.next == nil)
        }
        let far = Deadlines(Timeouts(connect: .max, total: .max), now: 5)
        #expect(far.expired(now: .max - 1) == nil)
    }

    @Test(arguments: Carriage.allCases)
    func `a name that is not resolved in time`(carriage: Carriage) throws {
        let gate = Gate()
        let rig = try Rig(by: carriage) { _, _ in
            gate.wait()
            return .notFound
        }
        defer {
            gate.open()
            rig.close()
        }
        let heard = rig.run(UpstreamRequest(url: "http://slow.test/", timeouts: Timeouts(connect: 30_000_000)))
        #expect(heard.error?.kind == .timeout(.resolve))
        #expect(heard.error?.proxyStatus == "dns_timeout")
        #expect(heard.error?.status == 504)
    }

    @Test func `a connection whose handshake does not end in time`() throws {
        // It speaks no TLS: it waits for a request.
        let origin = try ScriptedOrigin { .answer(to: $0, "") }
        let rig = try Rig()
        defer { rig.close() }
        let url = "https://127.0.0.1:\(origin.port)/"
        let heard = rig.run(UpstreamRequest(url: url, timeouts: Timeouts(connect: 50_000_000)))
        #expect(heard.error?.kind == .timeout(.connect))
        #expect(heard.error?.proxyStatus == "connection_timeout")
        #expect(heard.error?.status == 504)
    }

    @Test(
        arguments: overBoth([
            (TimeoutPhase.firstByte, Timeouts(firstByte: 50_000_000, idle: nil), ""),
            (.firstByte, Timeouts(firstByte: 50_000_000, idle: nil), "HTTP/1.1 200 OK\r\nX-A: b\r\n"),
            (.firstByte, Timeouts(firstByte: 50_000_000, idle: nil), "HTTP/1.1 102 Processing\r\n\r\n"),
            (.idle, Timeouts(firstByte: nil, idle: 50_000_000), "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello"),
            (
                .total, Timeouts(firstByte: nil, idle: nil, total: 50_000_000),
                "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n"
            ),
            (.total, Timeouts(firstByte: nil, idle: nil, total: 50_000_000), ""),
        ])
    )
    func `an origin that falls silent`(phase: TimeoutPhase, timeouts: Timeouts, response: String, carriage: Carriage)
        throws
    {
        let origin = try ScriptedOrigin { _ in OriginReply([OriginReply.text(response), .hang]) }
        let rig = try Rig(by: carriage)
        defer { rig.close() }
        let start = Monotonic.now()
        let heard = rig.run(UpstreamRequest(url: origin.url, timeouts: timeouts))
        #expect(Monotonic.now() - start >= 50_000_000)
        #expect(heard.error?.kind == .timeout(phase))
        #expect(heard.error?.status == 504)
        #expect(heard.error?.detail.contains(phase.rawValue) == true)
        #expect(Descriptors.areGone(to: origin.port))
    }

    @Test(arguments: Carriage.allCases)
    func `no deadline runs while the consumer holds the transfer back`(carriage: Carriage) throws {
        // So much lies in the sockets while the consumer rests: nothing else is waited for when it goes on.
        let size = 1 << 20
        let origin = try ScriptedOrigin { _ in .pattern(size) }
        let rig = try Rig(by: carriage)
        defer { rig.close() }
        let timeouts = Timeouts(firstByte: 120_000_000_000, idle: 1_000_000_000, total: 120_000_000_000)
        let (heard, number) = rig.watch(UpstreamRequest(url: origin.url, timeouts: timeouts)) { recorder in
            recorder.onBytes = { _, heard in heard.bodyLength < size / 4 ? .pause : .continue }
        }
        #expect(heard.wait(120) { $0.bodyLength > 0 })
        rig.rest(nanoseconds: 1_200_000_000)
        #expect(heard.read { $0.error } == nil)
        for _ in 0..<64 { rig.with(number) { $0.resume() } }
        #expect(heard.wait(120) { $0.isOver })
        #expect(heard.read { $0.isFinished && $0.bodyLength == size && $0.bodyIsPattern })
    }

    @Test(arguments: Carriage.allCases)
    func `no deadline runs while the request's body waits for the client`(carriage: Carriage) throws {
        let origin = try ScriptedOrigin { .answer(to: $0, "\($0.bodyLength)") }
        let rig = try Rig(by: carriage)
        defer { rig.close() }
        let timeouts = Timeouts(firstByte: 2_000_000_000, idle: 2_000_000_000, total: 120_000_000_000)
        let request = UpstreamRequest(method: .post, url: origin.url, bodyFraming: .chunked, timeouts: timeouts)
        let waits = Counter()
        let (heard, number) = rig.start(request) {
            let source = ScriptedSource([.bytes([1, 2]), .wait, .bytes([3]), .end])
            source.onRead = { waits.add() }
            return source
        }
        #expect(waits.wait(for: 2))
        rig.rest(nanoseconds: 2_400_000_000)
        #expect(heard.read { $0.error } == nil)
        rig.with(number) { $0.bodyAvailable() }
        #expect(heard.wait(120) { $0.isOver })
        #expect(heard.read { $0.text } == "3")
    }
}

extension Rig {
    /// Lets so much time pass on the loop.
    func rest(nanoseconds: UInt64) {
        let slept = Counter()
        loop.submit { loop in
            Task.immediate(executorPreference: loop.taskExecutor) {
                try? await loop.sleep(nanoseconds: nanoseconds)
                slept.add()
            }
        }
        slept.wait(for: 1)
    }
}
