// Every event of a circuit breaker in each of its states.

import Policies
import Testing

@testable import ServiceCore

struct CircuitBreakerTests {
    private let policy = BreakerPolicy(failures: 3, window: .nanoseconds(100), pause: .nanoseconds(50))

    private func opened(at now: UInt64 = 10) -> CircuitBreaker {
        var breaker = CircuitBreaker()
        for _ in 0..<3 { _ = breaker.failed(isProbe: false, now: now, policy) }
        return breaker
    }

    private func probing() -> CircuitBreaker {
        var breaker = opened(at: 10)
        #expect(breaker.admit(now: 60, policy) == .probe)
        return breaker
    }

    @Test func closedItPassesEverything() {
        var breaker = CircuitBreaker()
        #expect(breaker.admit(now: 0, policy) == .pass)
        #expect(breaker.succeeded(isProbe: false) == false)
        breaker.probeWasGivenUp(now: 0)
        #expect(breaker.state == .closed)
    }

    @Test func failuresInARowOpenIt() {
        var breaker = CircuitBreaker()
        #expect(breaker.failed(isProbe: false, now: 10, policy) == false)
        #expect(breaker.failed(isProbe: false, now: 11, policy) == false)
        #expect(breaker.failed(isProbe: false, now: 12, policy) == true)
        #expect(breaker.state == .open(until: 62))
    }

    @Test func aSuccessEndsTheRow() {
        var breaker = CircuitBreaker()
        for _ in 0..<5 {
            #expect(breaker.failed(isProbe: false, now: 10, policy) == false)
            #expect(breaker.failed(isProbe: false, now: 11, policy) == false)
            #expect(breaker.succeeded(isProbe: false) == false)
        }
        #expect(breaker.state == .closed)
    }

    @Test func failuresFarApartAreNoRow() {
        var breaker = CircuitBreaker()
        for now in stride(from: UInt64(0), to: 1_000, by: 60) {
            #expect(breaker.failed(isProbe: false, now: now, policy) == false)
        }
        #expect(breaker.state == .closed)
    }

    @Test func theWindowSlides() {
        var breaker = CircuitBreaker()
        for now: UInt64 in [0, 90] { #expect(breaker.failed(isProbe: false, now: now, policy) == false) }
        #expect(breaker.failed(isProbe: false, now: 101, policy) == false)
        #expect(breaker.failed(isProbe: false, now: 102, policy) == true, "the last three came within twelve")
    }

    @Test func anEarlierTimeThatComesLaterCounts() {
        var breaker = CircuitBreaker()
        for now: UInt64 in [101, 100] { #expect(breaker.failed(isProbe: false, now: now, policy) == false) }
        #expect(breaker.failed(isProbe: false, now: 99, policy) == true)
    }

    @Test func aProbeOfWhichNobodyHearsIsFollowedByAnother() {
        var breaker = probing()
        #expect(breaker.admit(now: 109, policy) == .refuse)
        #expect(breaker.admit(now: 110, policy) == .probe)
        #expect(breaker.state == .halfOpen(until: 160))
    }

    @Test func openItRefusesUntilItsTime() {
        var breaker = opened(at: 10)
        #expect(breaker.admit(now: 10, policy) == .refuse)
        #expect(breaker.admit(now: 59, policy) == .refuse)
        #expect(breaker.admit(now: 60, policy) == .probe)
        #expect(breaker.state == .halfOpen(until: 110))
    }

    @Test func openItHearsNothingOfEarlierFetches() {
        var breaker = opened(at: 10)
        #expect(breaker.succeeded(isProbe: false) == false)
        #expect(breaker.succeeded(isProbe: true) == false)
        #expect(breaker.failed(isProbe: false, now: 40, policy) == false)
        breaker.probeWasGivenUp(now: 40)
        #expect(breaker.state == .open(until: 60))
    }

    @Test func halfOpenItLetsNobodyElsePass() {
        var breaker = probing()
        #expect(breaker.admit(now: 61, policy) == .refuse)
        #expect(breaker.succeeded(isProbe: false) == false)
        #expect(breaker.failed(isProbe: false, now: 61, policy) == false)
        #expect(breaker.state == .halfOpen(until: 110))
    }

    @Test func theProbeClosesIt() {
        var breaker = probing()
        #expect(breaker.succeeded(isProbe: true) == true)
        #expect(breaker.state == .closed)
        // The failures from before are forgotten.
        #expect(breaker.failed(isProbe: false, now: 61, policy) == false)
    }

    @Test func theProbeOpensItAgain() {
        var breaker = probing()
        #expect(breaker.failed(isProbe: true, now: 70, policy) == true)
        #expect(breaker.state == .open(until: 120))
    }

    @Test func aProbeThatNobodyWaitedForLeavesItToTheNext() {
        var breaker = probing()
        breaker.probeWasGivenUp(now: 70)
        #expect(breaker.admit(now: 70, policy) == .probe)
    }
}
