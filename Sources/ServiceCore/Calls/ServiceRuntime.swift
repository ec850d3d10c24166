// What outlives a reload: the admission of each service and its counters, by the service's name.

import Synchronization

/// One service's state.
///
/// Sendable: the admission has its own mutex, the counter is atomic.
package final class ServiceRuntime: Sendable {
    package let name: String
    package let admission: Admission
    private let fetches = Atomic<Int>(0)

    package init(name: String, limits: AdmissionLimits) {
        self.name = name
        admission = Admission(limits)
    }

    /// Fetches begun since the start, HEAD checks among them.
    package var fetchCount: Int { fetches.load(ordering: .relaxed) }

    package func countFetch() { fetches.wrappingAdd(1, ordering: .relaxed) }
}

/// All services that there have been.
///
/// Sendable: the table is under its own mutex.
package final class ServiceRegistry: Sendable {
    private let runtimes = Mutex<[String: ServiceRuntime]>([:])

    package init() {}

    /// The runtime of a service, made at first sight. One that exists keeps its limits: they change with
    /// ``Admission/update(_:)`` once the plan is in force.
    package func runtime(for plan: ServicePlan) -> ServiceRuntime {
        runtimes.withLock { runtimes in
            if let runtime = runtimes[plan.name] { return runtime }
            let runtime = ServiceRuntime(name: plan.name, limits: plan.admission)
            runtimes[plan.name] = runtime
            return runtime
        }
    }

    package var all: [ServiceRuntime] { runtimes.withLock { Array($0.values) } }
}
