// A transport that has to agree on a protocol first, and that holds bytes which raise no readiness: it stands for TLS.

import EventLoop
import Glibc
import ServiceCore

@testable import ProxyServer

/// A socket whose client says `[name]` before anything else, and is told the name back. Loop-bound.
final class KnockingTransport: ByteTransport, TransportHandshake {
    private let socket: PlainTransport
    private let names: [String]
    private var isOpen = false
    /// What has come, and was not read.
    private var pending: [UInt8] = []

    /// - Parameter names: of the protocols that there are.
    init(_ socket: AcceptedSocket, names: [String]) {
        self.socket = PlainTransport(socket.descriptor, isLocal: socket.isLocal, copiesMemory: socket.copiesMemory)
        self.names = names
    }

    /// HTTP/1.1 and the toy framing on one listener.
    static let both = ConnectionFactory(
        security: .secure,
        transport: { socket, _ in KnockingTransport(socket, names: ["http/1.1", "frames"]) },
        carrier: { parts, agreed, loop in
            agreed == "frames" ? FramedConnection(on: loop, parts) : Connection(on: loop, parts)
        }
    )

    var handshake: (any TransportHandshake)? { isOpen ? nil : self }
    var isSecure: Bool { true }

    func step() -> HandshakeStep {
        while true {
            switch fill() {
            case .bytes: break
            case .wouldBlock: return .waits(.read)
            case .end, .truncated, .failed: return .failed("the client left before it had knocked")
            }
            guard pending.first == UInt8(ascii: "[") else { return .failed("the client does not knock") }
            guard let end = pending.firstIndex(of: UInt8(ascii: "]")) else { continue }
            let name = String(decoding: pending[1..<end], as: UTF8.self)
            guard names.contains(name) else { return .failed("nobody here speaks \(name)") }
            _ = pending[...end].withUnsafeBytes { socket.write($0) }
            pending.removeFirst(end + 1)
            isOpen = true
            return .done(protocol: name)
        }
    }

    private func fill() -> IOResult {
        var bytes = [UInt8](repeating: 0, count: 16_384)
        let result = bytes.withUnsafeMutableBytes { socket.read(into: $0) }
        if case .bytes(let count) = result { pending += bytes[..<count] }
        return result
    }

    func read(into buffer: UnsafeMutableRawBufferPointer) -> IOResult {
        if pending.isEmpty {
            let result = fill()
            guard case .bytes = result else { return result }
        }
        let count = min(pending.count, buffer.count, 1_000)
        buffer.copyBytes(from: pending[..<count])
        pending.removeFirst(count)
        return .bytes(count)
    }

    var readsAhead: Bool { true }
    var hasPending: Bool { !pending.isEmpty }

    func begin(on loop: isolated EventLoop, _ handler: any IOHandler) { socket.begin(on: loop, handler) }
    func watch(_ wanted: IOReadiness) { socket.watch(wanted) }
    func stop() { socket.stop() }
    func write(_ bytes: UnsafeRawBufferPointer) -> IOResult { socket.write(bytes) }
    func write(_ vectors: UnsafeMutablePointer<iovec>, count: Int, isFollowed: Bool) -> IOResult {
        socket.write(vectors, count: count, isFollowed: isFollowed)
    }
    func sendFile(_ file: Int32, offset: Int64, count: Int) -> IOResult {
        socket.sendFile(file, offset: offset, count: count)
    }
    var copiesMemory: Bool { socket.copiesMemory }
    var takesPipes: Bool { false }
    func empty(_ pipe: SocketPipe, count: Int) -> IOResult { .failed(EOPNOTSUPP) }
    var isHungUp: Bool { socket.isHungUp }
    func askWhetherAnybodyIsThere() { socket.askWhetherAnybodyIsThere() }
    func finishWriting() { socket.finishWriting() }
    func close(resets: Bool) { socket.close(resets: resets) }
}

@available(*, unavailable) extension KnockingTransport: Sendable {}
