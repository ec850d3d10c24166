// What outlives a reload: the admission, the resilience, the parked calls and the counters of each service, by the service's name.

import EventLoop
package import Policies
import Synchronization

/// One service's state.
///
/// Sendable: admission, resilience, parked calls, windows and the counts of rungs have mutexes of their own, the counters
/// are atomic.
package final class ServiceRuntime: Sendable {
    package let name: String
    package let admission: Admission
    package let resilience: Resilience
    package let parked: ParkedCalls
    package let rates = RateWindows()
    private let rungs = Mutex<[AnswerRung: Int]>([:])
    private let fetches = Atomic<Int>(0)
    private let redirects = Atomic<Int>(0)

    /// - Parameters:
    ///   - now: monotonic nanoseconds.
    ///   - onReport: called on any loop.
    package init(
        name: String,
        limits: AdmissionLimits,
        now: @escaping @Sendable () -> UInt64 = Monotonic.now,
        onReport: @escaping @Sendable (ServiceReport) -> Void = { _ in }
    ) {
        self.name = name
        admission = Admission(limits)
        resilience = Resilience(now: now, onReport: onReport)
        parked = ParkedCalls(admission, now: now, onReport: onReport)
    }

    /// Fetches begun since the start, HEAD checks among them.
    package var fetchCount: Int { fetches.load(ordering: .relaxed) }

    /// Redirects followed since the start.
    package var redirectCount: Int { redirects.load(ordering: .relaxed) }

    package func countRedirect() { redirects.wrappingAdd(1, ordering: .relaxed) }

    /// Answers since the start that a rung of a route with rungs has given.
    package func answerCount(of rung: AnswerRung) -> Int { rungs.withLock { $0[rung] ?? 0 } }

    func countAnswer(of rung: AnswerRung) { rungs.withLock { $0[rung, default: 0] += 1 } }

    package func countFetch() { fetches.wrappingAdd(1, ordering: .relaxed) }
}

/// All services that there have been.
///
/// Sendable: the table is under its own mutex.
package final class ServiceRegistry: Sendable {
    /// A closure right under a mutex would be wrapped once more with each look.
    private final class Listener: Sendable {
        let tell: @Sendable (String, ServiceReport) -> Void

        init(_ tell: @escaping @Sendable (String, ServiceReport) -> Void) { self.tell = tell }
    }

    private let runtimes = Mutex<[String: ServiceRuntime]>([:])
    private let listener = Mutex<Listener?>(nil)
    /// What becomes of the calls of all services.
    package let events = EventHub()

    package init() {}

    /// Whom the reports of services are told, with the service's name.
    /// - Parameter report: called on any loop.
    package func tell(_ report: @escaping @Sendable (String, ServiceReport) -> Void) {
        listener.exchange(Listener(report))
    }

    /// The runtime of a service, made at first sight. One that exists keeps its limits: they change with
    /// ``Admission/update(_:)`` once the plan is in force.
    package func runtime(for plan: ServicePlan) -> ServiceRuntime {
        runtimes.withLock { runtimes in
            if let runtime = runtimes[plan.name] { return runtime }
            let runtime = ServiceRuntime(
                name: plan.name,
                limits: plan.admission,
                onReport: { [weak self, name = plan.name] report in
                    self?.listener.withLock { $0 }?.tell(name, report)
                }
            )
            runtimes[plan.name] = runtime
            return runtime
        }
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

    package var all: [ServiceRuntime] { runtimes.withLock { Array($0.values) } }
}
