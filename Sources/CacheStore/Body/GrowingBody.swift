// A growing body: one writer on one loop, readers on any loop, a window in memory and, if the body is stored, a file.

import EventLoop
package import HTTPWire
import Synchronization

/// A growing body. Sendable: everything that changes is in `state`, under its mutex; waiters and the writer are woken
/// outside of it.
final class GrowingBody: Sendable {
    private struct Guarded {
        var growing: GrowingBodyState
        var trailers = Fields()
        var isEndProven = true
        var flushWaiters: [UnsafeContinuation<Void, any Error>] = []
        var spillError: BodyError?
        /// The chunks that have left the window; released after the mutex, because their deinit runs code.
        var dropped: [GrowingBodyState.Held] = []
    }

    let expectedLength: Int64?
    let lagLimit: UInt64
    let keepsStart: Bool
    /// A kept body that fits the window keeps its pieces for later readers until it is complete.
    let staysWhole: Bool
    let budget: BodyBudget
    let isAtHand: Bool
    private let window: Int
    private let keepsUpTo: Int
    private let spill: SpillFile?
    private let writerLoop: EventLoop
    private let writer: WriterLink
    private let state: Mutex<Guarded>

    init(options: GrowingBodyOptions, expectedLength: Int64?, loop: EventLoop, writer: WriterLink) {
        self.expectedLength = expectedLength
        lagLimit = options.lagLimit
        keepsStart = options.keepsStart
        let whole = max(options.window, options.spill == nil ? options.keepsUpTo : 0)
        staysWhole = options.keepsStart && expectedLength.map { $0 <= Int64(whole) } ?? false
        isAtHand = options.isAtHand && options.spill == nil && options.keepsUpTo == 0
        window = isAtHand ? BodyBudget.minimumWindow : options.window
        keepsUpTo = options.keepsUpTo
        spill = options.spill
        budget = options.budget
        writerLoop = loop
        self.writer = writer
        var growing = GrowingBodyState(window: window, spills: spill != nil, keepsStart: options.keepsStart)
        growing.watchesReaders = options.watchesReaders
        growing.keepsAll = options.keepsUpTo > 0
        state = Mutex(Guarded(growing: growing))
    }

    // MARK: - The writer's side

    func append(_ count: Int, in chunk: Chunk) -> WriteVerdict {
        change { guarded in
            guarded.growing.append(count, in: chunk)
            if guarded.growing.keepsAll, !mayKeepAll(guarded.growing.length) { guarded.growing.keepsAll = false }
            settle(&guarded)
            if guarded.growing.mustPause || guarded.growing.isSuspended {
                guarded.growing.isPaused = true
                // A reader that starts later in the body does not read these bytes, so that the window is trimmed now.
                settle(&guarded)
            }
            return guarded.growing.isPaused ? .pause : .continue
        }
    }

    func finish(_ end: BodyEnd, trailers: Fields, isProven: Bool = true) {
        change { guarded in
            guard !guarded.growing.isEnded else { return }
            guarded.growing.end = end
            guarded.trailers = trailers
            guarded.isEndProven = isProven
            guarded.growing.isPaused = false
        }
    }

    /// Whether the received bytes may stay in memory as a whole.
    private func mayKeepAll(_ length: Int64) -> Bool {
        guard length <= Int64(keepsUpTo) else { return false }
        if budget.mayKeep(Int(clamping: max(length, expectedLength ?? 0))) { return true }
        budget.noteRefusal()
        return false
    }

    func stopKeeping() {
        change { guarded in
            guarded.growing.keepsAll = false
            settle(&guarded)
        }
    }

    /// Cuts off readers that lag; called on the writer's loop while the writer is paused.
    func cutLaggards(now: UInt64) -> Bool {
        change { guarded in
            let isLagging = guarded.growing.cutLaggards(now: now, limit: lagLimit)
            settle(&guarded)
            return isLagging || guarded.growing.isPaused
        }
    }

    var isAbandoned: Bool { state.withLock { Self.isAbandoned($0.growing) } }
    var isPaused: Bool { state.withLock { $0.growing.isPaused } }
    var end: BodyEnd { state.withLock { $0.growing.end } }
    var length: Int64 { state.withLock { $0.growing.length } }
    var trailers: Fields { state.withLock { $0.trailers } }
    var isEndProven: Bool { state.withLock { $0.isEndProven } }
    var readerCount: Int { state.withLock { $0.growing.readers.count { $0.isLive } } }
    var heldBytes: Int { state.withLock { $0.growing.heldBytes } }
    var spillError: BodyError? { state.withLock { $0.spillError } }

    var isFiling: Bool { state.withLock { $0.growing.spills } }
    var isKeptWhole: Bool { state.withLock { $0.growing.keepsAll } }

