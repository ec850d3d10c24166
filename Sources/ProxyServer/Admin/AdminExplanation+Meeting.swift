// What a request meets on its way to the origin: the circuit breaker, the slots of its service, and what answers instead.

import AdminAPI
import DownloadCore
import HTTPWire
import ServiceCore

extension AdminExplanation.Meeting {
    /// - Parameters:
    ///   - call: parked where it is refused and its service parks calls; nil for an upgrade, which is not.
    ///   - cache: what the cache would do; nil where it has no part in the request.
    /// - Returns: nil where the origin is asked at once.
    init?(_ outlook: OriginOutlook, _ call: ServiceCall?, _ cache: AdminExplanation.Cache?) {
        switch outlook {
        case .asked: return nil
        case .waits(let others, let most):
            let wait = "for \(most / 1_000_000) ms at most (configuration, max_queue)"
            let before = others == 0 ? "" : ", behind \(others) others"
            self.init(kind: .waits, reason: "the request waits for a slot of its service\(before), \(wait)")
        case .refused(let error):
            self.init(kind: .refused, reason: error.description)
            let chosen = cache?.variants.first { $0.isChosen }
            if error.isOriginFailure, chosen?.staleIfError != nil {
                instead = .stale
            } else if error.isOriginFailure, cache?.otherVariant != nil {
                instead = .otherVariant
            } else if cache?.fallback?.mayAnswer == true {
                instead = .fallback
            } else {
                instead = .nothing
                (status, retryAfter) = (error.status, error.retryAfter)
                switch call.flatMap({ ParkingOutlook($0, refused: error) }) {
                case .parked(let most):
                    instead = .parked
                    parking = "for \(most / 1_000_000_000) s at most (configuration, park)"
                    (status, retryAfter) = (nil, nil)
                case .notParked(let why): parking = why.text
                case nil: break
                }
            }
        }
    }

    /// As lines of a text.
    var lines: [String] {
        guard kind == .refused else { return [reason] }
        switch instead {
        case .stale: return [reason, "the stored response answers instead"]
        case .otherVariant: return [reason, "a variant that the request does not select answers instead"]
        case .fallback: return [reason, "the fallback answers instead"]
        case .parked: return [reason, "the request is parked instead, \(parking ?? "")"]
        case .nothing, nil:
            let later = retryAfter.map { ", with Retry-After: \($0)" } ?? ""
            let unparked = parking.map { ", and is not parked, since \($0)" } ?? ""
            return [reason, "the request is answered \(status ?? 503)\(later)\(unparked)"]
        }
    }
}
