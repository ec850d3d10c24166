// The breakers of many origins, as clients of forward mode may name them.

import Policies
import TestSupport
import Testing

@testable import ServiceCore

@Suite struct BreakerTableTests {
    private let policy = BreakerPolicy(failures: 1, window: .nanoseconds(1_000), pause: .nanoseconds(1_000))

    @Test("origins beyond the table are asked as if there were no breaker, and come in when others are done")
    func bounded() {
        let now = Monitor<UInt64>(1)
        let resilience = Resilience(now: { now.read { $0 } })
        let most = Resilience.maximumBreakers
        for number in 0..<most + 100 { resilience.failed("http://\(number).test", isProbe: false, policy) }
        #expect(resilience.breakerCount == most)
        #expect(resilience.openBreakerCount == most)
        #expect(resilience.leavesAlone("http://0.test"))
        #expect(!resilience.leavesAlone("http://\(most).test"))
        #expect(resilience.breaker(of: "http://\(most).test") == .closed)
        // The time of all of them is over.
        now.update { $0 = 2_000 }
        resilience.failed("http://late.test", isProbe: false, policy)
        #expect(resilience.breakerCount == 1)
        #expect(resilience.leavesAlone("http://late.test"))
    }
}
