// A growing body: one writer on one loop, readers on any loop, a window in memory and, where it spills, a file behind it.

import EventLoop
import HTTPWire
import Synchronization

/// Sendable: everything that changes is in `state`, under its mutex; waiters and the writer are woken outside of it.
final class Fill: Sendable {
    private struct Guarded {
        var fill: FillState
        var trailers = Fields()
        var isEndProven = true
        var flushWaiters: [UnsafeContinuation<Void, any Error>] = []
        var spillError: BodyError?
        /// What has left the window, to be let go of after the mutex.
        var dropped: [FillState.Held] = []
    }

    let expectedLength: Int64?
    let lagLimit: UInt64
    let keepsStart: Bool
    /// It is to be kept, and fits the window: its pieces stay for whoever joins, until it is complete.
    let staysWhole: Bool
    let budget: FillBudget
    private let window: Int
    private let keepsUpTo: Int
    private let spill: SpillFile?
    private let writerLoop: EventLoop
    private let writer: WriterLink
    private let state: Mutex<Guarded>

    init(options: FillOptions, expectedLength: Int64?, loop: EventLoop, writer: WriterLink) {
        self.expectedLength = expectedLength
        lagLimit = options.lagLimit
        keepsStart = options.keepsStart
        let whole = max(options.window, options.spill == nil ? options.keepsUpTo : 0)
        staysWhole = options.keepsStart && expectedLength.map { $0 <= Int64(whole) } ?? false
        window = options.window
        keepsUpTo = options.keepsUpTo
        spill = options.spill
        budget = options.budget
        writerLoop = loop
        self.writer = writer
        var fill = FillState(window: window, spills: spill != nil, keepsStart: options.keepsStart)
        fill.watchesReaders = options.watchesReaders
        fill.keepsAll = options.keepsUpTo > 0
        state = Mutex(Guarded(fill: fill))
    }

    // MARK: - The writer's side

    func append(_ count: Int, in chunk: Chunk) -> WriteVerdict {
        change { guarded in
            guarded.fill.append(count, in: chunk)
            if guarded.fill.keepsAll, !mayKeepAll(guarded.fill.length) { guarded.fill.keepsAll = false }
            settle(&guarded)
            if guarded.fill.mustPause {
                guarded.fill.isPaused = true
                // Who reads only what comes later will not make room by reading.
                settle(&guarded)
            }
            return guarded.fill.isPaused ? .pause : .continue
        }
    }

    func finish(_ end: BodyEnd, trailers: Fields, isProven: Bool = true) {
        change { guarded in
            guard !guarded.fill.isEnded else { return }
            guarded.fill.end = end
            guarded.trailers = trailers
            guarded.isEndProven = isProven
            guarded.fill.isPaused = false
        }
    }

    /// What has come may stay as a whole.
    private func mayKeepAll(_ length: Int64) -> Bool {
        guard length <= Int64(keepsUpTo) else { return false }
        if budget.mayKeep(Int(clamping: max(length, expectedLength ?? 0))) { return true }
        budget.noteRefusal()
        return false
    }

    func stopKeeping() {
        change { guarded in
            guarded.fill.keepsAll = false
            settle(&guarded)
        }
    }

    /// Cuts readers that lag; the writer's loop calls it while it is paused.
    func cutLaggards(now: UInt64) -> Bool {
        change { guarded in
            let isLagging = guarded.fill.cutLaggards(now: now, limit: lagLimit)
            settle(&guarded)
            return isLagging || guarded.fill.isPaused
        }
    }

    var isAbandoned: Bool { state.withLock { Self.isAbandoned($0.fill) } }
    var isPaused: Bool { state.withLock { $0.fill.isPaused } }
    var end: BodyEnd { state.withLock { $0.fill.end } }
    var length: Int64 { state.withLock { $0.fill.length } }
    var trailers: Fields { state.withLock { $0.trailers } }
    var isEndProven: Bool { state.withLock { $0.isEndProven } }
    var readerCount: Int { state.withLock { $0.fill.readers.count { $0.isLive } } }
    var heldBytes: Int { state.withLock { $0.fill.heldBytes } }
    var spillError: BodyError? { state.withLock { $0.spillError } }

    var isFiling: Bool { state.withLock { $0.fill.spills } }
    var isKeptWhole: Bool { state.withLock { $0.fill.keepsAll } }

    private static func isAbandoned(_ fill: FillState) -> Bool {
        !fill.isEnded && (!fill.spills || fill.watchesReaders) && !fill.hasReaders
    }

    // MARK: - The readers' side

    func join() -> Int? {
        state.withLock { guarded in
            if case .failed = guarded.fill.end { return nil }
            return guarded.fill.isJoinable ? guarded.fill.join() : nil
        }
    }

    /// The reader goes on from `position`, also where that has not come yet.
    func seek(_ id: Int, to position: Int64) { state.withLock { $0.fill.readers[id].position = position } }

    func leave(_ id: Int) {
        change { guarded in
            let waiter = guarded.fill.leave(id)
            settle(&guarded)
            if Self.isAbandoned(guarded.fill) { tellWriter { $0.abandoned() } }
            return waiter
        }?.resume()
    }

