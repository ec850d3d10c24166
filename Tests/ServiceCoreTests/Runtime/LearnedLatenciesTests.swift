// Learned latencies: whose they are, and what a policy becomes by them.

import DemoMode
import Policies
import ServiceCore
import Testing

private let ms: UInt64 = 1_000_000

@Suite struct LearnedLatenciesTests {
    private static func learned(_ source: String? = nil, otherwise: UInt64 = 0, max: UInt64? = nil) -> LatencyPolicy {
        LatencyPolicy(.learned(LearnedLatencyPolicy(of: source, otherwise: otherwise)), max: max)
    }

    @Test func aPolicyIsMadeOfWhatItsRouteHasLearned() {
        let latencies = LearnedLatencies()
        let policy = Self.learned(otherwise: 5 * ms)
        // While nothing is known.
        #expect(latencies.known(policy, at: "api/user") == policy)
        #expect(policy.quantile(0.5) == 5 * ms)
        latencies.latency(of: "api/user").record(100 * ms)
        latencies.latency(of: "api").record(200 * ms)
        let own = latencies.known(policy, at: "api/user").quantile(0.5)
        #expect((98 * ms...102 * ms).contains(own))
        let named = latencies.known(Self.learned("api"), at: "api/user").quantile(0.5)
        #expect((196 * ms...204 * ms).contains(named))
        #expect(latencies.known(Self.learned("api", max: 150 * ms), at: "x").quantile(0.5) == 150 * ms)
        // Others stay as they are.
        let fixed = LatencyPolicy(.uniform(3...3))
        #expect(latencies.known(fixed, at: "api") == fixed)
    }

    /// A plan's draws stay what they are while more is learned.
    @Test func aPlanKeepsWhatWasKnownWhenItWasMade() {
        let latencies = LearnedLatencies()
        latencies.latency(of: "api").record(100 * ms)
        let known = latencies.known(Self.learned(), at: "api")
        let before = known.quantile(0.5)
        for _ in 0..<100 { latencies.latency(of: "api").record(900 * ms) }
        #expect(known.quantile(0.5) == before)
        #expect(latencies.known(Self.learned(), at: "api").quantile(0.5) > 800 * ms)
    }

    @Test func aServiceIsForgottenWithItsEndpoints() {
        let latencies = LearnedLatencies()
        for name in ["api", "api/user", "apis", "shop"] { latencies.latency(of: name).record(ms) }
        #expect(latencies.count == 4)
        #expect(latencies.forget(service: "api") == 2)
        #expect(latencies.all.map { $0.current.count } == [0, 0, 1, 1])
        #expect(latencies.forget(service: nil) == 2)
        #expect(latencies.count == 0)
    }

    /// A file does not take the place of what was learned since.
    @Test func whatWasKeptFillsOnlyWhatIsEmpty() {
        let latencies = LearnedLatencies()
        latencies.latency(of: "api").record(ms)
        var kept = LatencyHistogram()
        for _ in 0..<3 { kept.record(ms) }
        latencies.fill([("api", kept), ("shop", kept)])
        #expect(latencies.all.map { $0.current.count } == [1, 3])
    }
}
