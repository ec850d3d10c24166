// Windows of quotas: what is left, what is one too many, who came back too early, and that the table stays bounded.

import Policies
import ServiceCore
import Testing

@Suite struct RateWindowsTests {
    private static let second: UInt64 = 1_000_000_000
    private static let policy = RateLimitPolicy(limit: 2, window: 10 * second)

    @Test func aWindowHasItsRequests() {
        let windows = RateWindows()
        let seen = [100, 103, 104, 109, 110].map {
            windows.take(Self.policy, scope: "s", client: "a", now: $0)
        }
        #expect(seen.map(\.isOver) == [false, false, true, true, false])
        #expect(seen.map(\.left) == [1, 0, 0, 0, 1])
        #expect(seen.map(\.reset) == [10, 7, 6, 1, 10])
        #expect(seen.map(\.isEarly) == [false, false, false, true, false])
        #expect(windows.refusedCount == 2)
        #expect(windows.earlyCount == 1)
    }

    @Test func aResetBeginsEveryQuotaAnewAndKeepsTheCounts() {
        let windows = RateWindows()
        func isOver() -> Bool { windows.take(Self.policy, scope: "s", client: "a", now: 100).isOver }
        #expect([isOver(), isOver(), isOver()] == [false, false, true])
        windows.reset()
        #expect([isOver(), isOver(), isOver()] == [false, false, true])
        #expect(windows.refusedCount == 2)
    }

    @Test func whoComesBackEarlyIsNewsOnceInAWindow() {
        let windows = RateWindows()
        let policy = RateLimitPolicy(limit: 1, window: 10 * Self.second)
        let news = [0, 1, 2, 3, 10, 11, 12].map { windows.take(policy, scope: "s", client: "a", now: $0).isNews }
        #expect(news == [false, false, true, false, false, false, true])
    }

    @Test func eachClientHasItsOwnUnlessAllHaveOne() {
        for (by, expected) in [(RateLimitPolicy.Client.client, [false, false, false]), (.all, [false, false, true])] {
            let windows = RateWindows()
            let policy = RateLimitPolicy(limit: 2, window: 10 * Self.second, by: by)
            #expect(["a", "b", "c"].map { windows.take(policy, scope: "s", client: $0, now: 5).isOver } == expected)
            // Another scope has another quota.
            #expect(!windows.take(policy, scope: "t", client: "a", now: 5).isOver)
        }
    }

    @Test func aShorterWindowAndAClockThatGoesBackOpenANewOne() {
        let windows = RateWindows()
        #expect(windows.take(Self.policy, scope: "s", client: "a", now: 100).reset == 10)
        let shorter = RateLimitPolicy(limit: 2, window: 3 * Self.second)
        #expect(windows.take(shorter, scope: "s", client: "a", now: 101).reset == 3)
        #expect(windows.take(shorter, scope: "s", client: "a", now: 50).reset == 3)
    }

    @Test func moreClientsThanAreKeptShareAWindow() {
        let windows = RateWindows(most: 3)
        let policy = RateLimitPolicy(limit: 1, window: 10 * Self.second)
        let over = ["a", "b", "c", "d", "e"].map { windows.take(policy, scope: "s", client: $0, now: 1).isOver }
        #expect(over == [false, false, false, false, true])
        // The windows that are over make room.
        #expect(!windows.take(policy, scope: "s", client: "f", now: 11).isOver)
        #expect(!windows.take(policy, scope: "s", client: "g", now: 11).isOver)
    }
}