    func step(_ id: Int, maxBytes: Int) -> ReaderStep {
        change { guarded in
            switch guarded.fill.take(id, maxBytes: maxBytes) {
            case .bytes(let chunk, let range):
                if guarded.fill.isPaused || !guarded.fill.keepsStart { settle(&guarded) }
                return .ready(.piece(.bytes(chunk, range)))
            case .filed(let count):
                guard let spill, let file = spill.file else { return .ready(.failed(.tooSlow)) }
                let offset = spill.offset + guarded.fill.readers[id].position
                let most = file.pieceCount(at: offset, count: min(count, Int64(max(1, maxBytes))))
                return .file(file, offset: offset, count: most)
            case .end: return .ready(.end)
            case .failed(let error): return .ready(.failed(error))
            case .wait: return .ready(.wait)
            }
        }
    }

    /// A file piece has been handed out.
    func advance(_ id: Int, by count: Int) {
        change { guarded in
            guarded.fill.advance(id, by: count)
            if guarded.fill.isPaused { settle(&guarded) }
        }
    }

    func park(_ id: Int, _ waiter: UnsafeContinuation<Void, Never>) {
        let isReady = state.withLock { guarded in
            if guarded.fill.isReady(guarded.fill.readers[id]) { return true }
            guarded.fill.readers[id].waiter = waiter
            return false
        }
        if isReady { waiter.resume() }
    }

    /// Which of the readers that have had this place over time has it now.
    func serial(of id: Int) -> UInt64 { state.withLock { $0.fill.readers[id].serial } }

    /// Wakes a reader whose task is cancelled; any thread. Its place may be another reader's by then.
    func interrupt(_ id: Int, serial: UInt64) {
        let waiter = state.withLock { $0.fill.interrupt(id, serial: serial) }
        waiter?.resume()
    }

    // MARK: - The file

    /// Waits until the file has the whole body.
    /// - Throws: `BodyError` where the body is not complete or cannot be written.
    func flush() async throws {
        try await withUnsafeThrowingContinuation { waiter in
            change { guarded in
                guarded.fill.isFlushing = true
                guarded.flushWaiters.append(waiter)
            }
        }
    }

    /// A reader that begins now can get every byte, unless the source fails later.
    var canServe: Bool {
        state.withLock { guarded in
            if case .failed = guarded.fill.end { false } else { guarded.fill.isJoinable }
        }
    }

    /// What there is of a body that has failed: the bytes of the file, and those behind them where memory has them.
    func salvage() -> (filed: Int64, rest: Chunk?) {
        let (filed, pieces) = state.withLock { guarded in
            let fill = guarded.fill
            return (fill.filed, fill.isJoinable ? fill.held.filter { $0.end > fill.filed } : [])
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

    /// All of the body in one chunk, if it is complete and the window has it.
    func wholeInMemory() -> Chunk? {
        let pieces: [FillState.Held]? = state.withLock { guarded in
            guard case .complete = guarded.fill.end, guarded.fill.windowStart == 0 || guarded.fill.length == 0 else {
                return nil
            }
            return guarded.fill.held
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

    /// Who reads still reads from the whole, so that the pieces need not be there besides.
    private func adopt(_ whole: Chunk) {
        change { guarded in
            let fill = guarded.fill
            // A file takes the pieces one by one.
            guard whole.capacity > 0, fill.windowStart == 0, !fill.spills || fill.filed == fill.length else { return }
            guarded.dropped += fill.held
            guarded.fill.held = [FillState.Held(chunk: whole, start: 0, count: whole.capacity)]
        }
    }

    private func startWriting(_ batch: [FillState.Held]) {
        guard let spill else { return }
        spill.append(batch.map { ($0.chunk, 0..<$0.count) }) { [self] result in
            change { guarded in
                guarded.fill.isWriting = false
                switch result {
                case .success: guarded.fill.filed = batch.last?.end ?? guarded.fill.filed
                case .failure(let error):
                    // The response goes on without being stored.
                    guarded.fill.spills = false
                    guarded.spillError = error
                    if Self.isAbandoned(guarded.fill) { tellWriter { $0.abandoned() } }
                }
                settle(&guarded)
            }
        }
    }

    // MARK: - Changes

    /// Makes a change, then wakes whom it concerns.
    private func change<R: Sendable>(_ body: (inout sending Guarded) -> sending R) -> R {
        var ready: [UnsafeContinuation<Void, Never>] = []
        var batch: [FillState.Held]?
        var flushed: [UnsafeContinuation<Void, any Error>] = []
        var flushError: BodyError?
        // Let go of when this returns, without the mutex.
        var dropped: [FillState.Held] = []
        let result = state.withLock { guarded in
            let result = body(&guarded)
            if !guarded.dropped.isEmpty { swap(&dropped, &guarded.dropped) }
            ready = guarded.fill.readyWaiters()
            batch = guarded.fill.nextToFile()
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
        if case .failed(let error) = guarded.fill.end { return .failure(error) }
        guard guarded.fill.spills else { return .failure(guarded.spillError ?? .abandoned) }
        guard case .complete(let length) = guarded.fill.end else { return nil }
        return guarded.fill.filed == length ? .success(()) : nil
    }

    /// Under the mutex: gives memory back, and tells a paused writer to go on when there is room again.
    private func settle(_ guarded: inout Guarded) {
        guarded.dropped += guarded.fill.trim()
        guarded.fill.window = budget.window(window)
        if guarded.fill.isPaused && guarded.fill.mayResume {
            guarded.fill.isPaused = false
            tellWriter { $0.drained() }
        }
    }

    private func tellWriter(_ message: @escaping @Sendable (BodyWriter) -> Void) {
        writerLoop.submit { [writer] _ in
            if let writer = writer.target { message(writer) }
        }
    }
}

/// A step that may need the disk first.
enum ReaderStep: Sendable {
    case ready(BodyStep)
    case file(SharedFile, offset: Int64, count: Int)
}
