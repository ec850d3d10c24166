// Upgrade to another protocol: the request goes to the origin as a transfer, and only after its 101 there is a tunnel.

package import EventLoop
package import HTTPWire
package import Upstream

/// One Upgrade request on its way (RFC 9110 section 7.8); loop-bound. The transfer holds it, and so does
/// the exchange until its end.
///
/// States: asking → switched (a 101) → ended; asking → flowing (the head of another answer is sent) →
/// ended; from each to ended.
package final class UpgradeTunnel: TransferDelegate, SynchronousResponder {
    private enum State {
        case asking
        case switched(ResponseHead, SwitchedConnection)
        case flowing
        case failed(UpstreamError)
        case ended
    }

    private let exchange: Exchange
    private let timeout: UInt64?
    /// Adapts the head of an answer for the client, such as by adding Via; hop-by-hop fields are handled here.
    private let prepare: (inout ResponseHead) -> Void
    /// Monotonic nanoseconds.
    private let began = Monotonic.now()
    private var state = State.asking
    /// Nil from its end on.
    private var transfer: Transfer?
    /// The origin waits until the client has taken more.
    private var isHeld = false
    /// The task of the exchange, until there is nothing to wait for.
    private var waiter: UnsafeContinuation<Void, Never>?

    /// - Parameters:
    ///   - timeout: nanoseconds that the tunnel may be idle; nil: no limit.
    ///   - prepare: adapts the heads of the final answer and of interim ones.
    package init(_ exchange: Exchange, timeout: UInt64?, prepare: @escaping (inout ResponseHead) -> Void) {
        self.exchange = exchange
        self.timeout = timeout
        self.prepare = prepare
    }

    /// Sends `request`, and relays the answer: a tunnel after a 101, else an ordinary answer. Ends the exchange.
    /// - Parameter request: an upgrade, with ``requestFields(_:)``.
    /// - Throws: where the origin gave no answer.
    package func run(
        _ request: UpstreamRequest,
        through client: UpstreamClient,
        on loop: isolated EventLoop
    ) async throws(Problem) {
        guard !exchange.isClientGone else { return }
        exchange.context.counters.add(.upstreamRequests)
        // Until the end of the exchange: the client's leaving ends the transfer.
        exchange.responder = self
        transfer = client.start(request, body: nil, delegate: self)
        await withUnsafeContinuation { waiter = $0 }
        // Moved out of `state`, so that this does not hold the connection after its end.
        let outcome = state
        state = .ended
        switch outcome {
        case .switched(let head, let connection): await becomeTunnel(head, connection, on: loop)
        case .failed(let error):
            exchange.context.counters.add(.errorUpstream)
            exchange.outcome.error = error.detail
            throw Problem(error)
        case .asking, .flowing, .ended: break
        }
    }

    private func becomeTunnel(
        _ head: ResponseHead,
        _ connection: SwitchedConnection,
        on loop: isolated EventLoop
    ) async {
        answered(head)
        var answer = adapted(head)
        answer.fields.set(.connection, "upgrade")
        if let upgrade = head.fields.combined(.upgrade) { answer.fields.set(.upgrade, upgrade) }
        exchange.sendHead(answer, body: .none)
        // Where the client has left, the connection is closed at the end of this call.
        guard let client = exchange.detach() else { return exchange.fail() }
        let tunnel = Tunnel(
            on: loop,
            in: exchange.context,
            client: client,
            remote: connection.take(),
            timeout: timeout,
            received: connection.takeReceived()
        )
        _ = await tunnel.run()
    }

    private func answered(_ head: ResponseHead) {
        exchange.outcome.upstreamStatus = head.status
        exchange.outcome.upstreamTime = Monotonic.now() &- began
    }

    private func adapted(_ head: ResponseHead) -> ResponseHead {
        var head = head
        head.fields = HopByHop.forwardable(head.fields, isRequest: false)
        prepare(&head)
        return head
    }

    /// Called when the transfer has ended: resumes the task.
    private func end(_ last: State) {
        state = last
        transfer = nil
        waiter?.resume()
        waiter = nil
    }

    // MARK: - From the origin

    /// They are written to the client or queued; what that may end is the client's connection.
    package var acceptsReentrantBytes: Bool { true }

    package func transfer(_ transfer: Transfer, received interim: ResponseHead) {
        exchange.sendInterim(adapted(interim))
    }

    package func transfer(_ transfer: Transfer, switched head: ResponseHead, to connection: SwitchedConnection) {
        end(.switched(head, connection))
    }

    package func transfer(_ transfer: Transfer, received head: ResponseHead, framing: BodyFraming) {
        answered(head)
        exchange.tell(.failedUpgrade, "the origin answered \(head.status) to it, not 101")
        // Before the head is sent: where the client has left, that ends this.
        state = .flowing
        let length: AnswerLength =
            switch framing {
            case .none: .none
            case .length(let length): .known(Int64(clamping: length))
            case .chunked, .untilClose: .unknown
            }
        exchange.sendHead(adapted(head), body: length)
    }

    package func transfer(_ transfer: Transfer, received bytes: UnsafeRawBufferPointer) -> TransferFlow {
        // Where the client has left, that has ended the transfer already.
        guard let hasRoom = try? exchange.pass(bytes) else { return .continue }
        isHeld = !hasRoom
        return hasRoom ? .continue : .pause
    }

    package func transferFinished(_ transfer: Transfer, trailers: Fields) {
        end(.ended)
        exchange.finish(trailers: trailers)
    }

    package func transfer(_ transfer: Transfer, failed error: UpstreamError) {
        guard case .flowing = state else { return end(.failed(error)) }
        end(.ended)
        // The body is short, malformed or late: the client must not take it for complete.
        exchange.outcome.error = error.detail
        exchange.fail()
    }

    // MARK: - From the client

    package func roomMade() {
        guard isHeld else { return }
        isHeld = false
        transfer?.resume()
    }

    package func clientLeft() {
        // After a 101 the task finds the client gone.
        guard let transfer else { return }
        transfer.cancel()
        end(.ended)
    }
}

