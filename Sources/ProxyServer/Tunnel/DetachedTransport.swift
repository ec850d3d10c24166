// The way to a client that an exchange has given away, for a tunnel.

import EventLoop

/// Loop-bound. Whoever has it ends it.
package final class DetachedTransport {
    let transport: any Transport
    /// Bytes that the client sent after its head.
    package let received: [UInt8]
    /// Bytes that the client has not taken yet.
    let unsent: [UInt8]
    /// What it is for.
    let waitedFor: WaitedFor
    private let ended: (_ sent: Int, _ error: String?) -> Void

    /// - Parameter ended: writes the log line and gives the connection's place back; called once, with the
    ///   bytes that went to the client and why it was ended, if neither side has done so.
    init(
        _ transport: any Transport,
        received: [UInt8],
        unsent: [UInt8],
        waitedFor: WaitedFor,
        ended: @escaping (_ sent: Int, _ error: String?) -> Void
    ) {
        self.transport = transport
        self.received = received
        self.unsent = unsent
        self.waitedFor = waitedFor
        self.ended = ended
    }

    /// Closes the transport.
    /// - Parameters:
    ///   - sent: bytes that went to the client.
    ///   - error: why it is ended, where neither side has done so.
    func end(sent: Int, error: String?) {
        transport.close(resets: false)
        ended(sent, error)
    }
}

@available(*, unavailable) extension DetachedTransport: Sendable {}
