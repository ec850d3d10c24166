// The transport to a client that an exchange gives up for a tunnel.

import EventLoop

/// A transport without an exchange; its owner ends it. Loop-bound.
package final class DetachedTransport {
    let transport: any ByteTransport
    /// Bytes that the client sent after its head.
    package let received: [UInt8]
    /// Bytes that the client has not taken yet.
    let unsent: [UInt8]
    /// The exchange that the end of the daemon waits for.
    let waitedFor: WaitedFor
    private let ended: (_ sent: Int, _ error: String?) -> Void

    /// - Parameter ended: writes the log line and frees the connection's slot; called once, with the bytes that were
    ///   sent to the client, and with the reason if neither side has ended the tunnel.
    init(
        _ transport: any ByteTransport,
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
    ///   - sent: the number of bytes that were sent to the client.
    ///   - error: the reason for the log; nil if one of the sides has ended the tunnel.
    ///   - resets: the client sees that the tunnel broke off.
    func end(sent: Int, error: String?, resets: Bool = false) {
        transport.close(resets: resets)
        ended(sent, error)
    }
}

@available(*, unavailable) extension DetachedTransport: Sendable {}
