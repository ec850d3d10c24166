// What is told of calls over a real origin: each event in its place, and nothing left behind.

import DownloadCore
import EventLoop
import HTTPWire
import LoopSupport
import Policies
import TestSupport
import Testing
import Upstream

@testable import ServiceCore

@Suite(.timeLimit(.minutes(5))) struct CallEventTests {
    private static let three = RetryPolicy(count: 3, delay: .nanoseconds(1_000_000), backoff: 1, jitter: 0)

    /// What a reader has heard so far, but for the state of a service that was idle.
    private final class Listener: Sendable {
        let heard = Monitor([CallEvent]())
        private let reading: Task<Void, Never>

        init(_ hub: EventHub) async throws {
            let reader = try #require(await hub.listen(services: ["s"]))
            // From here on every event is heard.
            let first = try #require(await reader.next())
            heard.update { $0 = first.filter { $0.subject != .service("s", calls: 0) } }
            reading = Task { [heard] in
                while let events = await reader.next() { heard.update { $0 += events } }
            }
        }

        deinit { reading.cancel() }

        var calls: [(kind: CallEventKind, facts: CallFacts)] {
            heard.read { $0 }.compactMap { event in
                if case .call(let facts) = event.subject { (event.kind, facts) } else { nil }
            }
        }

        var kinds: [CallEventKind] { heard.read { $0 }.map(\.kind) }

        func hears(_ kinds: [CallEventKind]) async -> Bool {
            await eventually { self.kinds.filter { $0 != .progress } == kinds }
        }
    }

    @Test(
        "a call is started, makes progress and is finished, with its destination and its figures",
        arguments: [false, true]
    )
    func success(isDirect: Bool) async throws {
        let rig = try await OriginRig(events: EventHub()) { _ in .answer("four") }
        let listener = try await Listener(try #require(rig.events))
        let heard = try await rig.get("/a?page=1&token=abc", isDirect: isDirect)
        #expect(heard.status == 200 && heard.body == Array("four".utf8))
        #expect(await listener.hears([.busy, .started, .finished, .idle]))
        #expect(listener.kinds == [.busy, .started, .progress, .finished, .idle])
        let (_, first) = try #require(listener.calls.first)
        #expect(first.service == "s" && first.endpoint == "end" && first.method == "GET" && first.attempt == 1)
        #expect(first.url == "\(rig.origin.url)/a?page=1&token=***")
        #expect(first.status == nil && first.received == 0 && first.expected == nil)
        for (_, facts) in listener.calls.dropFirst() {
            #expect(facts.number == first.number && facts.status == 200 && facts.received == 4 && facts.expected == 4)
        }
        #expect(await rig.callsUnderWay == 0)
        await rig.close()
    }

    @Test("each retry is told with its reason and its wait, and each attempt with its number")
    func retries() async throws {
        let rig = try await OriginRig(retry: Self.three, events: EventHub()) { _ in .answer(503, "no") }
        let listener = try await Listener(try #require(rig.events))
        #expect(try await rig.get("/a").status == 503)
        let again: [CallEventKind] = [.retrying, .started]
        #expect(await listener.hears([.busy, .started] + again + again + again + [.finished, .idle]))
        let calls = listener.calls
        #expect(calls.filter { $0.kind == .started }.map(\.facts.attempt) == [1, 2, 3, 4])
        for (kind, facts) in calls where kind == .retrying {
            #expect(facts.status == 503 && facts.waits == 1_000_000 && facts.reason == "the status was 503")
        }
        #expect(Set(calls.map(\.facts.number)).count == 1)
        #expect(calls.last?.facts.attempt == 4 && calls.last?.facts.status == 503)
        #expect(await rig.callsUnderWay == 0)
        await rig.close()
    }

    @Test("a call that gets no answer is failed, with the error's type", arguments: [false, true])
    func failure(isDirect: Bool) async throws {
        let rig = try await OriginRig(events: EventHub()) { _ in .answer("never") }
        rig.origin.stop()
        let listener = try await Listener(try #require(rig.events))
        #expect(try await rig.get("/a", isDirect: isDirect).error != nil)
        #expect(await listener.hears([.busy, .started, .failed, .idle]))
        let (_, facts) = try #require(listener.calls.last)
        #expect(facts.error == "connection_refused" && facts.reason?.isEmpty == false)
        #expect(await rig.callsUnderWay == 0)
        await rig.close()
    }

    @Test("a body that is cut is a failure with what has come of it")
    func cut() async throws {
        let rig = try await OriginRig(events: EventHub()) { _ in
            .raw("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf").then(.cut)
        }
        let listener = try await Listener(try #require(rig.events))
        #expect(try await rig.get("/a").error != nil)
        #expect(await listener.hears([.busy, .started, .failed, .idle]))
        #expect(listener.calls.last?.facts.received == 4 && listener.calls.last?.facts.expected == 10)
        await rig.close()
    }

    @Test("a call that is given up is cancelled", arguments: [false, true])
    func cancelled(isDirect: Bool) async throws {
        let gate = Gate()
        let rig = try await OriginRig(events: EventHub()) { _ in OriginReply([.wait(gate), .cut]) }
        let listener = try await Listener(try #require(rig.events))
        let task = await rig.start("/a", isDirect: isDirect)
        _ = try await task.value.get()
        #expect(rig.origin.waitForRequests(1))
        #expect(await rig.callsUnderWay == 1)
        await rig.cancelAll()
        #expect(await listener.hears([.busy, .started, .cancelled, .idle]))
        #expect(await rig.callsUnderWay == 0)
        gate.open()
        await rig.close()
    }

    @Test("whoever begins to listen hears of calls that began before, and then of their end", arguments: [false, true])
    func late(isDirect: Bool) async throws {
        let gate = Gate()
        let rig = try await OriginRig(events: EventHub()) { _ in
            OriginReply([
                OriginReply.text("HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nhalf"), .wait(gate),
                OriginReply.text("more"),
            ])
        }
        let hub = try #require(rig.events)
        let call = try await rig.start("/a", isDirect: isDirect).value.get()
        #expect(await eventually { call.read { $0.body.count == 4 } })
        #expect(hub.callCount == 0)
        let listener = try await Listener(hub)
        #expect(await listener.hears([.state, .state]))
        let (_, facts) = try #require(listener.calls.first)
        #expect(facts.status == 200 && facts.received == 4 && facts.expected == 8 && facts.attempt == 1)
        #expect(facts.url == "\(rig.origin.url)/a")
        // A second one gets the same, and the first one hears nothing of that.
        let second = try await Listener(hub)
        #expect(await second.hears([.state, .state]))
        #expect(second.calls.map(\.facts) == [facts])
        #expect(listener.kinds == [.state, .state])
        gate.open()
        #expect(await listener.hears([.state, .state, .finished, .idle]))
        #expect(listener.calls.last?.facts.received == 8)
        #expect(await rig.callsUnderWay == 0)
        await rig.close()
    }

    @Test("what a client sends is told, and again from its start with another attempt")
    func upload() async throws {
        let count = Monitor(0)
        let rig = try await OriginRig(retry: Self.three, events: EventHub()) { request in
            count.update { $0 += 1 }
            return .answer(count.read { $0 } == 1 ? 503 : 200, to: request, "ok")
        }
        let listener = try await Listener(try #require(rig.events))
        let content = [UInt8](repeating: 97, count: 300_000)
        #expect(try await rig.get("/a", method: .put, content: content).status == 200)
        #expect(await listener.hears([.busy, .started, .retrying, .started, .finished, .idle]))
        let calls = listener.calls
        #expect(calls.allSatisfy { $0.facts.toSend == 300_000 })
        #expect(calls.filter { $0.kind == .started }.allSatisfy { $0.facts.sent == 0 })
        #expect(calls.filter { $0.kind == .retrying || $0.kind == .finished }.allSatisfy { $0.facts.sent == 300_000 })
        #expect(calls.contains { $0.kind == .progress && $0.facts.sent == 300_000 && $0.facts.attempt == 2 })
        await rig.close()
    }

    @Test("progress is told ten times a second at most, and the last of it always")
    func throttled() async throws {
        let rig = try await OriginRig(events: EventHub()) { _ in .pattern(20_000_000) }
        let listener = try await Listener(try #require(rig.events))
        let began = Monotonic.now()
        #expect(try await rig.get("/a").body.count == 20_000_000)
        #expect(await listener.hears([.busy, .started, .finished, .idle]))
        let most = (Monotonic.now() - began) / CallRecord.progressInterval + 2
        let progress = listener.calls.filter { $0.kind == .progress }
        #expect(progress.count <= most && !progress.isEmpty)
        #expect(progress.last?.facts.received == 20_000_000)
        #expect(zip(progress, progress.dropFirst()).allSatisfy { $0.facts.received < $1.facts.received })
        await rig.close()
    }

    @Test("while nobody listens nothing is known of a call, and its end leaves nothing")
    func unheard() async throws {
        let rig = try await OriginRig(events: EventHub()) { _ in .answer("x") }
        let hub = try #require(rig.events)
        for isDirect in [false, true] { #expect(try await rig.get("/a", isDirect: isDirect).status == 200) }
        #expect(hub.callCount == 0 && hub.lostCount == 0)
        #expect(await rig.callsUnderWay == 0)
        let listener = try await Listener(hub)
        #expect(try await rig.get("/b").status == 200)
        #expect(await listener.hears([.busy, .started, .finished, .idle]))
        // The numbers count those that are known.
        #expect(listener.calls.first?.facts.number == 1)
        await rig.close()
    }
}
