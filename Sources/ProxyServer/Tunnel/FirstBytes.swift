// What a client sends first in a tunnel that may be read: it decides whether the tunnel is.

import EventLoop
import HTTPWire
import TLS

/// Waits for the first message of a client in its tunnel, within the deadline of a head. Loop-bound, and kept by the loop
/// until it has ended.
///
/// A client that says nothing until then is closed, and its target never asked: where a host's tunnels are read, nothing
/// leaves unread but what is known not to be HTTPS.
final class FirstBytes: IOHandler, LoopMember {
    enum Outcome {
        /// A session begins; the message is nil if it cannot be read.
        case session(ClientHello?)
        /// What came begins no session that can be read.
        case tunnel
        /// The tunnel is over; the text says why, for the log.
        case over(String?)
    }

    /// More is not collected before it is known what it is: a message of the largest length in records of some bytes.
    private static let most = 2 * ClientHello.maximumLength

    private let client: DetachedTransport
    private let context: LoopContext
    private let began = Monotonic.now()
    private var reader = ClientHelloReader()
    /// What the bytes have shown.
    private var decision: Outcome?
    private var outcome: Outcome?
    private var waiter: UnsafeContinuation<Void, Never>?
    var position: Int?

    /// - Parameter client: gets what it has not taken yet, and keeps what comes.
    init(of client: DetachedTransport, in context: LoopContext) {
        self.client = client
        self.context = context
    }

    /// Returns when it is decided; the transport has no handler then.
    func run(on loop: isolated EventLoop) async -> Outcome {
        judge(reader.take(client.received))
        context.add(self)
        client.transport.begin(on: loop, self)
        advance()
        if outcome == nil { await withUnsafeContinuation { waiter = $0 } }
        client.transport.stop()
        context.remove(self)
        return outcome ?? .over(nil)
    }

    func ready(_ readiness: IOReadiness) { advance() }

    private func advance() {
        guard outcome == nil else { return }
        guard client.writeUnsent() else { return finish(.over(nil)) }
        while decision == nil {
            let result = withUnsafeTemporaryAllocation(byteCount: 16 << 10, alignment: 1) { buffer in
                let result = client.transport.read(into: buffer)
                if case .bytes(let count) = result { take(UnsafeRawBufferPointer(rebasing: buffer[..<count])) }
                return result
            }
            switch result {
            case .bytes: break
            case .wouldBlock: return client.transport.watch(client.unsent.isEmpty ? .read : [.read, .write])
            case .end, .truncated, .failed: return finish(.over(nil))
            }
        }
        guard let decision else { return }
        // Whoever goes on with the transport writes something else.
        if client.unsent.isEmpty { finish(decision) } else { client.transport.watch(.write) }
    }

    private func take(_ bytes: UnsafeRawBufferPointer) {
        context.counters.add(.bytesIn, UInt64(bytes.count))
        client.received.append(contentsOf: bytes)
        judge(client.received.count > Self.most ? .malformed : reader.take(bytes))
    }

    private func judge(_ reading: ClientHello.Reading) {
        switch reading {
        case .incomplete: break
        case .notTLS: decision = .tunnel
        case .malformed: decision = .session(nil)
        case .hello(let hello):
            let isServed = hello.protocols.isEmpty || hello.protocols.contains("http/1.1")
            decision = isServed ? .session(hello) : .tunnel
        }
    }

    private func finish(_ outcome: Outcome) {
        guard self.outcome == nil else { return }
        self.outcome = outcome
        waiter?.resume()
        waiter = nil
    }

    // MARK: - For the loop

    func sweep(now: UInt64, elapsed: UInt64) {
        guard now > began, now - began > context.settings.headTimeout else { return }
        context.counters.add(.errorTimeout)
        let what =
            decision != nil
            ? "did not take the answer to CONNECT"
            : client.received.isEmpty ? "sent nothing" : "sent no whole ClientHello"
        finish(.over("the client \(what) within limits.head_timeout, in a tunnel that is read (forward.intercept)"))
    }

    /// Nothing was asked yet: the client is not waited for, if there is no patience.
    func drainBegan() { if context.isImpatient(since: began) { finish(.over(nil)) } }

    /// What the client will ask is not known.
    var mayChangeStore: Bool { true }

    var waitedFor: WaitedFor? { nil }

    func cut() { finish(.over(nil)) }
}

@available(*, unavailable) extension FirstBytes: Sendable {}
