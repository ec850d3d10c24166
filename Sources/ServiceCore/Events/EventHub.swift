// Tells whoever listens what becomes of the calls of all loops.

import EventLoop
import Glibc
import Synchronization

/// Sendable: what changes is under one mutex, whose values run no code when they go, and nobody is resumed under it.
package final class EventHub: Sendable {
    fileprivate typealias Waiter = UnsafeContinuation<Void, Never>

    private struct Reader {
        var queue: EventQueue
        var waiter: Waiter?
    }

    private struct State {
        /// Under way, and known here.
        var calls: [UInt64: CallFacts] = [:]
        /// The numbers of these, by service; never 0.
        var counts: [String: Int] = [:]
        var readers: [UInt64: Reader] = [:]
        var lastCall: UInt64 = 0
        var lastReader: UInt64 = 0
        /// Readers that are about to come.
        var coming = 0
        var lost = 0
        var isOver = false
        /// To be resumed when the mutex is free again.
        var woken: [Waiter] = []

        mutating func put(_ event: CallEvent) {
            for id in readers.keys {
                if readers[id]?.queue.put(event) == false { lost += 1 }
                if readers[id]?.queue.isReady == true { wake(id) }
            }
        }

        mutating func wake(_ id: UInt64) {
            guard let waiter = readers[id]?.waiter else { return }
            readers[id]?.waiter = nil
            woken.append(waiter)
        }
    }

    /// A closure right under a mutex would be wrapped once more with each look.
    private final class Loop: Sendable {
        let adopt: @Sendable () async -> Void

        init(_ adopt: @escaping @Sendable () async -> Void) { self.adopt = adopt }
    }

    /// Readers at the same time.
    package static let maximumReaders = 16

    private let state = Mutex(State())
    private let listening = Atomic<Bool>(false)
    /// Makes the calls of each loop known that began while nobody listened.
    private let loops = Mutex<[Loop]>([])
    private let now: @Sendable () -> UInt64

    /// - Parameter now: nanoseconds since 1970.
    package init(now: @escaping @Sendable () -> UInt64 = EventHub.wallTime) { self.now = now }

    /// Nanoseconds since 1970.
    package static func wallTime() -> UInt64 {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return UInt64(time.tv_sec) &* 1_000_000_000 &+ UInt64(time.tv_nsec)
    }

    // MARK: - Calls

    /// Somebody listens. One relaxed load, so that a call which nobody hears of pays for no more.
    package var isListening: Bool { listening.load(ordering: .relaxed) }

    /// A call becomes known. Any thread, in the order of the call's events, as the next one.
    /// - Parameter facts: of the call, with its last event.
    /// - Returns: its number.
    package func begin(_ facts: CallFacts) -> UInt64 {
        change { state, now in
            state.lastCall += 1
            var facts = facts
            facts.number = state.lastCall
            state.calls[facts.number] = facts
            let count = (state.counts[facts.service] ?? 0) + 1
            state.counts[facts.service] = count
            if count == 1 {
                state.put(CallEvent(time: now, kind: .busy, subject: .service(facts.service, calls: 1)))
            }
            state.put(CallEvent(time: now, kind: facts.phase, subject: .call(facts)))
            return facts.number
        }
    }

    /// Tells the last event of a call that is known.
    package func tell(_ facts: CallFacts) {
        change { state, now in
            guard state.calls[facts.number] != nil else { return }
            let isEnd = facts.phase.isEnd
            state.calls[facts.number] = isEnd ? nil : facts
            state.put(CallEvent(time: now, kind: facts.phase, subject: .call(facts)))
            guard isEnd else { return }
            let count = (state.counts[facts.service] ?? 1) - 1
            state.counts[facts.service] = count > 0 ? count : nil
            if count == 0 { state.put(CallEvent(time: now, kind: .idle, subject: .service(facts.service, calls: 0))) }
        }
    }

    /// What is known of a call has changed without an event.
    package func refresh(_ facts: CallFacts) {
        change { state, _ in
            if state.calls[facts.number] != nil { state.calls[facts.number] = facts }
        }
    }

    /// Adds a loop.
    /// - Parameter adopt: makes its calls known that began while nobody listened; waits until that is done.
    package func add(loop adopt: @escaping @Sendable () async -> Void) {
        let loop = Loop(adopt)
        loops.withLock { $0.append(loop) }
    }

    // MARK: - Readers

    /// Begins to listen. Any thread.
    /// - Parameter services: those that are told even if they have no call under way.
    /// - Returns: nil where there are as many readers as may be, or none may come any more.
    package func listen(_ filter: EventFilter = EventFilter(), services: [String] = []) async -> EventReader? {
        let mayCome = change { state, _ in
            guard !state.isOver, state.readers.count + state.coming < Self.maximumReaders else { return false }
            state.coming += 1
            return true
        }
        guard mayCome else { return nil }
        for loop in loops.withLock({ $0 }) { await loop.adopt() }
        let id = change { state, _ in
            state.coming -= 1
            state.lastReader += 1
            state.readers[state.lastReader] = Reader(queue: EventQueue(filter, services: services))
            return state.lastReader
        }
        return EventReader(self, id)
    }

    /// Ends the streams of all readers, and lets no others come. What waits for a reader can still be taken.
    package func end() {
        change { state, _ in
            state.isOver = true
            for id in state.readers.keys { state.wake(id) }
        }
        // They hold the loops.
        _ = loops.exchange([])
    }

    package var readerCount: Int { state.withLock { $0.readers.count } }
    /// Events that readers missed, since they were too slow.
    package var lostCount: Int { state.withLock { $0.lost } }
    /// Calls that are known to be under way.
    package var callCount: Int { state.withLock { $0.calls.count } }

    /// What a reader gets next: nil at the end, and nothing where it has to wait.
    fileprivate func take(_ id: UInt64) -> [CallEvent]? {
        change { state, now in
            guard let reader = state.readers[id], !state.isOver || !reader.queue.isEmpty else { return nil }
            return state.readers[id]?.queue.take(state.calls, state.counts, now: now)
        }
    }

    /// Resumes a waiter as soon as there is something to take.
    fileprivate func wait(_ id: UInt64, _ waiter: Waiter) {
        change { state, _ in
            guard let reader = state.readers[id], !state.isOver, !reader.queue.isReady, !Task.isCancelled else {
                state.woken.append(waiter)
                return
            }
            state.readers[id]?.waiter = waiter
        }
    }

    fileprivate func wake(_ id: UInt64) { change { state, _ in state.wake(id) } }

    fileprivate func remove(_ id: UInt64) {
        change { state, _ in
            state.wake(id)
            state.readers[id] = nil
        }
    }

    private func change<Result: Sendable>(_ body: (inout State, UInt64) -> Result) -> Result {
        let now = now()
        let (result, woken) = state.withLock { state in
            let result = body(&state, now)
            listening.store(!state.isOver && state.readers.count + state.coming > 0, ordering: .relaxed)
            var woken: [Waiter] = []
            swap(&woken, &state.woken)
            return (result, woken)
        }
        for waiter in woken { waiter.resume() }
        return result
    }
}

