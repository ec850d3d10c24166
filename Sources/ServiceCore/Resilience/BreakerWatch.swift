// Tells a circuit breaker how one fetch ended, at most once.

import Policies
import Upstream

/// Loop-bound. A class, so that a fetch of a service without a breaker pays for one reference that is nil.
final class BreakerWatch {
    private let resilience: Resilience
    private let origin: String
    private let policy: BreakerPolicy
    private let isProbe: Bool

    /// Nil where the breaker refuses the fetch.
    init?(_ resilience: Resilience, _ origin: String, _ policy: BreakerPolicy) {
        switch resilience.admit(to: origin, policy) {
        case .pass: isProbe = false
        case .probe: isProbe = true
        case .refuse: return nil
        }
        self.resilience = resilience
        self.origin = origin
        self.policy = policy
    }

    /// A final head came. The three statuses of a gateway say that the origin is not there (RFC 9110 section 15.6).
    func answered(_ status: Int) {
        if 502...504 ~= status {
            resilience.failed(origin, isProbe: isProbe, policy)
        } else {
            resilience.succeeded(origin, isProbe: isProbe)
        }
    }

    /// There was no answer.
    func failed(_ error: UpstreamError) {
        switch error.kind {
        // They say nothing about the origin.
        case .request, .requestBody, .addressRefused, .tlsFile, .cancelled, .internal: givenUp()
        default: resilience.failed(origin, isProbe: isProbe, policy)
        }
    }

    /// Nobody waits for the fetch any more.
    func givenUp() {
        if isProbe { resilience.probeWasGivenUp(origin) }
    }
}

@available(*, unavailable) extension BreakerWatch: Sendable {}
