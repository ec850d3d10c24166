// The upgrade to another protocol: the request goes to the origin as a transfer, and a tunnel begins only after its
// 101.

package import EventLoop
package import HTTPWire
package import Upstream

/// One Upgrade request (RFC 9110 section 7.8). Loop-bound; the transfer holds it, and the exchange does until its end.
///
/// States: asking → switched (a 101) → ended; asking → flowing (the head of another answer is sent) → ended; from each
/// to ended.
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
    /// The time at which the request was sent, in monotonic nanoseconds.
    private let began = Monotonic.now()
    private var state = State.asking
    /// The transfer to the origin; nil once it has ended.
    private var transfer: Transfer?
    /// True while the transfer is paused until the client has taken more.
    private var isHeld = false
    /// The task of the exchange, which waits for the 101 or for the end of the transfer.
    private var waiter: UnsafeContinuation<Void, Never>?

    /// - Parameters:
    ///   - timeout: nanoseconds that the tunnel may be idle; nil for no limit.
    ///   - prepare: adapts the heads of the final answer and of interim ones.
    package init(_ exchange: Exchange, timeout: UInt64?, prepare: @escaping (inout ResponseHead) -> Void) {
        self.exchange = exchange
        self.timeout = timeout
        self.prepare = prepare
    }

    /// Sends the request and relays the answer: a tunnel after a 101, else an ordinary answer. Ends the exchange.
    /// - Parameter request: an upgrade with the fields of ``requestFields(_:)``.
    /// - Throws: a problem document if the origin gave no answer.
    package func run(
        _ request: UpstreamRequest,
        through client: UpstreamClient,
        on loop: isolated EventLoop
    ) async throws(Problem) {
        guard !exchange.isClientGone else { return }
        exchange.context.counters.add(.upstreamRequests)
        // The exchange calls this object until its end, so that the transfer ends if the client leaves.
        exchange.responder = self
        transfer = client.start(request, body: nil, delegate: self)
        await withUnsafeContinuation { waiter = $0 }
        // The outcome is moved out of `state`, so that this object does not hold the connection after its end.
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
        // If the client has left, the connection to the origin is closed at the end of this call.
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

    /// Bytes may arrive within a call of this object: they are written to the client or queued, which can end only the
    /// client's connection.
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
        // The state is set before the head is sent: if the client has left, sending ends this object.
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
        // If the client has left, the transfer has ended already.
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
        // The body is incomplete, malformed or late, so the client's connection is closed: it must not take the answer
        // for complete.
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
        // Without a transfer there was a 101: the task of the exchange finds that the client is gone.
        guard let transfer else { return }
        transfer.cancel()
        end(.ended)
    }
}

@available(*, unavailable) extension UpgradeTunnel: Sendable {}

// MARK: - Fields and protocols

extension UpgradeTunnel {
    /// The fields of the request to the origin: the end-to-end fields, and the client's Upgrade.
    package static func requestFields(_ fields: Fields) -> Fields {
        var result = HopByHop.forwardable(fields, isRequest: true)
        if let upgrade = fields.combined(.upgrade) {
            result.set(.upgrade, upgrade)
            result.set(.connection, "upgrade")
        }
        return result
    }

    /// The protocols in Upgrade that a tunnel can carry; nil if there are none, or if the method is not GET, so that
    /// Upgrade is ignored (RFC 9110 section 7.8). HTTP/2 and TLS concern the next hop only, and curl asks for h2c by
    /// itself. With other methods the request itself matters: it may change state, or its response may be stored.
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

    /// The answer if the origin is asked by https: its TLS belongs to transfers, which cannot carry a tunnel.
    package static let unsupportedScheme = Problem(
        status: 501,
        title: "Upgrade over https not supported",
        detail: "an Upgrade is passed on to http origins only; connect to the https origin by CONNECT instead",
        proxyError: "http_upgrade_failed"
    )
}
