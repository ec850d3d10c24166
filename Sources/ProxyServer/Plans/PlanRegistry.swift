// What outlives a reload, and what plans are made with: the state of services, of demo answers and of latencies.

import Configuration
package import DemoMode
import EventLoop
package import ServiceCore
import Synchronization

/// State that outlives a reload, by service name: admission, counters, demo answers.
package final class PlanRegistry: Sendable {
    package let services = ServiceRegistry()
    /// What origins took to answer.
    package let latencies = LearnedLatencies()
    private let answerFiles = Mutex(AnswerFiles())
    private let demoStates = Mutex<[String: DemoState]>([:])
    /// When it all began, in monotonic nanoseconds: outages of demo mode count from it.
    private let began = Monotonic.now()
    private let learned = Mutex<Set<String>>([])

    package init() {}

    /// Those of the newest plan.
    package var files: AnswerFiles {
        get { answerFiles.withLock { $0 } }
        set { answerFiles.exchange(newValue) }
    }

    /// The places that latencies are learned of by the newest plan.
    var learnedPlaces: Set<String> {
        get { learned.withLock { $0 } }
        set { learned.exchange(newValue) }
    }

    /// What the demo answers of a service remember.
    package func demoState(for service: String) -> DemoState {
        demoStates.withLock { table in
            if let known = table[service] { return known }
            let fresh = DemoState(began: began)
            table[service] = fresh
            return fresh
        }
    }

    /// Sets back what demo answers, faults and quotas of a service remember, or of all. Any thread.
    /// - Parameter now: nanoseconds, by the clock of outages.
    /// - Returns: how many keys had been drawn for.
    package func resetDemo(service: String?, now: UInt64) -> Int {
        let meant = demoStates.withLock { table in
            table.filter { service == nil || $0.key == service }.map(\.value)
        }
        let drawn = meant.reduce(0) { $0 + $1.ordinals.ownKeys }
        for state in meant { state.reset(now: now) }
        services.resetQuotas(of: service)
        return drawn
    }
}

/// What the routes of a configuration are made of, besides themselves.
struct RouteParts {
    let configuration: Configuration
    let neighbours: Neighbours
    let registry: PlanRegistry
    let files: AnswerFiles
    /// The places that latencies are learned of.
    let learned: Set<String>
}
