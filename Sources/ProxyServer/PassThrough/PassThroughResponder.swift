// Forwards one answer from the origin's connection to the client's, without a task and without a body in between.

import CacheStore
import DownloadCore
import EventLoop
import HTTPWire
import ServiceCore
import Upstream

/// Loop-bound; the fetch holds it, and so does the exchange until its end.
///
/// States: asking → flowing (the head is sent) → ended; asking → discarding (the answer is complete with its head) →
/// ended; from each to ended.
final class PassThroughResponder: EndSink, SynchronousResponder, ListedFetch {
    private enum State { case asking, flowing, discarding, ended }

    /// Bytes that are read away after an answer to HEAD, so that the origin's connection can be used again.
    private static let discardLimit = 65_536

    private let responder: Responder
    private let exchange: Exchange
    private let route: ServiceRoute
    private let ask: PassThroughRequest
    /// Monotonic nanoseconds.
    private let began = Monotonic.now()
    private var state = State.asking
    private var handle: (any FetchHandle)?
    /// By which an operator finds the fetch.
    private var listing: FetchListing?
    /// The origin waits until the client has taken more.
    private var isHeld = false
    private var discarded = 0

    init(responder: Responder, exchange: Exchange, route: ServiceRoute, ask: PassThroughRequest) {
        self.responder = responder
        self.exchange = exchange
        self.route = route
        self.ask = ask
    }

    /// Asks the origin. False where that has to wait; nothing was sent then.
    func begin(from source: any FetchSource) -> Bool {
        // Registered before the request is sent, so that an operator can end the fetch from its beginning.
        listing = responder.core.forwarder.listing(of: self, ask)
        guard let handle = source.startWithoutWaiting(ask.request, sink: self) else { return false }
        self.handle = handle
        exchange.responder = self
        return true
    }

    // MARK: - From the origin

    /// They are written to the client or queued; what that may end is the client's connection.
    var acceptsReentrantBytes: Bool { true }

    func received(interim head: ResponseHead) {
        if state == .asking { Responder.forward(interim: head, route.rewriting, via: responder.plan.via, exchange) }
    }

    func received(_ head: ResponseHead, framing: BodyFraming) {
        guard state == .asking else { return }
        let forwardReason = responder.core.forwarder.forwardReason(of: ask, head)
        let originTime = Monotonic.now() &- began
        // Before the head is sent: where the client has left, that ends this.
        state = .flowing
        let hasContent = handle?.hasContent ?? false
        if route.rewriting.secrets.isEmpty,
            responder.forwardHead(
                head,
                framing,
                forwardReason,
                originTime: originTime,
                hasContent: hasContent,
                exchange
            )
        {
            return
        }
        var answer = responder.core.forwarder.answer(ask, head, framing, forwardReason)
        answer.originTime = originTime
        let hasBody = ask.method != .head && head.status != 304
        state = hasBody ? .flowing : .discarding
        if !hasBody { listing = nil }
        responder.begin(ServiceAnswer(answer: answer), route.rewriting, Fields(), exchange, hasBody: hasBody)
        if !hasBody { exchange.finish() }
    }

    func received(_ bytes: UnsafeRawBufferPointer) -> TransferFlow {
        switch state {
        case .flowing:
            // Where the client has left, that has ended the fetch already.
            guard let hasRoom = try? exchange.pass(bytes) else { return .continue }
            isHeld = !hasRoom
            return hasRoom ? .continue : .pause
        case .discarding:
            discarded += bytes.count
            if discarded > Self.discardLimit {
                handle?.cancel()
                end()
            }
            return .continue
        case .asking, .ended: return .continue
        }
    }

    var supportsSplice: Bool { ask.method == .get }

    func splice(_ count: Int, from source: SpliceSource) -> SplicedContent? {
        guard state == .flowing, let result = exchange.splice(count, from: source) else { return nil }
        isHeld = !exchange.hasRoom
        return SplicedContent(result, isHeld ? .pause : .continue)
    }

    func finished(trailers: Fields) {
        let wasFlowing = state == .flowing
        end()
        if wasFlowing { exchange.finish(trailers: trailers) }
    }

    func failed(_ error: FetchError) {
        switch state {
        case .asking: refuse(error)
        case .flowing: cut(error)
        case .discarding, .ended: end()
        }
    }

    // MARK: - From the client

    func roomMade() {
        guard isHeld else { return }
        isHeld = false
        handle?.resume()
    }

    func clientLeft() {
        guard state != .ended else { return }
        handle?.cancel()
        if state == .asking { refuse(.cancelled) } else { end() }
    }

    // MARK: - The end

    /// An operator ends the fetch.
    func stop(_ error: FetchError) {
        handle?.cancel()
        failed(error)
    }

    /// There is no answer: the client gets what went wrong.
    private func refuse(_ error: FetchError) {
        end()
        let answer = ServiceAnswer(answer: responder.core.forwarder.failure(error, ask))
        responder.begin(answer, route.rewriting, Fields(), exchange, hasBody: false)
    }

    /// The answer ends early: what the client has must not pass as complete.
    private func cut(_ error: FetchError) {
        end()
        exchange.outcome.error = BodyError.source(error.description).description
        exchange.fail()
    }

    private func end() {
        state = .ended
        listing = nil
        handle = nil
    }
}

@available(*, unavailable) extension PassThroughResponder: Sendable {}
