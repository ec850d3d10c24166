// The transport to a client that an exchange gives up for a tunnel.

import EventLoop

/// A transport without an exchange; its owner ends it. Loop-bound.
package final class DetachedTransport {
    let transport: any ByteTransport
    /// Bytes that the client sent after its head.
    package var received: [UInt8]
    /// Bytes that the client has not taken yet.
    private(set) var unsent: [UInt8]
    /// The exchange that the end of the daemon waits for.
    let waitedFor: WaitedFor
    private let ended: (_ sent: Int, _ error: String?) -> Void
    private let handedOver: () -> ConnectedClient

    /// - Parameters:
    ///   - ended: writes the log line and frees the connection's slot; called once, with the bytes that were sent to the
    ///     client, and with the reason if neither side has ended the tunnel.
    ///   - handedOver: called instead if a connection inside of the tunnel goes on: writes the log line, and gives
    ///     the client away with its slot.
    init(
        _ transport: any ByteTransport,
        received: [UInt8],
        unsent: [UInt8],
        waitedFor: WaitedFor,
        ended: @escaping (_ sent: Int, _ error: String?) -> Void,
        handedOver: @escaping () -> ConnectedClient
    ) {
        self.transport = transport
        self.received = received
        self.unsent = unsent
        self.waitedFor = waitedFor
        self.ended = ended
        self.handedOver = handedOver
    }

    /// Writes what the client has not taken yet, as far as it takes it.
    /// - Returns: false if it takes nothing any more.
    func writeUnsent() -> Bool {
        while !unsent.isEmpty {
            switch unsent.withUnsafeBytes({ transport.write($0) }) {
            case .bytes(let count): unsent.removeFirst(count)
            case .wouldBlock: return true
            case .end, .truncated, .failed: return false
            }
        }
        return true
    }

    /// Gives the client away to a connection inside of the tunnel, which owns the transport from now on.
    func handOver() -> ConnectedClient { handedOver() }

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
