// The output of a connection that is not written yet, in order: owned bytes, small answers put together, chunks of
// bodies, parts of files.

import CacheStore
import EventLoop
import Glibc

/// How a write ended.
enum WriteOutcome: Equatable {
    /// The queue is empty.
    case drained
    /// The peer takes nothing more now.
    case blocked
    /// The limit was reached first.
    case limited
    /// The connection is of no more use.
    case failed
}

/// Loop-bound through its connection. Memory leaves by `writev`; files, and chunks that lie in one, by `sendfile`.
///
/// A class, since a value in a connection would pay for a check of exclusive access with every use.
final class OutputQueue {
    private enum Segment {
        case bytes([UInt8], from: Int)
        case chunk(Chunk, Range<Int>)
        case file(SharedFile, offset: Int64, count: Int)
    }

    /// A sender waits while more than this is queued.
    static let highWatermark = 256 << 10
    /// The same where bodies have taken most of their memory.
    static let tightWatermark = 64 << 10
    /// A waiting sender continues when no more than this is queued, in bytes.
    static let lowWatermark = 128 << 10
    /// The largest count of bytes for one `sendfile`.
    static let fileWindow = 1 << 20
    /// The most that one connection writes in one callback.
    static let callLimit = 1 << 20
    /// Fewer bytes than this are copied rather than written by themselves.
    static let copyLimit = 8 << 10
    private static let vectorCount = 12
    private static let mergeLimit = 16 << 10

    // Unchecked: no code outside runs while this variable changes, and each access would pay for the check.
    @exclusivity(unchecked) private var segments: [Segment] = []
    /// Whether the transport that the queue is written to copies memory.
    let copiesMemory: Bool
    private var first = 0
    /// Bytes in the queue, those in files included.
    private(set) var count = 0
    /// Bytes written from the queue since the connection began.
    private(set) var written: UInt64 = 0

    /// - Parameter copiesMemory: what the transport says of itself.
    init(copiesMemory: Bool) { self.copiesMemory = copiesMemory }

    var isEmpty: Bool { count == 0 }

    /// Small pieces join the one before, so that a head and its small body are one buffer.
    func append(_ bytes: [UInt8], from start: Int = 0) {
        let added = bytes.count - start
        guard added > 0 else { return }
        count += added
        if start == 0, let last = segments.indices.last, last >= first,
            case .bytes(var before, let from) = segments[last],
            before.count + added <= Self.mergeLimit
        {
            // The queue lets go of the array first, so that appending does not copy it.
            segments[last] = .bytes([], from: 0)
            before.append(contentsOf: bytes)
            segments[last] = .bytes(before, from: from)
        } else {
            segments.append(.bytes(bytes, from: start))
        }
    }

    /// Bytes that are valid during the call only.
    func append(copying bytes: UnsafeRawBufferPointer) {
        guard !bytes.isEmpty else { return }
        if let last = segments.indices.last, last >= first, case .bytes(var before, let from) = segments[last],
            before.count + bytes.count <= Self.mergeLimit
        {
            count += bytes.count
            // As above.
            segments[last] = .bytes([], from: 0)
            before.append(contentsOf: bytes)
            segments[last] = .bytes(before, from: from)
        } else {
            append(Array(bytes))
        }
    }

    func append(_ chunk: Chunk, _ range: Range<Int>) {
        guard !range.isEmpty else { return }
        count += range.count
        segments.append(.chunk(chunk, range))
    }

    func append(_ piece: BodyPiece) {
        switch piece {
        case .bytes(let chunk, let range): append(chunk, range)
        case .file(let file, let offset, let length):
            guard length > 0 else { return }
            count += length
            segments.append(.file(file, offset: offset, count: length))
        }
    }

    /// Writes until the queue is empty, the socket is full, or `limit` bytes are out.
    func write(to transport: any ByteTransport, limit: Int) -> WriteOutcome {
        var left = limit
        while first < segments.count {
            guard left > 0 else { return .limited }
            switch writeOnce(transport) {
            case .bytes(let count):
                left -= count
                advance(by: count)
            case .wouldBlock: return .blocked
            // A file that has become shorter than its piece can only be cut.
            case .end, .truncated, .failed: return .failed
            }
        }
        return .drained
    }

    /// Writes the queue and then `bytes`, which are valid during the call, as far as the socket takes them.
    /// - Returns: how that ended, and how many of `bytes` are out.
    func write(
        to transport: any ByteTransport,
        followedBy bytes: UnsafeRawBufferPointer
    ) -> (WriteOutcome, taken: Int) {
        if isLong {
            let outcome = write(to: transport, limit: Self.callLimit)
            guard outcome == .drained else { return (outcome, 0) }
        }
        let result = withUnsafeTemporaryAllocation(of: iovec.self, capacity: Self.vectorCount) { vectors in
            gather(first, 0, vectors) { start, filled, _ in
                vectors[filled] = iovec(
                    iov_base: UnsafeMutableRawPointer(mutating: bytes.baseAddress),
                    iov_len: bytes.count
                )
                return transport.write(start, count: filled + 1, isFollowed: false)
            }
        }
        switch result {
        case .bytes(let length):
            let queued = min(length, count)
            advance(by: queued)
            let taken = length - queued
            written &+= UInt64(taken)
            return (taken == bytes.count ? .drained : .blocked, taken)
        case .wouldBlock: return (.blocked, 0)
        case .end, .truncated, .failed: return (.failed, 0)
        }
    }

