// The state that outlives a reload: services, what demo answers remember, and the latencies that are learned of origins.

package import Configuration
package import DemoMode
import EventLoop
import Policies
package import ServiceCore
import Synchronization

/// State that outlives a reload, by service name: admission, counters, demo answers.
package final class PlanRegistry: Sendable {
    package let services = ServiceRegistry()
    /// What origins took to answer.
    package let latencies = LearnedLatencies()
    private let answerFiles = Mutex(AnswerFiles())
    private let demoStates = Mutex(ByService<DemoState>())
    /// When it all began, in monotonic nanoseconds: outages of demo mode count from it.
    private let began = Monotonic.now()
    private let learned = Mutex<Set<String>>([])

    package init() {}

    /// Those of the newest plan.
    package var files: AnswerFiles {
        get { answerFiles.withLock { $0 } }
        set { answerFiles.exchange(newValue) }
    }

    /// The labels that latencies are learned of by the newest plan.
    var learnedLabels: Set<String> {
        get { learned.withLock { $0 } }
        set { learned.exchange(newValue) }
    }

    /// What the demo answers of a service remember.
    package func demoState(for service: String) -> DemoState {
        demoStates.withLock { $0.value(of: service) { DemoState(began: began) } }
    }

    /// How many services have something that demo answers remember.
    package var demoStateCount: Int { demoStates.withLock { $0.values.count } }

    /// What services have that are not in the plan in force goes as soon as no request needs it. Called when a plan has come
    /// into force, and when all loops have it.
    /// - Parameter keepsLatencies: they are kept in a file, whatever the plan has.
    package func keep(only plan: RoutePlan, keepsLatencies: Bool) {
        // The empty name is forward mode's.
        let names = Set(plan.services.map(\.plan.name)).union([""])
        services.keep(only: names)
        let unused = demoStates.withLock { table in
            table.keep(only: names)
            return table.takeUnused()
        }
        withExtendedLifetime(unused) {}
        if !keepsLatencies { latencies.keep(only: names.union([Configuration.forwardName])) }
    }

    /// Sets back what demo answers, faults and quotas of a service remember, or of all. Any thread.
    /// - Parameter now: nanoseconds, by the clock of outages.
    /// - Returns: how many keys had been drawn for.
    package func resetDemo(service: String?, now: UInt64) -> Int {
        let meant = demoStates.withLock { table in
            table.values.filter { service == nil || $0.key == service }.map(\.value)
        }
        let drawn = meant.reduce(0) { $0 + $1.ordinals.ownKeys }
        for state in meant { state.reset(now: now) }
        services.resetQuotas(of: service)
        return drawn
    }
}

extension Configuration {
    /// The services and endpoints whose origins some latency is learned of, whether it is in force or not, so that demo
    /// mode finds it when it is switched on.
    package var learnedLabels: Set<String> {
        var labels: Set<String> = []
        func add(_ demo: DemoConfiguration?, _ faults: [FaultPolicy], at label: String) {
            let answers = demo.map { $0.rules + [$0.answer] } ?? []
            for policy in answers.map(\.latency) + faults.compactMap(\.latency) {
                if case .learned(let learned) = policy.shape { labels.insert(learned.source ?? label) }
            }
        }
        add(nil, forward.faults, at: Self.forwardName)
        for service in services {
            add(service.demo, service.faults, at: service.name)
            for endpoint in service.endpoints {
                add(endpoint.demo, endpoint.faults, at: RoutePlan.label(service.name, endpoint.name))
            }
        }
        return labels
    }
}

extension RoutePlan {
    /// What learned latencies call an endpoint.
    package static func label(_ service: String, _ endpoint: String) -> String { "\(service)/\(endpoint)" }

    /// Those who learn from what is fetched for a route.
    static func learners(_ label: RouteLabel, _ latencies: LearnedLatencies) -> [LearnedLatency] {
        let names = [label.service] + (label.endpoint == nil ? [] : [label.name])
        return names.filter(label.learned.contains).map(latencies.latency)
    }
}
