// What a call would meet on its way to its origin now, in the words of its refusals; nothing is taken or counted.

package import DownloadCore
import HTTPWire
import Policies

/// In the order in which a call meets it: the circuit breaker of the origin, and the slots of the service.
package enum OriginOutlook: Sendable, Equatable {
    /// It is asked at once.
    case asked
    /// So many requests wait for a slot before it; it waits so many nanoseconds at most.
    case waits(behind: Int, atMost: UInt64)
    case refused(FetchError)

    package init(_ match: RouteMatch) {
        let (service, runtime) = (match.route.plan, match.route.runtime)
        if service.breaker != nil, let origin = match.origin?.root, runtime.resilience.leavesAlone(origin) {
            self = .refused(FetchError(leavingAlone: origin, service, runtime.resilience))
        } else {
            self.init(service, runtime.admission)
        }
    }

    /// Of the slots alone, as an upgrade meets them.
    package init(_ service: ServicePlan, _ admission: Admission) {
        switch admission.outlook {
        case .free: self = .asked
        case .queued(let others): self = .waits(behind: others, atMost: admission.limits.wait)
        case .full(let length): self = .refused(FetchError(.queueFull(length: length), service: service))
        }
    }
}

/// What becomes of a call whose origin is left alone, where nothing else may answer it.
package enum ParkingOutlook: Sendable, Equatable {
    /// It is held for so many nanoseconds at most.
    case parked(atMost: UInt64)
    case notParked(ParkRefusal)

    /// Nil where the service parks no calls, or none that were refused with this error.
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
    /// What a request hears that finds the breaker open, or a probe under way.
    init(leavingAlone origin: String, _ service: ServicePlan, _ resilience: Resilience) {
        let breaker = "the circuit breaker of \(origin) is"
        var reason = "\(breaker) half-open: one request probes whether the origin answers again"
        var seconds = 1
        if case .open(let time) = resilience.breaker(of: origin) {
            // Rounded up: a client that comes when it was told to is not refused again.
            seconds = max(1, Int(clamping: (time + 999_999_999) / 1_000_000_000))
            reason = "\(breaker) open after failures in a row, for another \(time / 1_000_000) ms"
        }
        self = .unavailable(
            "\(service.label): \(reason); see what the origin answers, or change breaker",
            seconds: seconds
        )
    }
}
