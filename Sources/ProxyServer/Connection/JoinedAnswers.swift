// Small answers, put together so that one write sends all parts of one, or several to pipelined requests
// (RFC 9112 section 9.3.2).

import EventLoop

/// One a loop, and empty between its callbacks: a connection that puts an answer here sends it before its
/// callback ends. Loop-bound.
final class JoinedAnswers {
    /// Bytes at most.
    private static let capacity = 64 << 10
    // Owned here and freed in deinit; used on the loop only.
    private let room = UnsafeMutableRawBufferPointer.allocate(byteCount: capacity, alignment: 16)
    private var count = 0

    deinit { room.deallocate() }

    /// Valid until the next change.
    var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: room[..<count]) }

    /// Adds the four parts of an answer, or none of them: false if the buffer has no space.
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

    /// Writes the four parts of an answer with one call; nil if other answers wait in the buffer, or it has no space.
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
