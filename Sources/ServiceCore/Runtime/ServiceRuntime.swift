// The states of services that outlive a reload, by name, and the sums of what they count.

import EventLoop
package import Policies
import Synchronization

/// One service's state.
///
/// Sendable: admission, resilience, parked calls, windows and the counts of sources have mutexes of their own, the counters
/// are atomic.
package final class ServiceRuntime: Sendable {
    package let name: String
    package let admission: Admission
    package let resilience: Resilience
    package let parked: ParkedCalls
    package let rates = RateWindows()
    /// What the service's requests to origins came to.
    package let origins = OriginFigures()
    /// The numbers by which answers of the service are counted.
    let numbers: RouteNumbers
    private let sources = Mutex<[OrderedSource: Int]>([:])
    private let fetches = Atomic<Int>(0)
    private let redirects = Atomic<Int>(0)

    /// Makes the state of a service.
    /// - Parameters:
    ///   - numbers: those of all services.
    ///   - now: the monotonic time in nanoseconds.
    ///   - onReport: called on any loop.
    package init(
        name: String,
        limits: AdmissionLimits,
        numbers: RouteNumbers = RouteNumbers(),
        now: @escaping @Sendable () -> UInt64 = Monotonic.now,
        onReport: @escaping @Sendable (ServiceReport) -> Void = { _ in }
    ) {
        self.name = name
        self.numbers = numbers
        admission = Admission(limits)
        resilience = Resilience(now: now, onReport: onReport)
        parked = ParkedCalls(admission, now: now, onReport: onReport)
    }

    /// Fetches begun since the start, HEAD checks among them.
    package var fetchCount: Int { fetches.load(ordering: .relaxed) }

    /// Redirects followed since the start.
    package var redirectCount: Int { redirects.load(ordering: .relaxed) }

    package func countRedirect() { redirects.wrappingAdd(1, ordering: .relaxed) }

    /// Answers since the start that a source of a route with `from` has given.
    package func answerCount(of source: OrderedSource) -> Int { sources.withLock { $0[source] ?? 0 } }

    func countAnswer(of source: OrderedSource) { sources.withLock { $0[source, default: 0] += 1 } }

    package func countFetch() { fetches.wrappingAdd(1, ordering: .relaxed) }

    /// What has been counted since the start.
    package func count(of figure: ServiceFigure) -> Int {
        switch figure {
        case .redirects: redirectCount
        case .answers(let source): answerCount(of: source)
        case .retries: resilience.retryCount
        case .refusedRetries: resilience.unaffordableCount
        case .breakerOpenings: resilience.openingCount
        case .breakerRefusals: resilience.refusalCount
        case .queueRefusals: admission.refusedCount
        case .limited: rates.refusedCount
        case .limitedEarly: rates.earlyCount
        case .parked: parked.counts.parked
        case .replayed: parked.counts.replayed
        case .parkExpired: parked.counts.expired
        case .parkDropped: parked.counts.dropped
        case .parkRefused: parked.counts.refused
        }
    }
}

/// What is counted of services since the start.
package enum ServiceFigure: Sendable, Hashable {
    case redirects
    case answers(OrderedSource)
    case retries
    case refusedRetries
    case breakerOpenings
    case breakerRefusals
    case queueRefusals
    case limited
    case limitedEarly
    case parked
    case replayed
    case parkExpired
    case parkDropped
    case parkRefused

    static let all: [ServiceFigure] =
        [
            .redirects, .retries, .refusedRetries, .breakerOpenings, .breakerRefusals, .queueRefusals, .limited,
            .limitedEarly, .parked,
            .replayed, .parkExpired, .parkDropped, .parkRefused,
        ] + OrderedSource.allCases.map { .answers($0) }
}

