// The reading side of a body: of the whole body, of one range, or of several bodies one after the other.

package import EventLoop
package import HTTPWire

/// A reader of a body. Loop-bound: used on the loop it was made for. It closes itself when it is released.
package final class BodyReader {
    private let body: Body
    private let id: Int
    private let loop: EventLoop
    private var isClosed = false
    /// The position in a complete source, in bytes; a growing body keeps the position itself.
    private var position: Int64 = 0
    /// The most bytes that are still to be read.
    private var remaining = Int64.max
    /// The sequence of readers that is read instead of one body; nil for one body.
    private var sequence: BodySequence?

    init(body: Body, id: Int, loop: EventLoop) {
        self.body = body
        self.id = id
        self.loop = loop
    }

    /// Makes a reader of several bodies, one after the other.
    package init(_ sequence: BodySequence, on loop: EventLoop) {
        body = Body.complete([])
        id = 0
        self.loop = loop
        self.sequence = sequence
    }

    deinit { close() }

    /// Restricts the reader to these bytes, which must lie within the body; only before the first piece.
    package func narrow(to range: Range<Int64>) {
        position = range.lowerBound
        remaining = range.upperBound - range.lowerBound
        if case .growing(let growing) = body.source, !isClosed { growing.seek(id, to: range.lowerBound) }
    }

    /// Whether only a part of the body is read.
    package var isNarrowed: Bool { remaining != .max }

    /// The trailer fields that came with the body, once it is complete; empty if only a part is read.
    package var trailers: Fields { remaining == .max ? body.trailers : Fields() }

    /// Whether the body that is read is at hand, as ``Body/isAtHand``.
    package var isAtHand: Bool { body.isAtHand }

    /// Whether the end of the body that is read is proven, as ``Body/isEndProven``; valid at its end.
    package var isEndProven: Bool { body.isEndProven }

    /// The next piece; waits until there is one.
    /// - Parameter maxBytes: the most bytes, at least 1.
    /// - Returns: nil at the end of a complete body.
    /// - Throws: `BodyError`: `.cancelled` if the task is cancelled, or else the reason of an early end.
    package func next(maxBytes: Int, on loop: isolated EventLoop) async throws(BodyError) -> BodyPiece? {
        while true {
            if Task.isCancelled || isClosed { throw .cancelled }
            if let sequence { return try await sequence.next(maxBytes: maxBytes, on: loop) }
            switch step(maxBytes: maxBytes) {
            case .ready(.piece(let piece)): return piece
            case .ready(.end): return nil
            case .ready(.failed(let error)): throw error
            case .ready(.wait): await wait(on: loop)
            case .file(let file, let offset, let count):
                if !file.isReady(offset: offset, count: count) {
                    try await file.prepare(offset: offset, count: count)
                    // Another task may have closed the reader meanwhile.
                    if isClosed { throw .cancelled }
                }
                return confirm(file, offset, count)
            }
        }
    }

    /// The next piece, if it needs no wait for the writer or for the disk.
    package func nextIfReady(maxBytes: Int) -> BodyStep {
        if let sequence { return isClosed ? .failed(.cancelled) : sequence.nextIfReady(maxBytes: maxBytes) }
        switch step(maxBytes: maxBytes) {
        case .ready(let step): return step
        case .file(let file, let offset, let count):
            guard file.isReady(offset: offset, count: count) else { return .wait }
            return .piece(confirm(file, offset, count))
        }
    }

    /// Whether the reader pauses. If no other reader wants the bytes, none are requested, and their deadlines pause.
    /// False by default.
    package var isSuspended = false {
        didSet {
            guard !isClosed, isSuspended != oldValue else { return }
            sequence?.isSuspended = isSuspended
            if sequence == nil, case .growing(let growing) = body.source { growing.setSuspended(id, isSuspended) }
        }
    }

    /// Ends reading; a waiting ``next(maxBytes:on:)`` throws `.cancelled`.
    package func close() {
        guard !isClosed else { return }
        isClosed = true
        sequence?.close()
        if case .growing(let growing) = body.source { growing.leave(id) }
    }

    private func step(maxBytes: Int) -> ReaderStep {
        assert(loop.isCurrent, "a reader was used off its loop")
        if isClosed { return .ready(.failed(.cancelled)) }
        guard remaining > 0 else { return .ready(.end) }
        let most = Int(min(Int64(max(1, maxBytes)), remaining))
        switch body.source {
        case .chunk(let chunk):
            guard position < Int64(chunk.capacity) else { return .ready(.end) }
            let start = Int(position)
            let end = min(chunk.capacity, start + min(most, chunk.capacity))
            position = Int64(end)
            count(end - start)
            return .ready(.piece(.bytes(chunk, start..<end)))
        case .file(let file, let offset, let length):
            guard position < length else { return .ready(.end) }
            let count = file.pieceCount(at: offset + position, count: min(length - position, Int64(most)))
            return .file(file, offset: offset + position, count: count)
        case .growing(let growing):
            let step = growing.step(id, maxBytes: most)
            if case .ready(.piece(let piece)) = step { count(piece.count) }
            return step
        }
    }

    private func count(_ bytes: Int) { if remaining != .max { remaining -= Int64(bytes) } }

    private func confirm(_ file: SharedFile, _ offset: Int64, _ count: Int) -> BodyPiece {
        if case .growing(let growing) = body.source { growing.advance(id, by: count) } else { position += Int64(count) }
        self.count(count)
        return .file(file, offset: offset, count: count)
    }

    private func wait(on loop: isolated EventLoop) async {
        guard case .growing(let growing) = body.source else { return }
        let id = id
        let serial = growing.serial(of: id)
        await withTaskCancellationHandler {
            await withUnsafeContinuation { growing.park(id, $0) }
        } onCancel: {
            growing.interrupt(id, serial: serial)
        }
    }
}

