// A call that may be parked: its fetches before and after a wait are told as one call.

import DownloadCore
import HTTPWire

/// Loop-bound; made for one call of a service with `park`.
final class ParkableCall {
    private let place: CallPlace
    private let calls: CallsUnderWay
    private var record: CallRecord?
    private var isSettled = false

    init(_ place: CallPlace, _ calls: CallsUnderWay) {
        self.place = place
        self.calls = calls
    }

    /// A fetch begins: the next attempt of the call that was parked, or a call of its own.
    func begin(_ method: Method, _ path: String, toSend: UInt64?) -> CallRecord {
        if let record, !record.isEnded {
            if record.isParked {
                record.startAgain(in: record.run)
                return record
            }
            // Such as a check of what is stored, which has ended before the fetch.
            record.release()
        }
        let next = CallRecord(place, method, path, toSend: toSend, in: calls, holdsEnd: !isSettled)
        if !isSettled { record = next }
        return next
    }

    /// The call waits for its origin, after a fetch of its own or one that it shared with others.
    /// - Parameter path: what it asks the origin for.
    func park(_ method: Method, _ path: String, why: String) {
        if let record, !record.isEnded { return record.park(why: why) }
        record = CallRecord(
            place,
            method,
            path,
            toSend: nil,
            in: calls,
            phase: .parked,
            holdsEnd: true,
            reason: place.shown(why)
        )
    }

    /// The call is not parked any more, and has its answer.
    /// - Parameters:
    ///   - status: of the answer; nil where there is none.
    ///   - failure: why there is no answer of the origin.
    func settle(_ status: Int?, _ failure: FetchError?) {
        isSettled = true
        guard let record else { return }
        self.record = nil
        guard record.isParked else { return record.release() }
        if let status, failure == nil { return record.answeredByOther(status) }
        record.release()
        record.end(failure.map { .failed($0) } ?? .cancelled, in: record.run)
    }
}

@available(*, unavailable) extension ParkableCall: Sendable {}