/// One who listens; the stream ends with it.
///
/// Sendable: the hub holds all that changes.
package final class EventReader: Sendable {
    private let hub: EventHub
    private let id: UInt64

    fileprivate init(_ hub: EventHub, _ id: UInt64) {
        self.hub = hub
        self.id = id
    }

    deinit { close() }

    /// Waits for the next events. One caller at a time.
    /// - Returns: nil at the end, or when the task is cancelled.
    package func next() async -> [CallEvent]? {
        await withTaskCancellationHandler {
            while !Task.isCancelled {
                guard let events = hub.take(id) else { return nil }
                if !events.isEmpty { return events }
                await withUnsafeContinuation { hub.wait(id, $0) }
            }
            return nil
        } onCancel: {
            hub.wake(id)
        }
    }

    /// Ends the stream, and frees what waits in it. Any thread.
    package func close() { hub.remove(id) }
}

/// A reader begins with the state of all services and calls, and then gets events. The states are made when the reader
/// takes them, some calls at a time: until a call has been told, its events are left out, and its state has them.
package struct EventQueue: Sendable {
    /// Bytes of events that wait, at most.
    package static let limit = 64 << 10
    /// Calls whose states are taken at a time.
    static let callsAtOnce = 64

    let filter: EventFilter
    /// The services that are told even if they have no call.
    private let services: [String]
    private var events: [CallEvent] = []
    private var size = 0
    /// Events that found no room since the last line about that.
    private var lost = 0
    /// The states of calls with greater numbers are yet to be taken; nil: all have been.
    private var toldCall: UInt64? = 0
    private var hasToldServices = false

    package init(_ filter: EventFilter, services: [String]) {
        self.filter = filter
        self.services = services.filter(filter.admits(service:))
    }

    /// There is something to take.
    package var isReady: Bool { !events.isEmpty || lost > 0 || toldCall != nil || !hasToldServices }
    /// Events that wait.
    package var isEmpty: Bool { events.isEmpty }

    /// Queues an event. Progress finds room in the first half only: the next one says more.
    /// - Returns: false where the event is lost. What is left out, since a state follows that has it, is not.
    package mutating func put(_ event: CallEvent) -> Bool {
        guard filter.admits(event) else { return true }
        switch event.subject {
        case .call(let facts):
            if let toldCall, facts.number > toldCall { return true }
        case .service:
            if !hasToldServices { return true }
        case .reader: break
        }
        let isProgress = event.kind == .progress
        guard lost == 0, size + event.size <= (isProgress ? Self.limit / 2 : Self.limit) else {
            if isProgress { return true }
            lost += 1
            return false
        }
        events.append(event)
        size += event.size
        return true
    }

    /// Takes what waits; else what was lost, and the states that follow it.
    /// - Parameters:
    ///   - calls: those under way, by their numbers.
    ///   - counts: the numbers of calls under way, by service.
    ///   - now: nanoseconds since 1970.
    package mutating func take(
        _ calls: [UInt64: CallFacts],
        _ counts: [String: Int],
        now: UInt64
    ) -> [CallEvent] {
        var taken: [CallEvent] = []
        if !events.isEmpty {
            swap(&taken, &events)
            size = 0
            return taken
        }
        if lost > 0 {
            taken.append(CallEvent(time: now, kind: .lost, subject: .reader(lost: lost)))
            lost = 0
            toldCall = 0
            hasToldServices = false
        }
        if !hasToldServices {
            hasToldServices = true
            let known = Set(services)
            let others = counts.keys.filter { filter.admits(service: $0) && !known.contains($0) }.sorted()
            for name in services + others {
                let subject = CallEvent.Subject.service(name, calls: counts[name] ?? 0)
                taken.append(CallEvent(time: now, kind: .state, subject: subject))
            }
        }
        guard let told = toldCall else { return taken }
        let numbers = calls.keys.filter { $0 > told }.sorted()
        for number in numbers.prefix(Self.callsAtOnce) {
            guard let facts = calls[number], filter.admits(facts) else { continue }
            taken.append(CallEvent(time: now, kind: .state, subject: .call(facts)))
        }
        toldCall = numbers.count > Self.callsAtOnce ? numbers[Self.callsAtOnce - 1] : nil
        return taken
    }
}
