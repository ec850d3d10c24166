// Tells the circuit breaker of an origin, the calls that wait for it, and those who learn how long it takes, how one fetch
// ended, at most once.

import EventLoop
import Policies
import Upstream

/// Loop-bound. A class, so that a fetch of a service without all three pays for one reference that is nil.
final class OriginWatch {
    private let resilience: Resilience
    private let origin: String
    /// Nil where the service has no breaker.
    private let policy: BreakerPolicy?
    /// Nil where the service parks no calls.
    private let parked: ParkedCalls?
    private let isProbe: Bool
    /// Who learns how long the origin takes.
    private let learners: [LearnedLatency]
    /// Monotonic nanoseconds; 0 where nobody learns.
    private let began: UInt64

    /// Nil where the breaker refuses the fetch.
    init?(
        _ resilience: Resilience,
        _ origin: String,
        _ policy: BreakerPolicy?,
        _ parked: ParkedCalls?,
        _ learners: [LearnedLatency]
    ) {
        switch policy.map({ resilience.admit(to: origin, $0) }) ?? .pass {
        case .pass: isProbe = false
        case .probe: isProbe = true
        case .refuse: return nil
        }
        self.resilience = resilience
        self.origin = origin
        self.policy = policy
        self.parked = parked
        self.learners = learners
        began = learners.isEmpty ? 0 : Monotonic.now()
    }

    /// A final head came. The three statuses of a gateway say that the origin is not there (RFC 9110 section 15.6).
    func answered(_ status: Int) {
        if !learners.isEmpty {
            let now = Monotonic.now()
            for learner in learners { learner.record(now &- began) }
        }
        if 502...504 ~= status {
            if let policy { resilience.failed(origin, isProbe: isProbe, policy) }
        } else {
            if policy != nil { resilience.succeeded(origin, isProbe: isProbe) }
            parked?.originAnswered()
        }
    }

    /// There was no answer.
    func failed(_ error: UpstreamError) {
        switch error.kind {
        // They say nothing about the origin.
        case .proxy(let status?) where status < 500 || status == 508: givenUp()
        case .request, .requestBody, .addressRefused, .tlsFile, .cancelled, .internal: givenUp()
        default: if let policy { resilience.failed(origin, isProbe: isProbe, policy) }
        }
    }

    /// Nobody waits for the fetch any more.
    func givenUp() {
        if isProbe { resilience.probeWasGivenUp(origin) }
    }
}

@available(*, unavailable) extension OriginWatch: Sendable {}
