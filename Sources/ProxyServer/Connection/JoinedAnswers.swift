// Small answers, put together so that one write sends all parts of one, or several to pipelined requests (RFC 9112 section 9.3.2).

import EventLoop

/// One a loop, and empty between its callbacks: a connection that puts an answer here sends it before its callback ends.
/// Loop-bound.
final class JoinedAnswers {
    /// Bytes at most.
    private static let capacity = 64 << 10
    // Owned here and freed in deinit; used on the loop only.
    private let room = UnsafeMutableRawBufferPointer.allocate(byteCount: capacity, alignment: 16)
    private var count = 0

    deinit { room.deallocate() }

    /// Valid until the next change.
    var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: room[..<count]) }

    /// Adds the four parts of an answer, or none of them: false where there is no room.
    func append(
        _ prepared: UnsafeRawBufferPointer,
        _ dynamic: UnsafeRawBufferPointer,
        _ end: UnsafeRawBufferPointer,
        _ body: UnsafeRawBufferPointer
    ) -> Bool {
        let added = prepared.count &+ dynamic.count &+ end.count &+ body.count
        guard added <= Self.capacity &- count, let base = room.baseAddress else { return false }
        // There is room for all of them, as compared above.
        var place = base + count
        place = Self.copy(prepared, to: place)
        place = Self.copy(dynamic, to: place)
        place = Self.copy(end, to: place)
        _ = Self.copy(body, to: place)
        count &+= added
        return true
    }

    /// Writes the four parts of an answer with one call; nil where others wait here, and where there is no room.
    func write(
        _ prepared: UnsafeRawBufferPointer,
        _ dynamic: UnsafeRawBufferPointer,
        _ end: UnsafeRawBufferPointer,
        _ body: UnsafeRawBufferPointer,
        to transport: any Transport
    ) -> IOResult? {
        guard count == 0, append(prepared, dynamic, end, body) else { return nil }
        defer { removeAll() }
        return transport.write(bytes)
    }

    func removeAll() { count = 0 }

    // The caller has compared the lengths.
    @inline(__always)
    private static func copy(_ part: UnsafeRawBufferPointer, to place: UnsafeMutableRawPointer)
        -> UnsafeMutableRawPointer
    {
        guard let source = part.baseAddress else { return place }
        place.copyMemory(from: source, byteCount: part.count)
        return place + part.count
    }
}

@available(*, unavailable) extension JoinedAnswers: Sendable {}

extension LoopContext {
    /// As ``JoinedAnswers/write(_:_:_:_:to:)``, without a reference that a connection would have to count.
    func writeJoined(
        _ prepared: UnsafeRawBufferPointer,
        _ dynamic: UnsafeRawBufferPointer,
        _ end: UnsafeRawBufferPointer,
        _ body: UnsafeRawBufferPointer,
        to transport: any Transport
    ) -> IOResult? {
        joined.write(prepared, dynamic, end, body, to: transport)
    }
}

extension Connection {
    /// A longer body is not copied, but written with what was put together before it.
    static let joinLimit = 16 << 10

    /// Whether the answer to the request under way may wait for those behind it in the buffer.
    func mayJoin(_ bodyCount: Int) -> Bool {
        (isFollowed || hasJoined) && bodyCount <= Self.joinLimit && keepAlive
    }

    /// Sends what has been put together; what the socket does not take waits in the queue, before whatever comes next.
    func flushJoined() {
        guard hasJoined else { return }
        hasJoined = false
        let joined = context.joined
        defer { joined.removeAll() }
        guard phase != .closed, phase != .taken else { return }
        let bytes = joined.bytes
        var written = 0
        switch transport.write(bytes) {
        case .bytes(let count): written = count
        case .wouldBlock: break
        // The next write or read finds the connection gone.
        case .end, .failed: return
        }
        sent &+= UInt64(written)
        context.counters.add(.bytesOut, UInt64(written))
        guard written < bytes.count else { return }
        output.append(Array(bytes[written...]))
        isBlocked = true
    }
}