    private static func isAbandoned(_ growing: GrowingBodyState) -> Bool {
        !growing.isEnded && (!growing.spills || growing.watchesReaders) && !growing.hasReaders
    }

    // MARK: - The readers' side

    func join() -> Int? {
        let (id, wasSuspended): (Int?, Bool) = state.withLock { guarded in
            if case .failed = guarded.growing.end { return (nil, false) }
            return (guarded.growing.isJoinable ? guarded.growing.join() : nil, guarded.growing.suspendedReaders > 0)
        }
        // A reader wants bytes again.
        if wasSuspended { change { settle(&$0) } }
        return id
    }

    /// Suspends or resumes a reader. While all readers are suspended, the writer pauses.
    func setSuspended(_ id: Int, _ isWanted: Bool) {
        change { guarded in
            guarded.growing.setSuspended(id, isWanted)
            settle(&guarded)
            guard guarded.growing.isSuspended, !guarded.growing.isPaused else { return }
            guarded.growing.isPaused = true
            tellWriter { $0.suspended() }
        }
    }

    /// Moves a reader to `position`, which may lie beyond the received bytes.
    func seek(_ id: Int, to position: Int64) { state.withLock { $0.growing.readers[id].position = position } }

    func leave(_ id: Int) {
        change { guarded in
            let waiter = guarded.growing.leave(id)
            settle(&guarded)
            if Self.isAbandoned(guarded.growing) { tellWriter { $0.abandoned() } }
            return waiter
        }?.resume()
    }

    func step(_ id: Int, maxBytes: Int) -> ReaderStep {
        change { guarded in
            switch guarded.growing.take(id, maxBytes: maxBytes) {
            case .bytes(let chunk, let range):
                if guarded.growing.isPaused || !guarded.growing.keepsStart { settle(&guarded) }
                return .ready(.piece(.bytes(chunk, range)))
            case .filed(let count):
                guard let spill, let file = spill.file else { return .ready(.failed(.tooSlow)) }
                let offset = spill.offset + guarded.growing.readers[id].position
                let most = file.pieceCount(at: offset, count: min(count, Int64(max(1, maxBytes))))
                return .file(file, offset: offset, count: most)
            case .end: return .ready(.end)
            case .failed(let error): return .ready(.failed(error))
            case .wait: return .ready(.wait)
            }
        }
    }

    /// Confirms a file piece that was handed out.
    func advance(_ id: Int, by count: Int) {
        change { guarded in
            guarded.growing.advance(id, by: count)
            if guarded.growing.isPaused { settle(&guarded) }
        }
    }

    func park(_ id: Int, _ waiter: UnsafeContinuation<Void, Never>) {
        let isReady = state.withLock { guarded in
            if guarded.growing.isReady(guarded.growing.readers[id]) { return true }
            guarded.growing.readers[id].waiter = waiter
            return false
        }
        if isReady { waiter.resume() }
    }

    /// The serial number of the reader that has this id at present.
    func serial(of id: Int) -> UInt64 { state.withLock { $0.growing.readers[id].serial } }

    /// Wakes a reader whose task is cancelled; any thread. The serial number distinguishes it from a later reader with
    /// the same id.
    func interrupt(_ id: Int, serial: UInt64) {
        let waiter = state.withLock { $0.growing.interrupt(id, serial: serial) }
        waiter?.resume()
    }

    // MARK: - The file

    /// Waits until the file has the whole body.
    /// - Throws: `BodyError` if the body is not complete or cannot be written.
    func flush() async throws {
        try await withUnsafeThrowingContinuation { waiter in
            change { guarded in
                guarded.growing.isFlushing = true
                guarded.flushWaiters.append(waiter)
            }
        }
    }

    /// Whether a reader that begins now can get every byte, unless the source fails later.
    var canServe: Bool {
        state.withLock { guarded in
            if case .failed = guarded.growing.end { false } else { guarded.growing.isJoinable }
        }
    }

    /// The received bytes of a failed body: the number in the file, and those in memory that follow.
    func salvage() -> (filed: Int64, rest: Chunk?) {
        let (filed, pieces) = state.withLock { guarded in
            let growing = guarded.growing
            return (growing.filed, growing.isJoinable ? growing.held.filter { $0.end > growing.filed } : [])
        }
        let count = pieces.reduce(0) { $0 + Int($1.end - max($1.start, filed)) }
        guard count > 0 else { return (filed, nil) }
        let rest = Chunk(capacity: count, budget: budget)
        for piece in pieces {
            let start = max(piece.start, filed)
            piece.chunk.withBytes { bytes in
                let part = UnsafeRawBufferPointer(rebasing: bytes[Int(start - piece.start)..<piece.count])
                rest.fill(at: Int(start - filed), with: part)
            }
        }
        return (filed, rest)
    }

