// What carries a transfer to its origin and back, as the transfer knows it: neither whose connection it is nor how that
// is spoken to.

import EventLoop
import HTTPWire

/// Carries one transfer after another; loop-bound. What every carrier promises is written in `Transfer+Carrying.swift`.
protocol TransferCarrier: AnyObject {
    /// Where the carrier and its transfer meet.
    var slot: CarrierSlot { get }
    /// The origin's address of the connection in use, such as `127.0.0.1:8080`; nil before there is one.
    var remoteAddress: String? { get }
    /// The delegate wants bytes again, or the source of the request's body has some.
    func resume(receive: Bool, send: Bool)
    /// The transfer has ended: a connection that is not fit for another one is closed.
    func release()
}

extension TransferCarrier {
    /// Whose carrier this is now.
    var transfer: Transfer? { slot.transfer }
    var reader: ResponseReader { slot.reader }
}

/// The transfer that a carrier has now, and what is kept from that one for the next; loop-bound, one for each carrier.
final class CarrierSlot {
    /// Nil between two transfers.
    // Unchecked: it is read and set as a whole, and nobody is called meanwhile.
    @exclusivity(unchecked) var transfer: Transfer?
    /// What has come of the transfer's response.
    let reader = ResponseReader()
    private var timer: LoopTimer?
    /// When the timer fires, in monotonic nanoseconds; nil: it does not run.
    private var firesAt: UInt64?

    init(on loop: EventLoop) {
        // Unowned: the timer is this object's own and ends with it.
        timer = LoopTimer(onThreadOf: loop) { [unowned self] in
            firesAt = nil
            transfer?.timerFired()
        }
    }

    /// Has the transfer hear of its deadlines at `time` or before: the timer runs on from one transfer to the next,
    /// which starts it anew if that was too early.
    /// - Parameter time: monotonic nanoseconds.
    func wake(at time: UInt64) {
        if let firesAt, firesAt <= time { return }
        firesAt = time
        let now = Monotonic.now()
        timer?.start(after: time > now ? time - now : 0)
    }
}

@available(*, unavailable) extension CarrierSlot: Sendable {}