@available(*, unavailable) extension BodyReader: Sendable {}

// MARK: - Several readers as one

/// A source of the bytes that are missing when a sequence is made; loop-bound.
package protocol PartSource: AnyObject {
    /// Readers for all bytes of `range`, in order; it waits until the origin sends them.
    /// - Throws: `BodyError` if they cannot be had.
    func readers(for range: Range<Int64>, on loop: isolated EventLoop) async throws(BodyError) -> [BodySequence.Part]
}

/// A sequence of readers and of holes between them. Loop-bound, because its readers are.
package final class BodySequence {
    package enum Part {
        case reader(BodyReader)
        /// Missing bytes, which the source provides when it is their turn.
        case hole(Range<Int64>, any PartSource)
    }

    private var parts: ArraySlice<Part>
    private var isClosed = false
    /// Whether the whole sequence pauses, as ``BodyReader/isSuspended`` for one reader.
    var isSuspended = false {
        didSet { suspendParts() }
    }

    package init(_ parts: [Part]) { self.parts = parts[...] }

    func next(maxBytes: Int, on loop: isolated EventLoop) async throws(BodyError) -> BodyPiece? {
        while let part = parts.first {
            switch part {
            case .reader(let reader):
                if let piece = try await reader.next(maxBytes: maxBytes, on: loop) { return piece }
                reader.close()
                parts.removeFirst()
            case .hole(let range, let source):
                let found = try await source.readers(for: range, on: loop)
                // Another task may have closed the reader meanwhile.
                if isClosed { throw .cancelled }
                parts.replaceSubrange(parts.startIndex...parts.startIndex, with: found)
                suspendParts()
            }
            if isClosed { throw .cancelled }
        }
        return nil
    }

    func nextIfReady(maxBytes: Int) -> BodyStep {
        while case .reader(let reader)? = parts.first {
            let step = reader.nextIfReady(maxBytes: maxBytes)
            guard case .end = step else { return step }
            reader.close()
            parts.removeFirst()
        }
        return parts.isEmpty ? .end : .wait
    }

    private func suspendParts() {
        for case .reader(let reader) in parts { reader.isSuspended = isSuspended }
    }

    func close() {
        isClosed = true
        for case .reader(let reader) in parts { reader.close() }
        parts = []
    }
}

@available(*, unavailable) extension BodySequence: Sendable {}

extension Body {
    /// A reader of a range, to be used on `loop` only; nil in the cases of ``makeReader(on:)``.
    package func makeReader(_ range: Range<Int64>, on loop: EventLoop) -> BodyReader? {
        let reader = makeReader(on: loop)
        reader?.narrow(to: range)
        return reader
    }
}
