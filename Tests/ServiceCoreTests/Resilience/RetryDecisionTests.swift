// Which ends of an attempt are repeated, and after which wait.

import DownloadCore
import HTTPWire
import Policies
import Testing
import Upstream

@testable import ServiceCore

struct RetryDecisionTests {
    private static let policy = RetryPolicy(count: 3, delay: .nanoseconds(1_000_000_000), backoff: 2, jitter: 0)

    private func decide(
        _ end: AttemptEnd,
        _ policy: RetryPolicy = Self.policy,
        retry: Int = 1,
        method: HTTPWire.Method = .get,
        hasSentBody: Bool = false
    ) -> RetryDecision {
        RetryDecision.decide(
            end,
            policy,
            retry: retry,
            method: method,
            hasSentBody: hasSentBody,
            now: 784_111_777,
            draw: 0
        )
    }

    private static func failed(_ kind: UpstreamError.Kind) -> AttemptEnd {
        .failed(.upstream(UpstreamError(kind, detail: "")))
    }

    @Test("statuses", arguments: [(200, false), (500, false), (502, true), (503, true), (504, true), (404, false)])
    func statuses(_ status: Int, _ isRepeated: Bool) {
        let expected = isRepeated ? RetryDecision.retry(after: 1_000_000_000) : .final
        #expect(decide(.head(status: status, retryAfter: nil)) == expected)
    }

    @Test(
        "failures",
        arguments: [
            (.connectionRefused, true), (.unreachable, true), (.nameNotFound, true), (.resolver, true), (.tls, true),
            (.closed, true), (.timeout(.connect), true), (.timeout(.firstByte), true), (.timeout(.total), true),
            (.proxy(nil), true), (.proxy(502), true), (.proxy(503), true), (.proxy(504), true), (.proxy(407), false),
            (.proxy(403), false), (.proxy(508), false), (.certificate, false), (.addressRefused, false),
            (.tlsFile, false), (.truncated, false),
            (.request, false), (.requestBody, false), (.cancelled, false), (.internal, false),
            (.protocolViolation(WireError(status: 502, reason: .headTooLong)), false),
        ] as [(UpstreamError.Kind, Bool)]
    )
    func failures(_ kind: UpstreamError.Kind, _ isRepeated: Bool) {
        #expect((decide(Self.failed(kind)) != .final) == isRepeated)
    }

    @Test func whatNeverReachedTheOriginOfItsOwnIsFinal() {
        for error in [
            FetchError.notAdmitted(""), .unavailable("", seconds: 1), .offline(""), .cancelled, .stopped(""),
            .inner(""),
        ] {
            #expect(decide(.failed(error)) == .final)
        }
    }

    @Test func afterTheLastRetryItIsFinal() {
        let end = AttemptEnd.head(status: 503, retryAfter: nil)
        #expect(decide(end, retry: 3) == .retry(after: 4_000_000_000))
        #expect(decide(end, retry: 4) == .final)
        #expect(decide(end, RetryPolicy(count: 0)) == .final)
    }

    @Test func aMethodThatMayHaveActedIsNotRepeated() {
        let end = AttemptEnd.head(status: 503, retryAfter: nil)
        #expect(decide(end, method: .post) == .final)
        #expect(decide(end, method: .put) != .final)
        #expect(decide(end, method: .delete) != .final)
        var policy = Self.policy
        policy.methods = .any
        #expect(decide(end, policy, method: .post) != .final)
        // Nothing of it was sent.
        #expect(decide(Self.failed(.connectionRefused), method: .post) != .final)
        #expect(decide(Self.failed(.timeout(.connect)), method: .post) != .final)
        #expect(decide(Self.failed(.timeout(.firstByte)), method: .post) == .final)
        // An alert of TLS 1.3 may come after the request.
        #expect(decide(Self.failed(.tls), method: .post) == .final)
        #expect(decide(Self.failed(.closed), method: .post) == .final)
    }

    @Test func contentThatCannotBeReadAgainIsNotSentAgain() {
        #expect(decide(.head(status: 503, retryAfter: nil), method: .put, hasSentBody: true) == .final)
        #expect(decide(Self.failed(.closed), method: .put, hasSentBody: true) == .final)
    }

    @Test(
        "Retry-After",
        arguments: [
            ("0", .retry(after: 1_000_000_000)), ("7", .retry(after: 7_000_000_000)),
            ("30", .retry(after: 30_000_000_000)), ("31", .final), ("99999999999999999999999", .final),
            ("Sun, 06 Nov 1994 08:49:42 GMT", .retry(after: 5_000_000_000)),
            ("Sun, 06 Nov 1994 08:49:30 GMT", .retry(after: 1_000_000_000)),
            ("Sun, 06 Nov 1994 09:49:37 GMT", .final), ("soon", .retry(after: 1_000_000_000)),
            ("-1", .retry(after: 1_000_000_000)),
        ] as [(String, RetryDecision)]
    )
    func retryAfter(_ value: String, _ expected: RetryDecision) {
        #expect(decide(.head(status: 503, retryAfter: value)) == expected)
    }

    @Test func contentIsRepeatedWhereThePolicySaysSo() {
        #expect(decide(.content("is empty")) == .final)
        let policy = RetryPolicy(count: 1, delay: .zero, jitter: 0, causes: [.content])
        #expect(decide(.content("is empty"), policy) == .retry(after: 0))
        #expect(decide(Self.failed(.truncated), policy) == .final)
        #expect(decide(.head(status: 503, retryAfter: nil), policy) == .final)
    }
}

struct RetryBudgetTests {
    private static let second: UInt64 = 1_000_000_000

    private func takeAll(_ budget: inout RetryBudget, now: UInt64) -> Int {
        var count = 0
        while budget.take(now: now) { count += 1 }
        return count
    }

    @Test func aBurstIsAllowedAndThenAShareOfRequests() {
        var budget = RetryBudget()
        budget.earn(0, now: Self.second)
        #expect(takeAll(&budget, now: Self.second) == 10)
        for _ in 0..<100 { budget.earn(0.25, now: Self.second) }
        #expect(takeAll(&budget, now: Self.second) == 25)
    }

    @Test func eachSecondBringsOne() {
        var budget = RetryBudget()
        budget.earn(0, now: Self.second)
        #expect(takeAll(&budget, now: Self.second) == 10)
        #expect(takeAll(&budget, now: Self.second + Self.second / 2) == 0)
        #expect(takeAll(&budget, now: 2 * Self.second) == 1)
        // Time alone fills no more than the reserve.
        #expect(takeAll(&budget, now: 1_000 * Self.second) == 10)
    }

    @Test(
        "a share outside of 0 to 1 is brought to the nearer end",
        arguments: [(Double.nan, 0), (-Double.infinity, 0), (9, 20)]
    )
    func shares(_ share: Double, _ count: Int) {
        var budget = RetryBudget()
        budget.earn(0, now: Self.second)
        #expect(takeAll(&budget, now: Self.second) == 10)
        for _ in 0..<20 { budget.earn(share, now: Self.second) }
        #expect(takeAll(&budget, now: Self.second) == count)
    }

    @Test func whatRequestsBringHasABound() {
        var budget = RetryBudget()
        for _ in 0..<100_000 { budget.earn(1, now: Self.second) }
        #expect(takeAll(&budget, now: Self.second) == 50)
    }
}