    /// More is queued than leaves with one call that has room for other bytes.
    private var isLong: Bool {
        guard segments.count - first < Self.vectorCount, count < Self.callLimit else { return true }
        return segments[first...].contains { segment in
            switch segment {
            case .bytes: false
            case .chunk(let chunk, let range): file(of: chunk, range) != nil
            case .file: true
            }
        }
    }

    /// Takes the queued bytes out; nil where a file is among them.
    func takeBytes() -> [UInt8]? {
        var bytes: [UInt8] = []
        for segment in segments[first...] {
            switch segment {
            case .bytes(let array, let from): bytes += array[from...]
            case .chunk(let chunk, let range): bytes += chunk.array(range)
            case .file: return nil
            }
        }
        removeAll()
        return bytes
    }

    func removeAll() {
        segments = []
        first = 0
        count = 0
    }

    // MARK: - One call

    private func writeOnce(_ transport: any ByteTransport) -> IOResult {
        switch segments[first] {
        case .file(let file, let offset, let count):
            return transport.sendFile(file.descriptor, offset: offset, count: min(count, Self.fileWindow))
        case .chunk(let chunk, let range):
            if let file = file(of: chunk, range) {
                return transport.sendFile(
                    file.descriptor,
                    offset: chunk.fileOffset(range),
                    count: min(range.count, Self.callLimit)
                )
            }
        case .bytes: break
        }
        return withUnsafeTemporaryAllocation(of: iovec.self, capacity: Self.vectorCount) { vectors in
            gather(first, 0, vectors) { transport.write($0, count: $1, isFollowed: $2) }
        }
    }

    /// Collects the memory segments from `index` on; each one's pointer is valid inside its own nested call,
    /// at most `vectorCount` deep.
    private func gather(
        _ index: Int,
        _ filled: Int,
        _ vectors: UnsafeMutableBufferPointer<iovec>,
        _ write: (UnsafeMutablePointer<iovec>, Int, _ isFollowed: Bool) -> IOResult
    ) -> IOResult {
        func add(_ whole: UnsafeRawBufferPointer) -> IOResult {
            let length = min(whole.count, Self.callLimit)
            vectors[filled] = iovec(iov_base: UnsafeMutableRawPointer(mutating: whole.baseAddress), iov_len: length)
            // A part that was cut must be the last one of the call, or bytes would be left out.
            let next = length < whole.count ? segments.count : index + 1
            return gather(next, filled + 1, vectors, write)
        }
        var isFollowed = false
        if filled < vectors.count, index < segments.count {
            switch segments[index] {
            case .bytes(let array, let from):
                return array.withUnsafeBytes { add(UnsafeRawBufferPointer(rebasing: $0[from...])) }
            case .chunk(let chunk, let range) where file(of: chunk, range) == nil:
                return chunk.withBytes { add(UnsafeRawBufferPointer(rebasing: $0[range])) }
            case .chunk, .file: isFollowed = true
            }
        }
        // The vectors point into segments that the nested calls above hold.
        guard let base = vectors.baseAddress else { return .wouldBlock }
        return write(base, filled, isFollowed)
    }

    /// The file to send a range from; nil if the chunk has no file, or a copy is cheaper.
    private func file(of chunk: Chunk, _ range: Range<Int>) -> MemoryFile? {
        copiesMemory || range.count < Chunk.memfdThreshold ? nil : chunk.file
    }

    private func advance(by count: Int) {
        self.count -= count
        written &+= UInt64(count)
        var left = count
        while left > 0, first < segments.count {
            let length: Int
            switch segments[first] {
            case .bytes(let array, let from):
                length = array.count - from
                if left < length { segments[first] = .bytes(array, from: from + left) }
            case .chunk(let chunk, let range):
                length = range.count
                if left < length { segments[first] = .chunk(chunk, range.lowerBound + left..<range.upperBound) }
            case .file(let file, let offset, let size):
                length = size
                if left < length {
                    segments[first] = .file(file, offset: offset + Int64(left), count: size - left)
                }
            }
            guard left >= length else { return }
            left -= length
            // The segment is let go at once: it may hold the last reference to a chunk.
            segments[first] = .bytes([], from: 0)
            first += 1
        }
        if first == segments.count {
            segments.removeAll(keepingCapacity: segments.capacity <= 64)
            first = 0
        } else if first > 64 {
            segments.removeFirst(first)
            first = 0
        }
    }
}

@available(*, unavailable) extension OutputQueue: Sendable {}

// MARK: - Small answers

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
        var cursor = base + count
        cursor = Self.copy(prepared, to: cursor)
        cursor = Self.copy(dynamic, to: cursor)
        cursor = Self.copy(end, to: cursor)
        _ = Self.copy(body, to: cursor)
        count &+= added
        return true
    }

    /// Writes the four parts of an answer with one call; nil if other answers wait in the buffer, or it has no space.
    func write(
        _ prepared: UnsafeRawBufferPointer,
        _ dynamic: UnsafeRawBufferPointer,
        _ end: UnsafeRawBufferPointer,
        _ body: UnsafeRawBufferPointer,
        to transport: any ByteTransport
    ) -> IOResult? {
        guard count == 0, append(prepared, dynamic, end, body) else { return nil }
        defer { removeAll() }
        return transport.write(bytes)
    }

    func removeAll() { count = 0 }

    // The caller has compared the lengths.
    @inline(__always)
    private static func copy(_ part: UnsafeRawBufferPointer, to cursor: UnsafeMutableRawPointer)
        -> UnsafeMutableRawPointer
    {
        guard let source = part.baseAddress else { return cursor }
        cursor.copyMemory(from: source, byteCount: part.count)
        return cursor + part.count
    }
}

@available(*, unavailable) extension JoinedAnswers: Sendable {}
