// The hub of events: who hears what, in which order, from which threads, and until when.

import DownloadCore
import EventLoop
import HTTPWire
import Synchronization
import TestSupport
import Testing

@testable import ServiceCore

@Suite(.timeLimit(.minutes(5))) struct EventHubTests {
    private static func facts(_ service: String, _ phase: CallEventKind = .started, number: UInt64 = 0) -> CallFacts {
        var facts = CallFacts(service: service, endpoint: "", method: "GET", toSend: nil)
        facts.phase = phase
        facts.number = number
        facts.url = "http://origin/"
        return facts
    }

    /// `busy api 1`, `started 7`
    static func words(_ events: [CallEvent]?) -> [String] {
        (events ?? []).map { event in
            switch event.subject {
            case .call(let facts): "\(event.kind) \(facts.number)"
            case .service(let name, let calls): "\(event.kind) \(name) \(calls)"
            case .reader(let lost): "\(event.kind) \(lost)"
            }
        }
    }

    @Test("a service is busy before the first event of its first call, and idle after the last of its last one")
    func edges() async throws {
        let hub = EventHub(now: { 5 })
        #expect(!hub.isListening)
        let reader = try #require(await hub.listen(services: ["api"]))
        #expect(hub.isListening && hub.readerCount == 1)
        #expect(Self.words(await reader.next()) == ["state api 0"])
        let first = hub.begin(Self.facts("api"))
        let second = hub.begin(Self.facts("api"))
        #expect(second > first)
        hub.tell(Self.facts("api", .finished, number: first))
        hub.tell(Self.facts("api", .failed, number: second))
        // After its end nothing is told of a call.
        hub.tell(Self.facts("api", .progress, number: second))
        let events = await reader.next()
        #expect(
            Self.words(events) == [
                "busy api 1", "started \(first)", "started \(second)", "finished \(first)", "failed \(second)",
                "idle api 0",
            ]
        )
        #expect(events?.allSatisfy { $0.time == 5 } == true)
        #expect(hub.callCount == 0)
    }

    @Test("whoever comes later gets the last state of what is under way")
    func late() async throws {
        let hub = EventHub()
        let early = try #require(await hub.listen())
        let call = hub.begin(Self.facts("api"))
        let ended = hub.begin(Self.facts("api"))
        hub.tell(Self.facts("api", .parked, number: call))
        hub.tell(Self.facts("api", .finished, number: ended))
        let reader = try #require(await hub.listen(services: ["api", "web"]))
        let events = await reader.next()
        #expect(Self.words(events) == ["state api 1", "state web 0", "state \(call)"])
        guard case .call(let facts)? = events?.last?.subject else { return #expect(Bool(false)) }
        #expect(facts.phase == .parked)
        early.close()
        #expect(hub.readerCount == 1 && hub.isListening)
    }

    @Test("events of a call keep their order, and busy and idle take turns, whatever threads they come from")
    func concurrent() async throws {
        for _ in 0..<40 {
            let hub = EventHub()
            let reader = try #require(await hub.listen(services: ["api"]))
            _ = await reader.next()
            // So few that a reader who has not begun to read misses none.
            _ = try Threads.run(8) { _ in
                for _ in 0..<4 {
                    let number = hub.begin(Self.facts("api"))
                    hub.tell(Self.facts("api", .finished, number: number))
                }
            }
            var phases: [UInt64: CallEventKind] = [:]
            var (count, isBusy) = (0, false)
            for event in try #require(await reader.next()) {
                switch event.subject {
                case .service(_, let calls):
                    #expect((event.kind == .busy) != isBusy)
                    isBusy = event.kind == .busy
                    #expect(count == 0 && calls == (isBusy ? 1 : 0))
                case .call(let facts):
                    #expect(isBusy)
                    #expect(phases[facts.number] == (event.kind == .started ? nil : .started))
                    phases[facts.number] = event.kind
                    count += event.kind == .started ? 1 : -1
                case .reader: Issue.record("events were lost")
                }
            }
            #expect(!isBusy && phases.count == 32 && phases.values.allSatisfy { $0 == .finished })
            #expect(hub.lostCount == 0 && hub.callCount == 0)
        }
    }

    @Test("a reader that does not read costs no more than its bound, and hears of what it missed")
    func slow() async throws {
        let hub = EventHub()
        let reader = try #require(await hub.listen(services: ["api"]))
        _ = await reader.next()
        for _ in 0..<10_000 {
            let number = hub.begin(Self.facts("api"))
            hub.tell(Self.facts("api", .finished, number: number))
        }
        let waiting = try #require(await reader.next())
        #expect(waiting.reduce(0) { $0 + $1.size } <= EventQueue.limit)
        #expect(waiting.count + hub.lostCount == 40_000)
        #expect(Self.words(await reader.next()).first == "lost \(hub.lostCount)")
        // Then all is as before.
        _ = hub.begin(Self.facts("api"))
        #expect(Self.words(await reader.next()) == ["busy api 1", "started 10001"])
    }

    @Test("a reader that reads meanwhile wakes up, and gets all of it")
    func wakes() async throws {
        let hub = EventHub()
        let reader = try #require(await hub.listen(services: ["api"]))
        let heard = Monitor([String]())
        let reading = Task {
            while let events = await reader.next() { heard.update { $0 += Self.words(events) } }
        }
        #expect(await eventually { heard.read { $0 } == ["state api 0"] })
        var numbers: [UInt64] = []
        for _ in 0..<200 {
            numbers.append(hub.begin(Self.facts("api")))
            let word = "started \(numbers[numbers.count - 1])"
            #expect(await eventually { heard.read { $0.last == word } })
        }
        hub.end()
        await reading.value
        #expect(heard.read { $0 } == ["state api 0", "busy api 1"] + numbers.map { "started \($0)" })
    }

    @Test("so many may listen, and who leaves makes room")
    func bounded() async throws {
        let hub = EventHub()
        var readers: [EventReader] = []
        for _ in 0..<EventHub.maximumReaders { readers.append(try #require(await hub.listen())) }
        #expect(await hub.listen() == nil)
        #expect(hub.readerCount == EventHub.maximumReaders)
        readers.removeLast()
        let next = await hub.listen()
        #expect(next != nil)
        next?.close()
        readers = []
        #expect(hub.readerCount == 0 && !hub.isListening)
    }

    @Test("a reader that waits ends with its task, with its stream, and with the hub")
    func ends() async throws {
        let hub = EventHub()
        for end in 0..<3 {
            let reader = try #require(await hub.listen(services: ["api"]))
            #expect(await reader.next() != nil)
            let waiting = Task { await reader.next() == nil }
            switch end {
            case 0: waiting.cancel()
            case 1: reader.close()
            default: hub.end()
            }
            #expect(await waiting.value)
        }
        #expect(await hub.listen() == nil)
        #expect(!hub.isListening)
    }

    @Test("what waits at the end can still be taken")
    func rest() async throws {
        let hub = EventHub()
        let reader = try #require(await hub.listen(services: ["api"]))
        _ = await reader.next()
        let number = hub.begin(Self.facts("api"))
        hub.end()
        #expect(Self.words(await reader.next()) == ["busy api 1", "started \(number)"])
        #expect(await reader.next() == nil)
    }
}
