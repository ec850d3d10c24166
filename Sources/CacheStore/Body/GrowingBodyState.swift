// The window and the readers of a growing body, as a value without I/O: `GrowingBody` keeps it under its mutex.

import EventLoop

struct GrowingBodyState {
    /// A chunk of the window: its first `count` bytes are the body's bytes from `start` on.
    struct Held {
        let chunk: Chunk
        let start: Int64
        var count: Int
        var end: Int64 { start + Int64(count) }
    }

    struct Reader {
        /// The number that distinguishes the reader from earlier ones with the same id.
        var serial: UInt64 = 0
        var position: Int64 = 0
        var waiter: UnsafeContinuation<Void, Never>?
        var isLive = true
        /// Whether the task was cancelled, so that the reader must not wait again.
        var isInterrupted = false
        var isCut = false
        /// Whether the reader is suspended.
        var isSuspended = false
        /// The monotonic nanoseconds since which the reader is far behind the fastest; nil if it is not.
        var laggingSince: UInt64?
        /// Whether others wait for the reader.
        var counts: Bool { isLive && !isCut }
    }

    enum Taken {
        case bytes(Chunk, Range<Int>)
        case filed(Int64)
        case end
        case failed(BodyError)
        case wait
    }

    var held: [Held] = []
    var heldBytes = 0
    var length: Int64 = 0
    var end = BodyEnd.open
    var readers: [Reader] = []
    /// The number of suspended readers.
    private(set) var suspendedReaders = 0
    private var lastSerial: UInt64 = 0
    /// The number of bytes that the file has.
    var filed: Int64 = 0
    /// Whether bytes that leave the window go to the file.
    var spills: Bool
    var isWriting = false
    /// Whether all bytes are being written to the file, for a commit.
    var isFlushing = false
    /// Whether the first bytes stay as long as the window has space, for later readers.
    var keepsStart: Bool
    /// Whether the writer is told that the last reader has left, even if a file takes the bytes.
    var watchesReaders = false
    var isPaused = false
    /// The part of the window that the budget grants at present.
    var window: Int
    /// Whether no byte leaves the window or waits for a reader, because all of them are for the memory tier.
    var keepsAll = false

    init(window: Int, spills: Bool, keepsStart: Bool) {
        self.window = window
        self.spills = spills
        self.keepsStart = keepsStart
    }

    var windowStart: Int64 { held.first?.start ?? length }
    var isEnded: Bool { end != .open }
    var hasReaders: Bool { readers.contains { $0.counts } }
    /// Whether a reader that begins now can get every byte.
    var isJoinable: Bool { windowStart <= filed }
    var pendingLimit: Int { spills ? min(2 * 1024 * 1024, 2 * window) : 0 }
    var mustPause: Bool { !isEnded && !keepsAll && heldBytes >= window + pendingLimit }
    /// Whether all readers are suspended, so that no bytes are wanted.
    var isSuspended: Bool {
        suspendedReaders > 0 && !isEnded && hasReaders && readers.allSatisfy { !$0.counts || $0.isSuspended }
    }
    var mayResume: Bool { !isSuspended && hasRoom }
    private var hasRoom: Bool { heldBytes <= (spills ? window + pendingLimit / 2 : window / 2) || isReadToItsEnd }
    /// Whether the window holds only the chunk that the writer is filling, and all readers have read it. The file gets
    /// that chunk when the next one begins.
    private var isReadToItsEnd: Bool {
        held.count <= 1 && (spills || hasReaders && readers.allSatisfy { !$0.counts || $0.position >= length })
    }

    // MARK: - Readers

    mutating func join() -> Int {
        lastSerial += 1
        if let free = readers.firstIndex(where: { !$0.isLive }) {
            readers[free] = Reader(serial: lastSerial)
            return free
        }
        readers.append(Reader(serial: lastSerial))
        return readers.count - 1
    }

    mutating func leave(_ id: Int) -> UnsafeContinuation<Void, Never>? {
        setSuspended(id, false)
        defer { readers[id] = Reader(isLive: false) }
        return readers[id].waiter
    }

    mutating func setSuspended(_ id: Int, _ isWanted: Bool) {
        guard readers[id].isSuspended != isWanted else { return }
        readers[id].isSuspended = isWanted
        suspendedReaders += isWanted ? 1 : -1
    }

