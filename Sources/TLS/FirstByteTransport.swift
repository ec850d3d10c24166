// A transport for clients of both kinds: TLS if the first byte begins a session, and else plain.

package import EventLoop
package import Glibc

/// A socket whose first byte decides what is spoken over it; loop-bound. It asks for nothing until that byte is there: a
/// client that sends nothing has the deadline of a handshake.
package final class FirstByteTransport: ByteTransport {
    /// The type of a TLS record with a handshake (RFC 8446, section 5.1); no method of HTTP begins with it.
    private static let handshakeRecord: UInt8 = 22

    private let plain: PlainTransport
    private let tls: TLSTransport
    /// What was decided; nil before the first byte.
    private var chosen: (any ByteTransport)?

    /// - Parameters:
    ///   - plain: taken over; it has not begun.
    ///   - tls: over the same transport.
    package init(_ plain: PlainTransport, or tls: TLSTransport) {
        self.plain = plain
        self.tls = tls
    }

    /// What is used now: before the decision TLS, whose handler is called for the first byte, too.
    private var current: any ByteTransport { chosen ?? tls }

    package func begin(on loop: isolated EventLoop, _ handler: any IOHandler) { current.begin(on: loop, handler) }
    package func watch(_ wanted: IOReadiness) { current.watch(wanted) }
    package func stop() { tls.stop() }

    package var handshake: (any TransportHandshake)? { chosen == nil || tls.handshake != nil && isSecure ? self : nil }

    package func read(into buffer: UnsafeMutableRawBufferPointer) -> IOResult { current.read(into: buffer) }
    package var readsAhead: Bool { current.readsAhead }
    package var hasPending: Bool { current.hasPending }
    package func write(_ bytes: UnsafeRawBufferPointer) -> IOResult { current.write(bytes) }
    // Valid during the call, as the protocol says.
    package func write(_ vectors: UnsafeMutablePointer<iovec>, count: Int, isFollowed: Bool) -> IOResult {
        current.write(vectors, count: count, isFollowed: isFollowed)
    }
    package func sendFile(_ file: Int32, offset: Int64, count: Int) -> IOResult {
        current.sendFile(file, offset: offset, count: count)
    }
    package var copiesMemory: Bool { current.copiesMemory }
    package var takesPipes: Bool { current.takesPipes }
    package func empty(_ pipe: SocketPipe, count: Int) -> IOResult { current.empty(pipe, count: count) }
    package var isHungUp: Bool { current.isHungUp }
    package func askWhetherAnybodyIsThere() { current.askWhetherAnybodyIsThere() }
    package func finishWriting() { current.finishWriting() }
    package func close(resets: Bool) { (chosen ?? plain).close(resets: resets) }
}

@available(*, unavailable) extension FirstByteTransport: Sendable {}

extension FirstByteTransport: TransportHandshake {
    package var isSecure: Bool { chosen === tls }
    package var agreement: SecureSession? { isSecure ? tls.agreement : nil }

    package func step() -> HandshakeStep {
        if chosen == nil {
            var first: UInt8 = 0
            switch withUnsafeMutableBytes(of: &first, { plain.peek(into: $0) }) {
            case .wouldBlock: return .waits(.read)
            case .end, .truncated: return .failed("it closed the connection")
            case .failed(let number): return .failed(String(cString: strerror(number)))
            case .bytes: chosen = first == Self.handshakeRecord ? tls : plain
            }
        }
        return isSecure ? tls.step() : .done(protocol: nil)
    }
}