@available(*, unavailable) extension UpgradeTunnel: Sendable {}

// MARK: - What may go on

extension UpgradeTunnel {
    /// The fields of a request to the origin: the end-to-end fields, and the client's Upgrade.
    package static func requestFields(_ fields: Fields) -> Fields {
        var result = HopByHop.forwardable(fields, isRequest: true)
        if let upgrade = fields.combined(.upgrade) {
            result.set(.upgrade, upgrade)
            result.set(.connection, "upgrade")
        }
        return result
    }

    /// The protocols that a GET wants to switch to and that a tunnel can carry; nil where there is none, so that
    /// Upgrade is ignored (RFC 9110 section 7.8). HTTP/2 and TLS are for the next hop, and curl asks for h2c by
    /// itself. With any other method Upgrade is ignored, because the request itself matters: it may change state, or
    /// its response may be stored.
    package static func wantedProtocols(_ request: RequestHead, _ framing: BodyFraming) -> String? {
        guard request.method == .get, request.version == .http11, framing == .none || framing == .length(0),
            let text = request.fields.combined(.upgrade),
            HopByHop.connectionOptions(request.fields).contains(where: {
                String(decoding: $0, as: UTF8.self).lowercased() == "upgrade"
            })
        else { return nil }
        let wanted = text.split(separator: ",").filter { member in
            let name = member.lowercased().filter { $0 != " " && $0 != "\t" }
            return !name.isEmpty && name != "h2c" && name != "h2" && !name.hasPrefix("http/") && !name.hasPrefix("tls/")
        }
        return wanted.isEmpty ? nil : wanted.joined(separator: ",")
    }

    /// The answer where the origin is reached by https: its TLS belongs to the transfers, which cannot carry a tunnel.
    package static let unsupportedScheme = Problem(
        status: 501,
        title: "Upgrade over https not supported",
        detail: "an Upgrade is passed on to http origins only; connect to the https origin by CONNECT instead",
        proxyError: "http_upgrade_failed"
    )
}
