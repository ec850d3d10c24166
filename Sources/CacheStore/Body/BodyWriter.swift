// The writing side of a growing body.

import EventLoop
package import HTTPWire

/// Loop-bound: used on the loop that made it. A writer that goes away without ending its body fails it.
package final class BodyWriter {
    /// Called on the writer's loop after a `.pause`, once there is room again.
    package var onDrain: (() -> Void)?
    /// Called on the writer's loop when all readers take nothing for a while: ask the source to stop until ``onDrain``.
    package var onSuspended: (() -> Void)?
    /// Called on the writer's loop when the last reader has left and the body is not stored, or if `watchesReaders`
    /// is set: the fetch may stop.
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

    /// Copies `bytes`, whatever the verdict; after `.pause`, ask the source to stop until ``onDrain``.
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
    /// - Parameter isProven: false if only the end of a connection marks the end: then the body must not be stored.
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
                // Large enough to be sent without a copy; after the first chunk, no larger than the bytes so far,
                // since no more may follow.
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

/// How a growing body finds its writer, which is not Sendable.
final class WriterLink: @unchecked Sendable {  // `target` is touched on the writer's loop only
    weak var target: BodyWriter?
}
