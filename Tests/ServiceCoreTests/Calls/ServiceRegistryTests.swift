// The states of services by name: who hears their reports, however many there are, and what is left of one that is gone.

import Policies
import TestSupport
import Testing

@testable import ServiceCore

/// Where the stack of the caller is.
private func stackAddress() -> Int {
    var mark = 0
    return withUnsafeMutablePointer(to: &mark) { Int(bitPattern: $0) }
}

@Suite
struct ServiceRegistryTests {
    private func plan(_ name: String, _ concurrent: Int? = nil) -> ServicePlan {
        ServicePlan(name: name, origin: nil, admission: AdmissionLimits(concurrent: concurrent))
    }

    @Test("a runtime is found again by its service's name")
    func registry() {
        let registry = ServiceRegistry()
        let first = registry.runtime(for: plan("a", 1))
        #expect(registry.runtime(for: plan("a", 2)) === first)
        #expect(registry.runtime(for: plan("b", 2)) !== first)
        #expect(Set(registry.all.map(\.name)) == ["a", "b"])
    }

    @Test("the last of 200,000 reports goes the same way as the first")
    func manyReports() {
        let registry = ServiceRegistry()
        let heard = Monitor((count: 0, first: 0, last: 0))
        registry.tell { name, report in
            guard name == "a", case .breakerOpened = report else { return }
            let address = stackAddress()
            heard.update { heard in
                if heard.count == 0 { heard.first = address }
                heard.count += 1
                heard.last = address
            }
        }
        let resilience = registry.runtime(for: plan("a")).resilience
        let policy = BreakerPolicy(failures: 1, window: .nanoseconds(1_000), pause: .nanoseconds(1_000))
        for number in 0..<200_000 {
            let origin = "http://\(number).test"
            resilience.failed(origin, isProbe: false, policy)
            resilience.succeeded(origin, isProbe: true)
        }
        let (count, first, last) = heard.read { $0 }
        #expect(count == 200_000)
        #expect(first == last, "each report goes deeper than the one before")
    }

    @Test("a service that is gone gives back what it has, and what it has counted stays in the sums")
    func gone() {
        let registry = ServiceRegistry()
        weak var gone: ServiceRuntime?
        do {
            let runtime = registry.runtime(for: plan("a"))
            gone = runtime
            for _ in 0..<3 { runtime.countRedirect() }
            runtime.countAnswer(of: .live)
            registry.runtime(for: plan("b")).countRedirect()
        }
        registry.keep(only: ["a", "b"])
        #expect(gone != nil && registry.total(of: .redirects) == 4)
        registry.keep(only: ["b"])
        #expect(gone == nil && registry.all.map(\.name) == ["b"])
        #expect(registry.total(of: .redirects) == 4 && registry.total(of: .answers(.live)) == 1)
        // It is another one when it comes back.
        registry.runtime(for: plan("a")).countRedirect()
        #expect(registry.total(of: .redirects) == 5)
    }

    @Test(
        "a request that is under way keeps the service, which is the same if it comes back, and goes with the request"
    )
    func underWay() {
        let registry = ServiceRegistry()
        var runtime: ServiceRuntime? = registry.runtime(for: plan("a"))
        registry.keep(only: [])
        #expect(registry.all.count == 1)
        runtime?.countRedirect()
        #expect(registry.runtime(for: plan("a")) === runtime)
        runtime = nil
        #expect(registry.all.isEmpty && registry.total(of: .redirects) == 1)
        _ = registry.runtime(for: plan("a"))
        registry.keep(only: ["a"])
        #expect(registry.all.count == 1, "what is in the plan stays, whoever holds it")
    }

    @Test("20,000 services that come and go leave nothing")
    func many() {
        let registry = ServiceRegistry()
        for round in 0..<20 {
            let names = (0..<1000).map { "\(round)-\($0)" }
            for name in names { registry.runtime(for: plan(name)).countRedirect() }
            registry.keep(only: Set(names))
            #expect(registry.all.count == 1000)
        }
        #expect(registry.total(of: .redirects) == 20_000)
    }
}
