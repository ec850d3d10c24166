// The answer of a service that is yet to be sent, with all that changes it on the way to the client.

import DemoMode
import DownloadCore
import EventLoop
import HTTPWire
import ServiceCore

/// Loop-bound. A class, since it may wait for the latency of a fault.
final class MadeAnswer {
    private let result: ServiceAnswer
    /// Of faults that act on it.
    private let effect: FaultEffect?
    /// Fields of cross-origin rules and quotas.
    private let added: Fields
    private let bodies: BodyLog?
    private let match: RouteMatch
    private let responder: Responder

    init(
        _ result: ServiceAnswer,
        _ effect: FaultEffect?,
        _ added: Fields,
        _ bodies: BodyLog?,
        _ match: RouteMatch,
        _ responder: Responder
    ) {
        self.result = result
        self.effect = effect
        self.added = added
        self.bodies = bodies
        self.match = match
        self.responder = responder
    }

    /// Where the client has left, this only ends what there was to send.
    func send(to exchange: Exchange, on loop: isolated EventLoop) async {
        let rewriting = match.route.rewriting
        if let effect {
            await responder.send(result, rewriting, added, exchange, bodies, effect, on: loop)
        } else {
            await responder.send(result, rewriting, added, exchange, bodies, on: loop)
        }
        guard let bodies else { return }
        exchange.tell(bodies, match, result.answer.failure == nil ? result.answer.head : nil)
    }
}

@available(*, unavailable) extension MadeAnswer: Sendable {}
