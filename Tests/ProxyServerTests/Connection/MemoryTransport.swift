// A transport that is no socket: a script of what the client sends, and what it got.

import EventLoop
import Glibc
import HTTPWire
import TestSupport

@testable import ProxyServer

/// Takes and gives few bytes a call, and refuses every second call for now. The client ends its side when
/// the server has, or when all was read that it sends. Loop-bound.
final class MemoryTransport: ByteTransport {
    struct Result {
        var received: [UInt8] = []
        /// The server ended its side, and what was sent is whole.
        var hasFinished = false
        var isClosed = false
        var isReset = false
        /// Bytes that came from files.
        var sentFromFiles = 0
    }

    /// How the client ends its side, by itself or after the server.
    enum End { case afterServer, orderly, truncated }

    private var unread: ArraySlice<UInt8>
    /// What was taken of a record and not read yet: no readiness tells of it.
    private var pending: ArraySlice<UInt8> = []
    private let record: Int?
    private let end: End
    private let result: Monitor<Result>
    private let step: Int
    private let stutters: Bool
    let copiesMemory: Bool
    private var isRefused = false
    private var hasFinished = false
    private var wanted: IOReadiness = []
    private weak var handler: (any IOHandler)?
    private var timer: LoopTimer?

    /// - Parameters:
    ///   - step: bytes a call at most.
    ///   - stutters: every second call would block.
    ///   - copiesMemory: as in `ByteTransport`.
    ///   - record: bytes that come out of the kernel at once, after one readiness; nil: each byte raises one.
    init(
        _ sent: [UInt8],
        step: Int,
        stutters: Bool,
        copiesMemory: Bool = false,
        record: Int? = nil,
        end: End = .afterServer,
        _ result: Monitor<Result>
    ) {
        unread = sent[...]
        self.record = record
        self.end = end
        self.step = step
        self.stutters = stutters
        self.copiesMemory = copiesMemory
        self.result = result
    }

    func begin(on loop: isolated EventLoop, _ handler: any IOHandler) {
        self.handler = handler
        timer = LoopTimer(on: loop) { [unowned self] in turn() }
    }

    func watch(_ wanted: IOReadiness) {
        self.wanted = wanted
        if wanted != [] { timer?.start(after: 0) }
    }

    func stop() {
        wanted = []
        handler = nil
        timer = nil
    }

    /// As a loop does: called for as long as it is ready.
    private func turn() {
        if wanted.contains(.write) { handler?.ready(.write) }
        if wanted.contains(.read), isReadable { handler?.ready(.read) }
        if wanted.contains(.write) || wanted.contains(.read) && isReadable { timer?.start(after: 0) }
    }

    /// The kernel has bytes, or the end.
    private var isReadable: Bool { !unread.isEmpty || (pending.isEmpty ? hasEnded : record == nil) }

    private var hasEnded: Bool { unread.isEmpty && (hasFinished || end != .afterServer) }

    /// How many of so many bytes this call takes; nil where it would block.
    private func count(_ most: Int) -> Int? {
        if stutters { isRefused.toggle() }
        return isRefused ? nil : min(step, most)
    }

    private func take(_ bytes: UnsafeRawBufferPointer) -> IOResult {
        guard let count = count(bytes.count), count > 0 else { return .wouldBlock }
        result.update { $0.received += bytes[..<count] }
        return .bytes(count)
    }

    func read(into buffer: UnsafeMutableRawBufferPointer) -> IOResult {
        if pending.isEmpty {
            if unread.isEmpty { return !hasEnded ? .wouldBlock : end == .truncated ? .truncated : .end }
            pending = unread.prefix(record ?? min(step, buffer.count))
            unread = unread.dropFirst(pending.count)
        }
        guard let count = count(min(buffer.count, pending.count)) else { return .wouldBlock }
        buffer.copyBytes(from: pending.prefix(count))
        pending = pending.dropFirst(count)
        return .bytes(count)
    }

    var handshake: (any TransportHandshake)? { nil }
    var readsAhead: Bool { record != nil }
    var hasPending: Bool { !pending.isEmpty }

    func write(_ bytes: UnsafeRawBufferPointer) -> IOResult { take(bytes) }

    func write(_ vectors: UnsafeMutablePointer<iovec>, count: Int, isFollowed: Bool) -> IOResult {
        var bytes: [UInt8] = []
        for vector in UnsafeBufferPointer(start: vectors, count: count) {
            bytes += UnsafeRawBufferPointer(start: vector.iov_base, count: vector.iov_len)
        }
        return bytes.withUnsafeBytes { take($0) }
    }

    func sendFile(_ file: Int32, offset: Int64, count: Int) -> IOResult {
        var bytes = [UInt8](repeating: 0, count: count)
        let read = pread(file, &bytes, count, off_t(offset))
        guard read > 0 else { return .end }
        let taken = bytes.withUnsafeBytes { take(UnsafeRawBufferPointer(rebasing: $0[..<read])) }
        if case .bytes(let count) = taken { result.update { $0.sentFromFiles += count } }
        return taken
    }

    var takesPipes: Bool { false }
    func empty(_ pipe: SocketPipe, count: Int) -> IOResult { .failed(EOPNOTSUPP) }

    var isHungUp: Bool { false }
    func askWhetherAnybodyIsThere() {}

    func finishWriting() {
        hasFinished = true
        result.update { $0.hasFinished = true }
        timer?.start(after: 0)
    }

    func close(resets: Bool) {
        stop()
        result.update {
            $0.isClosed = true
            $0.isReset = resets
        }
    }
}

@available(*, unavailable) extension MemoryTransport: Sendable {}

extension LoopContext {
    /// Has the proxy's handler answer what comes over a transport, as if a listener had accepted it.
    func connect(
        _ transport: any ByteTransport,
        from peer: SocketAddress,
        to authority: Authority? = nil,
        over connections: ConnectionFactory = .plain,
        on loop: isolated EventLoop
    ) {
        guard let handler = handler(for: .proxy) else { return }
        let listener = ListenerInfo(role: .proxy, address: peer, security: connections.security)
        let client = ConnectedClient(peer, at: listener, to: authority, isCounted: false)
        let parts = ConnectionParts(context: self, handler: handler, transport: transport, client: client)
        ClientHandshake.begin(parts, by: connections.carrier, refusal: nil, on: loop)
    }
}