    /// The next piece for a reader; a file piece must be confirmed by ``advance(_:by:)``.
    mutating func take(_ id: Int, maxBytes: Int) -> Taken {
        let reader = readers[id]
        if reader.isCut { return .failed(.tooSlow) }
        if reader.position < windowStart {
            return reader.position < filed ? .filed(filed - reader.position) : .failed(.tooSlow)
        }
        guard reader.position < length else {
            return switch end {
            case .open: .wait
            case .complete: .end
            case .failed(let error): .failed(error)
            }
        }
        let piece = held[index(of: reader.position)]
        let lower = Int(reader.position - piece.start)
        let upper = min(piece.count, lower + max(1, maxBytes))
        advance(id, by: upper - lower)
        return .bytes(piece.chunk, lower..<upper)
    }

    mutating func advance(_ id: Int, by count: Int) { readers[id].position += Int64(count) }

    /// Removes the waiter of a reader whose task was cancelled. The serial number must match, because a later reader
    /// may have the same id.
    mutating func interrupt(_ id: Int, serial: UInt64) -> UnsafeContinuation<Void, Never>? {
        guard readers[id].serial == serial else { return nil }
        readers[id].isInterrupted = true
        defer { readers[id].waiter = nil }
        return readers[id].waiter
    }

    /// Removes the waiters that have something to do now.
    mutating func readyWaiters() -> [UnsafeContinuation<Void, Never>] {
        var ready: [UnsafeContinuation<Void, Never>] = []
        for id in readers.indices {
            guard let waiter = readers[id].waiter, isReady(readers[id]) else { continue }
            readers[id].waiter = nil
            ready.append(waiter)
        }
        return ready
    }

    func isReady(_ reader: Reader) -> Bool {
        reader.isInterrupted || reader.isCut || !reader.isLive || isEnded || reader.position < length
    }

    /// The index of the held chunk with the byte at `position`.
    private func index(of position: Int64) -> Int {
        var low = 0
        var high = held.count - 1
        while low < high {
            let middle = (low + high + 1) / 2
            if held[middle].start <= position { low = middle } else { high = middle - 1 }
        }
        return low
    }

    // MARK: - The window

    /// Appends bytes to the last chunk, or in a new one.
    mutating func append(_ count: Int, in chunk: Chunk) {
        if let last = held.last, last.chunk === chunk {
            held[held.count - 1].count += count
        } else {
            held.append(Held(chunk: chunk, start: length, count: count))
        }
        heldBytes += count
        length += Int64(count)
    }

    /// Removes chunks that are not needed from the beginning, and returns them.
    mutating func trim() -> ArraySlice<Held> {
        if keepsAll { return [] }
        let target = isPaused && !spills ? window / 2 : window
        let readTo = readers.reduce(into: length) { least, reader in
            if reader.counts { least = min(least, reader.position) }
        }
        let isRead = hasReaders
        var count = 0
        var dropped = 0
        // The last chunk stays while its writer may add to it.
        for piece in held.dropLast() {
            guard spills ? piece.end <= filed : isRead && piece.end <= readTo else { break }
            guard heldBytes - dropped > target || (!keepsStart && !spills) else { break }
            dropped += piece.count
            count += 1
        }
        guard count > 0 else { return [] }
        let front = held[..<count]
        held.removeFirst(count)
        heldBytes -= dropped
        return front
    }

    /// The chunks to write to the file next, in order; nil if none can be written now.
    mutating func nextToFile() -> [Held]? {
        guard spills, !isWriting else { return nil }
        let isComplete = if case .complete = end { true } else { false }
        let keep: Int64
        if isFlushing && isComplete {
            keep = 0
        } else {
            guard length - filed > Int64(window), !isEnded else { return nil }
            keep = Int64(window / 2)
        }
        var batch: [Held] = []
        // The last chunk is incomplete while the writer adds to it.
        for piece in isComplete ? held[...] : held.dropLast() where piece.end > filed {
            guard length - piece.start > keep, batch.count < 64 else { break }
            batch.append(piece)
        }
        if batch.isEmpty { return nil }
        isWriting = true
        return batch
    }

    // MARK: - Slow readers

    /// Cuts off the readers that have been more than half a window behind the fastest for `limit` nanoseconds.
    /// - Returns: whether a reader still lags, so that another check is needed.
    mutating func cutLaggards(now: UInt64, limit: UInt64) -> Bool {
        guard !spills, !isEnded, !isSuspended else { return false }
        // A reader that waits beyond the received bytes counts as no further than the source.
        let fastest = readers.reduce(Int64(0)) { $1.counts ? max($0, min($1.position, length)) : $0 }
        var isLagging = false
        for id in readers.indices where readers[id].counts {
            if fastest - readers[id].position < Int64(window / 2) {
                readers[id].laggingSince = nil
            } else if let since = readers[id].laggingSince, now &- since >= limit {
                readers[id].isCut = true
            } else {
                if readers[id].laggingSince == nil { readers[id].laggingSince = now }
                isLagging = true
            }
        }
        return isLagging
    }
}
