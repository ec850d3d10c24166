// The hub that tells the events of the calls of all loops to its listeners.

import EventLoop
import Glibc
import Synchronization

/// Collects events, and queues them for each reader.
///
/// Sendable: the mutable state is under one mutex, whose values run no code when they are released; no task is resumed
/// under it.
package final class EventHub: Sendable {
    fileprivate typealias Waiter = UnsafeContinuation<Void, Never>

    private struct Reader {
        var queue: EventQueue
        var waiter: Waiter?
    }

    private struct State {
        /// The calls under way that the hub knows, by their numbers.
        var calls: [UInt64: CallFacts] = [:]
        /// The number of known calls under way, by service; never 0.
        var counts: [String: Int] = [:]
        var readers: [UInt64: Reader] = [:]
        var lastCall: UInt64 = 0
        var lastReader: UInt64 = 0
        /// The number of readers that are being added.
        var coming = 0
        var lost = 0
        var isOver = false
        /// The tasks to be resumed when the mutex is free again.
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

    /// The closure of a loop. It is in an object, since a closure directly under a mutex would be wrapped once more at
    /// each look.
    private final class Loop: Sendable {
        let adopt: @Sendable () async -> Void

        init(_ adopt: @escaping @Sendable () async -> Void) { self.adopt = adopt }
    }

    /// The largest number of readers at the same time.
    package static let maximumReaders = 16

    private let state = Mutex(State())
    private let listening = Atomic<Bool>(false)
    /// The loops; each makes its calls known that began while there was no listener.
    private let loops = Mutex<[Loop]>([])
    private let now: @Sendable () -> UInt64

    /// - Parameter now: the clock of events, in nanoseconds since 1970.
    package init(now: @escaping @Sendable () -> UInt64 = EventHub.wallTime) { self.now = now }

    /// The time of the system's clock, in nanoseconds since 1970.
    package static func wallTime() -> UInt64 {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return UInt64(time.tv_sec) &* 1_000_000_000 &+ UInt64(time.tv_nsec)
    }

    // MARK: - Calls

    /// True if there is a listener. It is one relaxed load: a call without a listener costs no more.
    package var isListening: Bool { listening.load(ordering: .relaxed) }

    /// Makes a call known. Any thread; the events of one call come one after the other.
    /// - Parameter facts: the facts of the call, with its last event.
    /// - Returns: the number of the call.
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

    /// Tells the last event of a known call.
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

    /// Updates the facts of a known call without an event.
    package func refresh(_ facts: CallFacts) {
        change { state, _ in
            if state.calls[facts.number] != nil { state.calls[facts.number] = facts }
        }
    }

    /// Adds a loop.
    /// - Parameter adopt: makes the loop's calls known that began while there was no listener, and returns when that is
    ///   done.
    package func add(loop adopt: @escaping @Sendable () async -> Void) {
        let loop = Loop(adopt)
        loops.withLock { $0.append(loop) }
    }

    // MARK: - Readers

    /// Begins to listen. Any thread.
    /// - Parameter services: services whose state is told even if they have no call under way.
    /// - Returns: nil if there are ``maximumReaders`` already, or if the hub has ended.
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

    /// Ends the streams of all readers, and admits no others. Queued events can still be taken.
    package func end() {
        change { state, _ in
            state.isOver = true
            for id in state.readers.keys { state.wake(id) }
        }
        // The closures hold the loops, so they are released.
        _ = loops.exchange([])
    }

    package var readerCount: Int { state.withLock { $0.readers.count } }
    /// The number of events that readers missed because they were too slow.
    package var lostCount: Int { state.withLock { $0.lost } }
    /// The number of known calls under way.
    package var callCount: Int { state.withLock { $0.calls.count } }

    /// The next events for a reader: nil at the end, empty if it has to wait.
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

/// A listener; its stream ends with this object.
///
/// Sendable: the hub holds the mutable state.
package final class EventReader: Sendable {
    private let hub: EventHub
    private let id: UInt64

    fileprivate init(_ hub: EventHub, _ id: UInt64) {
        self.hub = hub
        self.id = id
    }

    deinit { close() }

    /// Waits for the next events. One caller at a time.
    /// - Returns: nil at the end, or if the task is cancelled.
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

    /// Ends the stream, and drops its queued events. Any thread.
    package func close() { hub.remove(id) }
}

/// The queue of a reader, which begins with the states of all services and calls, and goes on with events. The states
/// are made when the reader takes them, some calls at a time: events of a call before its state are left out, since the
/// state includes them.
package struct EventQueue: Sendable {
    /// The most bytes of queued events.
    package static let limit = 64 << 10
    /// The number of calls whose states are taken at a time.
    static let callsAtOnce = 64

    let filter: EventFilter
    /// The services whose state is told even if they have no call.
    private let services: [String]
    private var events: [CallEvent] = []
    private var size = 0
    /// The number of events that found no room since the last event about that.
    private var lost = 0
    /// The number of the last call whose state was told: those of greater numbers follow; nil if all were told.
    private var toldCall: UInt64? = 0
    private var hasToldServices = false

    package init(_ filter: EventFilter, services: [String]) {
        self.filter = filter
        self.services = services.filter(filter.admits(service:))
    }

    /// True if there is something to take.
    package var isReady: Bool { !events.isEmpty || lost > 0 || toldCall != nil || !hasToldServices }
    /// True if no event is queued.
    package var isEmpty: Bool { events.isEmpty }

    /// Queues an event. Progress may fill only the first half of the queue: the next progress replaces it.
    /// - Returns: false if the event is lost. An event that a later state includes is left out, and not lost.
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

    /// Takes the queued events, or else the number of lost ones and the states that follow it.
    /// - Parameters:
    ///   - calls: the calls under way by their numbers.
    ///   - counts: the numbers of calls under way by service.
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