/// Objects by the names of services. Those of services that no plan has any more go when nobody else holds them: a
/// request that is under way keeps what it began with, and a service that comes back meanwhile has it again.
package struct ByService<Value: AnyObject & Sendable>: Sendable {
    package private(set) var values: [String: Value] = [:]
    private var leaving: Set<String> = []

    package init() {}

    /// - Returns: the value of a service, made at first sight.
    package mutating func value(of service: String, _ make: () -> Value) -> Value {
        if let value = values[service] { return value }
        let made = make()
        values[service] = made
        return made
    }

    /// The services that there are from now on: what others have goes with ``takeUnused()``.
    package mutating func keep(only services: Set<String>) { leaving = Set(values.keys).subtracting(services) }

    /// Takes out what only this table holds of services that are gone.
    /// - Returns: it, for the caller to release without a lock.
    package mutating func takeUnused() -> [Value] {
        guard !leaving.isEmpty else { return [] }
        var unused: [Value] = []
        for service in leaving {
            guard let index = values.index(forKey: service) else { continue }
            guard isKnownUniquelyReferenced(&values.values[index]) else { continue }
            unused.append(values.remove(at: index).value)
        }
        leaving.formIntersection(values.keys)
        return unused
    }
}

/// The services of the plans that are in use.
///
/// Sendable: the table and the listener are each under a mutex.
package final class ServiceRegistry: Sendable {
    private struct State {
        var runtimes = ByService<ServiceRuntime>()
        /// What services have counted that are gone.
        var past: [ServiceFigure: Int] = [:]

        mutating func takeUnused() -> [ServiceRuntime] {
            let unused = runtimes.takeUnused()
            for runtime in unused {
                for figure in ServiceFigure.all { past[figure, default: 0] += runtime.count(of: figure) }
            }
            return unused
        }
    }

    /// A closure right under a mutex would be wrapped once more with each look.
    private final class Listener: Sendable {
        let tell: @Sendable (String, ServiceReport) -> Void

        init(_ tell: @escaping @Sendable (String, ServiceReport) -> Void) { self.tell = tell }
    }

    private let state = Mutex(State())
    private let listener = Mutex<Listener?>(nil)
    /// What becomes of the calls of all services.
    package let events = EventHub()
    /// The numbers by which the answers of all services are counted.
    package let numbers = RouteNumbers()

    package init() {}

    /// Whom the reports of services are told, with the service's name.
    /// - Parameter report: called on any loop.
    package func tell(_ report: @escaping @Sendable (String, ServiceReport) -> Void) {
        listener.exchange(Listener(report))
    }

    /// The runtime of a service, made at first sight. One that exists keeps its limits: they change with
    /// ``Admission/update(_:)`` once the plan is in force.
    package func runtime(for plan: ServicePlan) -> ServiceRuntime {
        state.withLock { state in
            state.runtimes.value(of: plan.name) {
                ServiceRuntime(
                    name: plan.name,
                    limits: plan.admission,
                    numbers: numbers,
                    onReport: { [weak self, name = plan.name] report in
                        self?.listener.withLock { $0 }?.tell(name, report)
                    }
                )
            }
        }
    }

    /// The services that the plan in force has; the empty name is forward mode's. Those that are in none go as soon as no
    /// request needs them, and what they have counted stays in the sums.
    package func keep(only services: Set<String>) {
        let unused = state.withLock { state in
            state.runtimes.keep(only: services)
            return state.takeUnused()
        }
        withExtendedLifetime(unused) {}
    }

    /// Ends the parked calls of all services but these.
    /// - Parameters:
    ///   - kept: names.
    ///   - why: told to their clients.
    package func endParkedCalls(but kept: Set<String> = [], why: String) {
        for runtime in all where !kept.contains(runtime.name) { runtime.parked.serve(nil, why: why) }
    }

    /// Begins the quotas of a service anew, or those of all.
    package func resetQuotas(of service: String?) {
        for runtime in all where service == nil || runtime.name == service { runtime.rates.reset() }
    }

    /// Those of the plan in force, and those that requests under way still need.
    package var all: [ServiceRuntime] { current.runtimes }

    /// What all services have counted since the start, those among them that are gone.
    package func total(of figure: ServiceFigure) -> Int {
        let (runtimes, past) = current
        return runtimes.reduce(past[figure] ?? 0) { $0 + $1.count(of: figure) }
    }

    /// Taken together, so that a service which goes meanwhile is counted once.
    private var current: (runtimes: [ServiceRuntime], past: [ServiceFigure: Int]) {
        let (unused, runtimes, past) = state.withLock { state in
            (state.takeUnused(), Array(state.runtimes.values.values), state.past)
        }
        withExtendedLifetime(unused) {}
        return (runtimes, past)
    }
}
