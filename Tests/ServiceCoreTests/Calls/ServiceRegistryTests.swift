// The states of services by name: who hears their reports, however many there are.

import Policies
import TestSupport
import Testing

@testable import ServiceCore

/// Where the stack of the caller is.
private func stackPlace() -> Int {
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
            let place = stackPlace()
            heard.update { heard in
                if heard.count == 0 { heard.first = place }
                heard.count += 1
                heard.last = place
            }
        }
        let resilience = registry.runtime(for: plan("a")).resilience
        let policy = BreakerPolicy(failures: 1, window: 1_000, open: 1_000)
        for number in 0..<200_000 {
            let origin = "http://\(number).test"
            resilience.failed(origin, isProbe: false, policy)
            resilience.succeeded(origin, isProbe: true)
        }
        let (count, first, last) = heard.read { $0 }
        #expect(count == 200_000)
        #expect(first == last, "each report goes deeper than the one before")
    }
}
