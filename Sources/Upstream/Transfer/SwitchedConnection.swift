// A connection to an origin after a protocol switch: its socket, and the bytes that were received already.

import EventLoop

/// Handed over after a 101 (RFC 9110 section 7.8); loop-bound. The socket is closed with this object,
/// unless it has been taken.
package final class SwitchedConnection {
    /// The bytes after the head of the 101, until they are taken.
    private var received: [UInt8]
    // Open until it is taken or this object ends.
    private var descriptor: Int32

    init(_ descriptor: Int32, received: [UInt8]) {
        self.descriptor = descriptor
        self.received = received
    }

    deinit {
        if descriptor >= 0 { Socket.close(descriptor) }
    }

    /// Takes the bytes that came after the head of the 101.
    package func takeReceived() -> [UInt8] {
        defer { received = [] }
        return received
    }

    /// Takes the socket, which is non-blocking; the caller must close it.
    package func take() -> Int32 {
        defer { descriptor = -1 }
        return descriptor
    }
}

@available(*, unavailable) extension SwitchedConnection: Sendable {}
