// The writing side of a growing body.

import EventLoop
package import HTTPWire

/// Loop-bound: used on the loop that made it. A writer that goes away without ending its body fails it.
package final class BodyWriter {
    /// Called on the writer's loop after a `.pause`, once there is room again.
    package var onDrain: (() -> Void)?
    /// Called on the writer's loop when the last reader has left and nothing is stored, or where that is watched:
    /// whoever fills may stop.
    package var onAbandoned: (() -> Void)?

    private let fill: Fill
    private var tail: Chunk?
    private var tailUsed = 0
    private var written: Int64 = 0
    private var isEnded = false
    private var lagTimer: LoopTimer?
    private var isSampling = false

    private static let leastChunk = 16 * 1024
    private static let greatestChunk = 256 * 1024

    init(fill: Fill, link: WriterLink, on loop: isolated EventLoop) {
        self.fill = fill
        link.target = self
        lagTimer = LoopTimer(on: loop) { [link] in link.target?.sample() }
    }

    deinit {
        if !isEnded { fill.finish(.failed(.abandoned), trailers: Fields()) }
    }

    /// Takes a copy of `bytes`, whatever the verdict; after `.pause`, ask the source to stop until ``onDrain``.
    package func append(_ bytes: UnsafeRawBufferPointer) -> WriteVerdict {
        guard !isEnded, !bytes.isEmpty else { return isEnded || !fill.isPaused ? .continue : .pause }
        var verdict = WriteVerdict.continue
        var rest = bytes[...]
        while !rest.isEmpty {
            let chunk = tailWithRoom(for: rest.count)
            let part = rest.prefix(chunk.capacity - tailUsed)
            chunk.fill(at: tailUsed, with: UnsafeRawBufferPointer(rebasing: part))
            tailUsed += part.count
            written += Int64(part.count)
            verdict = fill.append(part.count, in: chunk)
            rest = rest.dropFirst(part.count)
        }
        if verdict == .pause { startSampling() }
        return verdict
    }

    /// Ends the body as complete; a body that is shorter or longer than its declared length fails as truncated.
    /// - Parameter isProven: false where the source did not say itself that this is the end: then nobody may store it.
    package func finish(trailers: Fields = Fields(), isProven: Bool = true) {
        guard !isEnded else { return }
        let isShort = fill.expectedLength.map { $0 != written } ?? false
        end(isShort ? .failed(.truncated) : .complete(length: written), trailers: trailers, isProven: isProven)
    }

    /// Ends the body as failed: readers get what there is, then the error.
    package func fail(_ error: BodyError) { end(.failed(error), trailers: Fields()) }

    private func end(_ end: BodyEnd, trailers: Fields, isProven: Bool = true) {
        guard !isEnded else { return }
        isEnded = true
        tail = nil
        lagTimer?.cancel()
        fill.finish(end, trailers: trailers, isProven: isProven)
    }

    private func tailWithRoom(for count: Int) -> Chunk {
        if let tail, tailUsed < tail.capacity { return tail }
        var capacity = max(Self.leastChunk, min(count, Self.greatestChunk))
        if let length = fill.expectedLength, length > written {
            let left = Int(clamping: length - written)
            if left <= Self.greatestChunk {
                capacity = left
            } else if fill.staysWhole {
                // Large enough to be sent without a copy; behind the first, no larger than what has come: more may never come.
                capacity = min(Self.greatestChunk, max(Chunk.leastFile, Int(clamping: written)))
            }
        }
        // Where there is little room, none is taken that may not be used.
        capacity = min(capacity, max(Self.leastChunk, fill.budget.window(Self.greatestChunk)))
        // Half of the files are for what is stored: pieces last no longer than their fetch.
        let isWhole = written == 0 && fill.expectedLength == Int64(capacity)
        let files = isWhole ? MemoryFile.limit : MemoryFile.limit / 2
        let chunk = Chunk(capacity: capacity, isKept: fill.staysWhole, files: files, budget: fill.budget)
        tail = chunk
        tailUsed = 0
        return chunk
    }

    // MARK: - Messages from the fill, on the writer's loop

    func drained() {
        if !isEnded && !fill.isPaused { onDrain?() }
    }

    func abandoned() {
        if !isEnded && fill.isAbandoned { onAbandoned?() }
    }

    // MARK: - Slow readers

    private func startSampling() {
        guard !isSampling, !isEnded else { return }
        isSampling = true
        sample()
    }

    private func sample() {
        guard !isEnded else { return }
        isSampling = fill.cutLaggards(now: Monotonic.now())
        if isSampling { lagTimer?.start(after: max(1, fill.lagLimit / 4)) }
    }
}

@available(*, unavailable) extension BodyWriter: Sendable {}

/// How a fill finds its writer, which is not Sendable.
final class WriterLink: @unchecked Sendable {  // `target` is touched on the writer's loop only
    weak var target: BodyWriter?
}
