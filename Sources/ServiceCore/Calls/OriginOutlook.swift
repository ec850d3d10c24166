// The state that a call would find on its way to its origin, in the words of its refusals; nothing is taken or counted.

package import DownloadCore
import HTTPWire
import Policies

/// The state of the way to an origin, in the order in which a call meets it: the origin's circuit breaker, then the
/// slots of the service.
package enum OriginOutlook: Sendable, Equatable {
    /// The origin is asked at once.
    case asked
    /// The call waits for a slot behind this number of others, for at most this number of nanoseconds.
    case waits(behind: Int, atMost: UInt64)
    case refused(FetchError)

    package init(_ match: RouteMatch) {
        let (service, runtime) = (match.route.plan, match.route.runtime)
        if let obstacle = match.obstacle {
            self = .refused(FetchError(obstacle, of: match.route))
        } else if service.breaker != nil, let origin = match.origin?.root, runtime.resilience.leavesAlone(origin) {
            self = .refused(FetchError(leavingAlone: origin, service, runtime.resilience))
        } else {
            self.init(service, runtime.admission)
        }
    }

    /// The state of the slots only, as an upgrade meets them.
    package init(_ service: ServicePlan, _ admission: Admission) {
        switch admission.outlook {
        case .free: self = .asked
        case .queued(let others): self = .waits(behind: others, atMost: admission.limits.wait)
        case .full(let length): self = .refused(FetchError(.queueFull(length: length), service: service))
        }
    }
}

/// The treatment of a call whose origin is left alone, if nothing else may answer it.
package enum ParkingOutlook: Sendable, Equatable {
    /// The call waits for at most this number of nanoseconds.
    case parked(atMost: UInt64)
    case notParked(ParkRefusal)

    /// The treatment of a refused call; nil if the service parks no calls, or none with this error.
    package init?(_ call: ServiceCall, refused error: FetchError) {
        guard let policy = call.match.route.plan.park, let origin = call.match.origin, call.urgency == nil,
            case .unavailable = error
        else { return nil }
        let size = call.parkedSize(content: call.framing.contentBound)
        let refusal = call.match.route.runtime.parked.refusal(of: size, to: origin.root, policy)
        self = refusal.map { .notParked($0) } ?? .parked(atMost: policy.time)
    }
}

extension FetchError {
    /// The refusal of a request while the breaker is open, or while a probe is under way.
    init(leavingAlone origin: String, _ service: ServicePlan, _ resilience: Resilience) {
        let breaker = "the circuit breaker of \(origin) is"
        var reason = "\(breaker) half-open: one request probes whether the origin answers again"
        var seconds = 1
        if case .open(let time) = resilience.breaker(of: origin) {
            // The seconds are rounded up, so that a client that returns on time is not refused again.
            seconds = max(1, Int(clamping: (time + 999_999_999) / 1_000_000_000))
            reason = "\(breaker) open after failures in a row, for another \(seconds) s"
        }
        self = .unavailable(
            "\(service.label): \(reason); see what the origin answers, or change breaker",
            seconds: seconds
        )
    }
}