    /// The whole body in one chunk, if it is complete and in the window.
    func wholeInMemory() -> Chunk? {
        let pieces: [GrowingBodyState.Held]? = state.withLock { guarded in
            guard case .complete = guarded.growing.end, guarded.growing.windowStart == 0 || guarded.growing.length == 0
            else {
                return nil
            }
            return guarded.growing.held
        }
        guard let pieces else { return nil }
        if pieces.count == 1, pieces[0].count == pieces[0].chunk.capacity { return pieces[0].chunk }
        let whole = Chunk(capacity: pieces.reduce(0) { $0 + $1.count }, isKept: true, budget: budget)
        for piece in pieces {
            piece.chunk.withBytes {
                whole.fill(at: Int(piece.start), with: UnsafeRawBufferPointer(rebasing: $0[..<piece.count]))
            }
        }
        adopt(whole)
        return whole
    }

    /// Replaces the pieces by the whole chunk, so that they can be released.
    private func adopt(_ whole: Chunk) {
        change { guarded in
            let growing = guarded.growing
            // A body with a file writes its pieces one by one.
            guard whole.capacity > 0, growing.windowStart == 0, !growing.spills || growing.filed == growing.length
            else { return }
            guarded.dropped += growing.held
            guarded.growing.held = [GrowingBodyState.Held(chunk: whole, start: 0, count: whole.capacity)]
        }
    }

    private func startWriting(_ batch: [GrowingBodyState.Held]) {
        guard let spill else { return }
        spill.append(batch.map { ($0.chunk, 0..<$0.count) }) { [self] result in
            change { guarded in
                guarded.growing.isWriting = false
                switch result {
                case .success: guarded.growing.filed = batch.last?.end ?? guarded.growing.filed
                case .failure(let error):
                    // The transfer continues, but the response is not stored.
                    guarded.growing.spills = false
                    guarded.spillError = error
                    if Self.isAbandoned(guarded.growing) { tellWriter { $0.abandoned() } }
                }
                settle(&guarded)
            }
        }
    }

    // MARK: - Changes

    /// Makes a change under the mutex, then wakes the readers and the writer that it affects.
    private func change<R: Sendable>(_ body: (inout sending Guarded) -> sending R) -> R {
        var ready: [UnsafeContinuation<Void, Never>] = []
        var batch: [GrowingBodyState.Held]?
        var flushed: [UnsafeContinuation<Void, any Error>] = []
        var flushError: BodyError?
        // The chunks are released when this returns, without the mutex.
        var dropped: [GrowingBodyState.Held] = []
        let result = state.withLock { guarded in
            let result = body(&guarded)
            if !guarded.dropped.isEmpty { swap(&dropped, &guarded.dropped) }
            ready = guarded.growing.readyWaiters()
            batch = guarded.growing.nextToFile()
            if !guarded.flushWaiters.isEmpty, let outcome = Self.flushOutcome(guarded) {
                flushed = guarded.flushWaiters
                guarded.flushWaiters = []
                if case .failure(let error) = outcome { flushError = error }
            }
            return result
        }
        for waiter in ready { waiter.resume() }
        for waiter in flushed {
            if let flushError { waiter.resume(throwing: flushError) } else { waiter.resume() }
        }
        if let batch { startWriting(batch) }
        return result
    }

    private static func flushOutcome(_ guarded: Guarded) -> Result<Void, BodyError>? {
        if case .failed(let error) = guarded.growing.end { return .failure(error) }
        guard guarded.growing.spills else { return .failure(guarded.spillError ?? .abandoned) }
        guard case .complete(let length) = guarded.growing.end else { return nil }
        return guarded.growing.filed == length ? .success(()) : nil
    }

    /// Trims the window, and resumes a paused writer when the window has space again. Under the mutex.
    private func settle(_ guarded: inout Guarded) {
        guarded.dropped += guarded.growing.trim()
        guarded.growing.window = budget.window(window)
        if guarded.growing.isPaused && guarded.growing.mayResume {
            guarded.growing.isPaused = false
            tellWriter { $0.drained() }
        }
    }

    private func tellWriter(_ message: @escaping @Sendable (BodyWriter) -> Void) {
        writerLoop.submit { [writer] _ in
            if let writer = writer.target { message(writer) }
        }
    }
}

/// The next step of a reader, which may need the disk first.
enum ReaderStep: Sendable {
    case ready(BodyStep)
    case file(SharedFile, offset: Int64, count: Int)
}

// MARK: - The writing side

