// How long a fetch waits for its next attempt, and what a configuration may name as a cause of one.

import Policies
import Testing

struct RetryPolicyTests {
    @Test("waits grow by the factor", arguments: [(1, 100), (2, 300), (3, 900), (4, 2_700)] as [(Int, UInt64)])
    func backoff(_ retry: Int, _ expected: UInt64) {
        let policy = RetryPolicy(count: 9, delay: .nanoseconds(100), backoff: 3, jitter: 0)
        #expect(policy.wait(beforeRetry: retry, draw: 0.5) == expected)
    }

    @Test("no wait is longer than the longest", arguments: [(1, 100), (2, 300), (3, 500), (9, 500)] as [(Int, UInt64)])
    func longestDelay(_ retry: Int, _ expected: UInt64) {
        let policy = RetryPolicy(
            count: 9,
            delay: .nanoseconds(100),
            backoff: 3,
            longestDelay: .nanoseconds(500),
            jitter: 0.2
        )
        #expect(policy.wait(beforeRetry: retry, draw: 0) == expected)
        #expect(policy.wait(beforeRetry: retry, draw: 1) == expected * 8 / 10)
    }

    @Test("jitter only shortens", arguments: [(0.0, 1_000), (0.5, 900), (1.0, 800)] as [(Double, UInt64)])
    func jitter(_ draw: Double, _ expected: UInt64) {
        #expect(
            RetryPolicy(delay: .nanoseconds(1_000), backoff: 2, jitter: 0.2).wait(beforeRetry: 1, draw: draw)
                == expected
        )
    }

    @Test func aWaitHasABound() {
        let policy = RetryPolicy(count: 20, delay: .nanoseconds(60_000_000_000), backoff: 10, jitter: 0)
        #expect(policy.wait(beforeRetry: 20, draw: 0) == 86_400_000_000_000)
        #expect(RetryPolicy(delay: .zero, backoff: 10).wait(beforeRetry: 20, draw: 0) == 0)
    }

    @Test(
        "causes",
        arguments: [
            ("connect", .connect), ("timeout", .timeout), ("content", .content), ("400", .status(400)),
            ("599", .status(599)), ("399", nil), ("600", nil), ("0502", nil), ("5xx", nil), ("", nil), ("Connect", nil),
        ] as [(String, RetryCause?)]
    )
    func causes(_ text: String, _ expected: RetryCause?) { #expect(RetryCause(text) == expected) }

    @Test func presetsHaveTheHabitsOfTheOldLibraries() {
        let (docker, mm) = (RetryPreset.steady.policy, RetryPreset.immediate.policy)
        #expect(docker.wait(beforeRetry: 1, draw: 1) == 3_000_000_000)
        #expect(docker.wait(beforeRetry: 5, draw: 1) == 3_000_000_000)
        #expect(docker.causes == [.connect, .timeout])
        #expect(mm.wait(beforeRetry: 5, draw: 1) == 0)
        #expect(mm.causes == Set([.connect, .timeout, .content] + (400...599).map { .status($0) }))
        for (preset, draw) in [(docker, 0.0), (docker, 0.5), (mm, 0), (mm, 0.5)] {
            #expect(
                preset.wait(beforeRetry: 20, draw: draw) == preset.delay.wholeNanoseconds,
                "it neither grows nor is drawn shorter"
            )
        }
        #expect([docker.count, mm.count] == [0, 0])
        // Neither library counted its retries together.
        #expect(docker.budget == nil && mm.budget == nil)
        #expect(docker.methods == .idempotent && mm.methods == .any)
    }
}
