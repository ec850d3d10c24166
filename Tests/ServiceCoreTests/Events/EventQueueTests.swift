// What waits for one reader of events, as a value: the states first, and bounded whatever comes.

import DownloadCore
import HTTPWire
import TestSupport
import Testing

@testable import ServiceCore

@Suite struct EventQueueTests {
    private static func facts(
        _ number: UInt64,
        _ service: String = "api",
        endpoint: String = "",
        phase: CallEventKind = .started,
        received: UInt64 = 0
    ) -> CallFacts {
        var facts = CallFacts(service: service, endpoint: endpoint, method: "GET", toSend: nil)
        facts.number = number
        facts.url = "http://origin/\(number)"
        facts.phase = phase
        facts.received = received
        return facts
    }

    private static func event(_ facts: CallFacts) -> CallEvent {
        CallEvent(time: 1, kind: facts.phase, subject: .call(facts))
    }

    /// A queue that has told all states, of no calls.
    private static func settled(_ filter: EventFilter = EventFilter()) -> EventQueue {
        var queue = EventQueue(filter, services: [])
        _ = queue.take([:], [:], now: 1)
        return queue
    }

    /// Whether an event is not lost.
    private static func keeps(_ queue: inout EventQueue, _ event: CallEvent) -> Bool { queue.put(event) }

    /// `state api 2`, `state 7`, `started 7`, `lost 3`
    private static func words(_ events: [CallEvent]) -> [String] {
        events.map { event in
            switch event.subject {
            case .call(let facts): "\(event.kind) \(facts.number)"
            case .service(let name, let calls): "\(event.kind) \(name) \(calls)"
            case .reader(let lost): "\(event.kind) \(lost)"
            }
        }
    }

    @Test("who listens late gets the state of each service, then that of each call in the order of their beginning")
    func states() {
        var queue = EventQueue(EventFilter(), services: ["web", "api"])
        let calls: [UInt64: CallFacts] = [
            7: Self.facts(7, phase: .parked), 3: Self.facts(3), 5: Self.facts(5, "old", phase: .progress),
        ]
        let taken = queue.take(calls, ["api": 2, "old": 1], now: 9)
        #expect(
            Self.words(taken) == ["state web 0", "state api 2", "state old 1", "state 3", "state 5", "state 7"]
        )
        #expect(taken.allSatisfy { $0.time == 9 && $0.kind == .state })
        guard case .call(let last)? = taken.last?.subject else { return #expect(Bool(false)) }
        #expect(last.phase == .parked)
        #expect(!queue.isReady)
    }

    @Test("states come some calls at a time, and an event of a call that is not told yet is left to its state")
    func many() {
        var calls = Dictionary(uniqueKeysWithValues: (1...200).map { (UInt64($0), Self.facts(UInt64($0))) })
        var queue = EventQueue(EventFilter(), services: [])
        var words = Self.words(queue.take(calls, ["api": 200], now: 1))
        #expect(words.count == 1 + EventQueue.callsAtOnce)
        // Of one that was told, of one that was not, and of one that ends before it is told.
        #expect(Self.keeps(&queue, Self.event(Self.facts(1, phase: .progress))))
        #expect(Self.keeps(&queue, Self.event(Self.facts(199, phase: .progress))))
        #expect(Self.keeps(&queue, Self.event(Self.facts(200, phase: .finished))))
        calls[200] = nil
        words += Self.words(queue.take(calls, ["api": 199], now: 1))
        while queue.isReady { words += Self.words(queue.take(calls, ["api": 199], now: 1)) }
        let told = 1...EventQueue.callsAtOnce
        let later = EventQueue.callsAtOnce + 1...199
        #expect(words == ["state api 200"] + told.map { "state \($0)" } + ["progress 1"] + later.map { "state \($0)" })
        // From now on every event is told.
        #expect(Self.keeps(&queue, Self.event(Self.facts(500))))
        words = Self.words(queue.take(calls, [:], now: 1))
        #expect(words == ["started 500"])
    }

    @Test("a reader that is too slow loses progress first, then hears how much it lost, and gets the states again")
    func slow() {
        var queue = Self.settled()
        let progress = Self.event(Self.facts(1, phase: .progress))
        var puts = 0
        while queue.put(progress), puts < 10_000 { puts += 1 }
        // Progress that found no room is no loss.
        #expect(puts == 10_000)
        let ends = Self.event(Self.facts(1, phase: .finished))
        var kept = 0
        while queue.put(ends) { kept += 1 }
        for _ in 0..<4 { #expect(!Self.keeps(&queue, ends)) }
        #expect(Self.keeps(&queue, progress))
        let taken = queue.take([:], [:], now: 2)
        let half = EventQueue.limit / 2 / progress.size
        #expect(taken.count { $0.kind == .progress } == half)
        #expect(taken.count { $0.kind == .finished } == kept && kept >= half - 1)
        #expect(taken.reduce(0) { $0 + $1.size } <= EventQueue.limit)
        // What comes before the states are taken is in them.
        #expect(!Self.keeps(&queue, Self.event(Self.facts(2))))
        let after = Self.words(queue.take([2: Self.facts(2)], ["api": 1], now: 3))
        #expect(after == ["lost 6", "state api 1", "state 2"])
        #expect(Self.keeps(&queue, Self.event(Self.facts(2, phase: .finished))))
        let last = Self.words(queue.take([:], [:], now: 4))
        #expect(last == ["finished 2"])
    }

    @Test(
        "a reader hears of what it asked for",
        arguments: [
            (
                EventFilter(),
                ["state web 1", "state api 2", "state 1", "state 2", "started 4", "started 5", "idle web 0"]
            ),
            (EventFilter(service: "api"), ["state api 2", "state 1", "state 2", "started 4"]),
            (EventFilter(service: "api", endpoint: "user"), ["state api 2", "state 2", "started 4"]),
            (EventFilter(endpoint: "user"), ["state web 1", "state api 2", "state 2", "started 4", "idle web 0"]),
        ]
    )
    func filters(_ filter: EventFilter, _ wanted: [String]) {
        var queue = EventQueue(filter, services: ["web", "api"])
        let calls: [UInt64: CallFacts] = [1: Self.facts(1), 2: Self.facts(2, endpoint: "user")]
        var words = Self.words(queue.take(calls, ["api": 2, "web": 1], now: 1))
        for event in [
            Self.event(Self.facts(4, endpoint: "user")), Self.event(Self.facts(5, "web")),
            CallEvent(time: 1, kind: .idle, subject: .service("web", calls: 0)),
        ] { #expect(Self.keeps(&queue, event)) }
        if queue.isReady { words += Self.words(queue.take([:], [:], now: 1)) }
        #expect(words == wanted)
    }
}