/// The writing side of a growing body. Loop-bound: used on the loop that made it. A writer that is released without
/// ending its body fails it.
package final class BodyWriter {
    /// Called on the writer's loop after a `.pause`, as soon as there is room again.
    package var onDrain: (() -> Void)?
    /// Called on the writer's loop when all readers are suspended: the source should stop until ``onDrain``.
    package var onSuspended: (() -> Void)?
    /// Called on the writer's loop when the last reader has left and the body is not stored, or if `watchesReaders` is
    /// set: the fetch may stop.
    package var onAbandoned: (() -> Void)?

    private let growing: GrowingBody
    private var tail: Chunk?
    private var tailUsed = 0
    private var written: Int64 = 0
    private var isEnded = false
    private var lagTimer: LoopTimer?
    private var isSampling = false

    private static let minimumChunk = 16 * 1024
    private static let maximumChunk = 256 * 1024

    init(growing: GrowingBody, link: WriterLink, on loop: isolated EventLoop) {
        self.growing = growing
        link.target = self
        lagTimer = LoopTimer(on: loop) { [link] in link.target?.sample() }
    }

    deinit {
        if !isEnded { growing.finish(.failed(.abandoned), trailers: Fields()) }
    }

    /// Appends a copy of `bytes` with any verdict; after `.pause`, the source should stop until ``onDrain``.
    package func append(_ bytes: UnsafeRawBufferPointer) -> WriteVerdict {
        guard !isEnded, !bytes.isEmpty else { return isEnded || !growing.isPaused ? .continue : .pause }
        var verdict = WriteVerdict.continue
        var rest = bytes[...]
        while !rest.isEmpty {
            let chunk = tailWithRoom(for: rest.count)
            let part = rest.prefix(chunk.capacity - tailUsed)
            chunk.fill(at: tailUsed, with: UnsafeRawBufferPointer(rebasing: part))
            tailUsed += part.count
            written += Int64(part.count)
            verdict = growing.append(part.count, in: chunk)
            rest = rest.dropFirst(part.count)
        }
        if verdict == .pause { startSampling() }
        return verdict
    }

    /// Ends the body as complete; a body that is shorter or longer than its declared length fails as truncated.
    /// - Parameter isProven: false if only the end of a connection marks the end, so that the body must not be stored.
    package func finish(trailers: Fields = Fields(), isProven: Bool = true) {
        guard !isEnded else { return }
        let isShort = growing.expectedLength.map { $0 != written } ?? false
        end(isShort ? .failed(.truncated) : .complete(length: written), trailers: trailers, isProven: isProven)
    }

    /// Ends the body as failed: readers get the bytes that have arrived, then the error.
    package func fail(_ error: BodyError) { end(.failed(error), trailers: Fields()) }

    private func end(_ end: BodyEnd, trailers: Fields, isProven: Bool = true) {
        guard !isEnded else { return }
        isEnded = true
        tail = nil
        lagTimer?.cancel()
        growing.finish(end, trailers: trailers, isProven: isProven)
    }

    private func tailWithRoom(for count: Int) -> Chunk {
        if let tail, tailUsed < tail.capacity { return tail }
        var capacity = max(Self.minimumChunk, min(count, Self.maximumChunk))
        if let length = growing.expectedLength, length > written {
            let left = Int(clamping: length - written)
            if left <= Self.maximumChunk {
                capacity = left
            } else if growing.staysWhole {
                // The chunk is large enough to be sent without a copy. After the first chunk, it is no larger than the
                // bytes so far, because no more may follow.
                capacity = min(Self.maximumChunk, max(Chunk.memfdThreshold, Int(clamping: written)))
            }
        }
        // While the budget is nearly used up, no chunk is larger than the window.
        capacity = min(capacity, max(Self.minimumChunk, growing.budget.window(Self.maximumChunk)))
        // Half of the memory files are left to stored bodies, because a piece lives only as long as its fetch.
        let isWhole = written == 0 && growing.expectedLength == Int64(capacity)
        let files = isWhole ? MemoryFile.limit : MemoryFile.limit / 2
        let chunk = Chunk(capacity: capacity, isKept: growing.staysWhole, files: files, budget: growing.budget)
        tail = chunk
        tailUsed = 0
        return chunk
    }

    // MARK: - Messages from the growing body, on the writer's loop

    func drained() {
        if !isEnded && !growing.isPaused { onDrain?() }
    }

    func suspended() {
        if !isEnded && growing.isPaused { onSuspended?() }
    }

    func abandoned() {
        if !isEnded && growing.isAbandoned { onAbandoned?() }
    }

    // MARK: - Slow readers

    private func startSampling() {
        guard !isSampling, !isEnded else { return }
        isSampling = true
        sample()
    }

    private func sample() {
        guard !isEnded else { return }
        isSampling = growing.cutLaggards(now: Monotonic.now())
        if isSampling { lagTimer?.start(after: max(1, growing.lagLimit / 4)) }
    }
}

@available(*, unavailable) extension BodyWriter: Sendable {}

/// The link from a growing body to its writer, which is not Sendable.
final class WriterLink: @unchecked Sendable {  // `target` is touched on the writer's loop only
    weak var target: BodyWriter?
}
