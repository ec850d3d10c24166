// The events that one reader has not taken yet, as a value: bounded, and told anew from the present state when too many
// came.

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
