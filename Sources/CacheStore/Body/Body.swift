// The bytes of a growing body, a stored response, a demo answer or a file, for any number of readers on any loop, and
// their pieces.

package import EventLoop
import Glibc
package import HTTPWire

/// The properties of a growing body.
package struct GrowingBodyOptions: Sendable {
    /// The most bytes in memory, as far as the budget allows them.
    package var window: Int
    /// The file for bytes that leave the window; nil if the body is not stored.
    package var spill: SpillFile?
    package var budget: BodyBudget
    /// Whether later readers can start at the first byte. False for a stream of events, for example: bytes that were
    /// read are dropped at once.
    package var keepsStart: Bool
    /// Nanoseconds for which a reader may be more than a window behind the fastest one, if the body is not
    /// stored; then it is cut off.
    package var lagLimit: UInt64
    /// Whether the writer is told that the last reader has left even if a file takes the bytes.
    package var watchesReaders = false
    /// Whether the source has the bytes at no cost and waits for its readers, so that little is held of a body that is
    /// not stored.
    package var isAtHand = false
    /// The most bytes of a body that is held in memory as a whole, for the memory tier, as long as the budget allows
    /// it.
    package var keepsUpTo = 0

    /// Makes options.
    /// - Parameters:
    ///   - window: bytes; 1 MiB by default.
    ///   - lagLimit: nanoseconds; 10 s by default.
    package init(
        window: Int = 1024 * 1024,
        spill: SpillFile? = nil,
        budget: BodyBudget,
        keepsStart: Bool = true,
        lagLimit: UInt64 = 10_000_000_000
    ) {
        self.window = max(window, BodyBudget.minimumWindow)
        self.spill = spill
        self.budget = budget
        self.keepsStart = keepsStart
        self.lagLimit = lagLimit
    }
}

/// The bytes of a body, for any number of readers. Sendable: a growing body's state is under its own mutex; everything
/// else never changes.
package final class Body: Sendable {
    enum Source: Sendable {
        case chunk(Chunk)
        case file(SharedFile, offset: Int64, length: Int64)
        case growing(GrowingBody)
    }

    let source: Source

    init(_ source: Source) { self.source = source }

    /// A body that is in memory as a whole.
    package static func complete(_ bytes: [UInt8]) -> Body { Body(.chunk(Chunk(bytes, isKept: true))) }

    /// A body that is one whole chunk.
    package static func complete(_ chunk: Chunk) -> Body { Body(.chunk(chunk)) }

    /// `length` bytes of a file from `offset` on.
    package static func file(_ file: SharedFile, offset: Int64, length: Int64) -> Body {
        Body(.file(file, offset: offset, length: length))
    }

    /// A body that its writer fills from `loop`.
    /// - Parameter expectedLength: the declared length in bytes, if there is one.
    package static func growing(
        _ options: GrowingBodyOptions,
        expectedLength: Int64? = nil,
        on loop: isolated EventLoop
    ) -> (body: Body, writer: BodyWriter) {
        let link = WriterLink()
        let growing = GrowingBody(options: options, expectedLength: expectedLength, loop: loop, writer: link)
        return (Body(.growing(growing)), BodyWriter(growing: growing, link: link, on: loop))
    }

    /// The length of a complete body, or the declared length of a growing one, in bytes; nil if it is unknown.
    package var knownLength: Int64? {
        switch source {
        case .chunk(let chunk): return Int64(chunk.capacity)
        case .file(_, _, let length): return length
        case .growing(let growing):
            if case .complete(let length) = growing.end { return length }
            return growing.expectedLength
        }
    }

    package var end: BodyEnd {
        switch source {
        case .chunk(let chunk): .complete(length: Int64(chunk.capacity))
        case .file(_, _, let length): .complete(length: length)
        case .growing(let growing): growing.end
        }
    }

    /// The number of bytes that have arrived so far.
    package var arrived: Int64 {
        switch source {
        case .chunk(let chunk): Int64(chunk.capacity)
        case .file(_, _, let length): length
        case .growing(let growing): growing.length
        }
    }

    /// The trailer fields that came with a complete body.
    package var trailers: Fields {
        if case .growing(let growing) = source { growing.trailers } else { Fields() }
    }

    /// False if only the end of a connection showed that the body is complete: such a body must not be stored.
    package var isEndProven: Bool {
        if case .growing(let growing) = source { growing.isEndProven } else { true }
    }

    /// The whole body, if it is one chunk in memory; the hot path writes it.
    package var wholeChunk: Chunk? {
        if case .chunk(let chunk) = source { chunk } else { nil }
    }

    /// The number of readers of a growing body; 0 for any other body.
    package var readerCount: Int {
        if case .growing(let growing) = source { growing.readerCount } else { 0 }
    }

    /// Whether the source has the bytes at no cost, so that no queue should hold many of them.
    package var isAtHand: Bool {
        if case .growing(let growing) = source { growing.isAtHand } else { false }
    }

    /// Whether the bytes that leave the window of a growing body are written to a file.
    package var isFiling: Bool {
        if case .growing(let growing) = source { growing.isFiling } else { false }
    }

    /// Whether all bytes of a growing body are held, and will be held, for the memory tier.
    package var isKeptWhole: Bool {
        if case .growing(let growing) = source { growing.isKeptWhole } else { false }
    }

    /// Stops keeping the whole of a growing body in memory; only its window remains.
    package func stopKeeping() {
        if case .growing(let growing) = source { growing.stopKeeping() }
    }

    /// The number of bytes in the window of a growing body.
    package var heldBytes: Int {
        switch source {
        case .chunk(let chunk): chunk.capacity
        case .file: 0
        case .growing(let growing): growing.heldBytes
        }
    }

    /// The same body as one chunk, for the memory tier; nil unless it is complete and in memory as a whole.
    package func inMemory() -> Body? {
        switch source {
        case .chunk: self
        case .file: nil
        case .growing(let growing): growing.wholeInMemory().map { .complete($0) }
        }
    }

    /// The file of a complete body; nil for one in memory, and for a growing one.
    package var file: SharedFile? { if case .file(let file, _, _) = source { file } else { nil } }

    /// Waits until the file of a growing body has all of it.
    /// - Returns: false, at once, for any other body.
    /// - Throws: `BodyError` if the body is not complete or cannot be written.
    package func flush() async throws -> Bool {
        guard case .growing(let growing) = source else { return false }
        try await growing.flush()
        return true
    }

    /// Makes a reader at the first byte, to be used on `loop` only.
    /// - Returns: nil if byte 0 has left the window and is in no file, or if the growing body has failed.
    package func makeReader(on loop: EventLoop) -> BodyReader? {
        switch source {
        case .chunk, .file: BodyReader(body: self, id: 0, loop: loop)
        case .growing(let growing): growing.join().map { BodyReader(body: self, id: $0, loop: loop) }
        }
    }
}

// MARK: - Pieces

/// One contiguous part of a body.
package enum BodyPiece: Sendable {
    /// Bytes in memory.
    case bytes(Chunk, Range<Int>)
    /// Bytes of a file, at most 1 MiB, verified and in the page cache, so that `sendfile` takes them without waiting.
    case file(SharedFile, offset: Int64, count: Int)

    package var count: Int {
        switch self {
        case .bytes(_, let range): range.count
        case .file(_, _, let count): count
        }
    }
}

/// The result of a read that does not wait.
package enum BodyStep: Sendable {
    case piece(BodyPiece)
    /// All bytes have been read, and the body is complete.
    case end
    /// There is nothing to read at present; ``BodyReader/next(maxBytes:on:)`` waits for it.
    case wait
    case failed(BodyError)
}

/// The state of a body's end.
package enum BodyEnd: Sendable, Equatable {
    case open
    /// The body is complete, with this number of bytes.
    case complete(length: Int64)
    case failed(BodyError)
}

/// The reason why a body ends before its last byte.
package enum BodyError: Error, Sendable, Equatable, CustomStringConvertible {
    /// The reader's task was cancelled, or the reader was closed.
    case cancelled
    /// The reader was more than a window behind the fastest one for too long, or its next bytes have left memory.
    case tooSlow
    /// The source ended before its declared length.
    case truncated
    /// The body has no reader left, or its writer was freed without ending it.
    case abandoned
    /// The source failed; the text is the reason.
    case source(String)
    /// A stored block does not match its checksum: the stored response must be fetched again.
    case damaged(block: Int)
    /// A file could not be read or written.
    case file(SystemError)

    package var description: String {
        switch self {
        case .cancelled: "the reader left"
        case .tooSlow: "the reader was too far behind the others"
        case .truncated: "the source ended before its declared length"
        case .abandoned: "the fill was given up"
        case .source(let detail): detail
        case .damaged(let block): "block \(block) of the stored body does not match its checksum"
        case .file(let error): error.description
        }
    }
}

/// The advice to a writer after an append; its bytes were taken in either case.
package enum WriteVerdict: Sendable, Equatable {
    case `continue`
    /// The writer should stop until ``BodyWriter/onDrain`` is called.
    case pause
}

// MARK: - Loading into memory

extension BodyPiece {
    /// The piece in memory; a piece of a file is read on the I/O pool.
    /// - Throws: `BodyError.file` or `.truncated`.
    package func load(on loop: isolated EventLoop) async throws(BodyError) -> (chunk: Chunk, range: Range<Int>) {
        switch self {
        case .bytes(let chunk, let range): return (chunk, range)
        case .file(let file, let offset, let count):
            return (try await file.load(offset: offset, count: count), 0..<count)
        }
    }
}

extension Body {
    /// The whole body in memory, for small bodies. Waits for one that still grows.
    /// - Throws: `BodyError`: the reason of its early end, or `.tooSlow` if its beginning has left memory.
    package func load(on loop: isolated EventLoop) async throws(BodyError) -> Chunk {
        if let wholeChunk { return wholeChunk }
        guard let reader = makeReader(on: loop) else { throw .tooSlow }
        defer { reader.close() }
        var bytes: [UInt8] = []
        if let knownLength { bytes.reserveCapacity(Int(clamping: knownLength)) }
        while let piece = try await reader.next(maxBytes: 1 << 20, on: loop) {
            let part = try await piece.load(on: loop)
            part.chunk.withBytes { bytes.append(contentsOf: UnsafeRawBufferPointer(rebasing: $0[part.range])) }
        }
        return Chunk(bytes)
    }
}

extension SharedFile {
    /// Reads bytes on the I/O pool.
    func load(offset: Int64, count: Int) async throws(BodyError) -> Chunk {
        do {
            return try await pool.run { [self] in try read(offset: offset, count: count) }
        } catch let error as BodyError {
            throw error
        } catch {
            throw .source("\(error)")
        }
    }
}

// MARK: - A plain file

package enum BodyFile {
    /// Writes the body into a new file, with every block of a stored body verified; blocks.
    /// - Returns: the length in bytes.
    /// - Throws: `SystemError` or `BodyError`; `.abandoned` for a body that still grows. The file stays even after an
    ///   error.
    package static func write(_ body: Body, to path: String) throws -> Int64 {
        let descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o644)
        guard descriptor >= 0 else { throw SystemError("open \(path)") }
        defer { close(descriptor) }
        let length = body.knownLength ?? 0
        switch body.source {
        case .chunk(let chunk): try chunk.withBytes { bytes in try write(bytes, to: descriptor, path) }
        case .file(let file, let offset, _):
            var position: Int64 = 0
            while position < length {
                let count = file.pieceCount(at: offset + position, count: length - position)
                try file.prepareNow(offset: offset + position, count: count)
                let piece = try file.read(offset: offset + position, count: count)
                try piece.withBytes { bytes in try write(bytes, to: descriptor, path) }
                position += Int64(count)
            }
        case .growing: throw BodyError.abandoned
        }
        return length
    }

    private static func write(_ bytes: UnsafeRawBufferPointer, to descriptor: Int32, _ path: String) throws {
        var done = 0
        while done < bytes.count {
            let rest = UnsafeRawBufferPointer(rebasing: bytes[done...])
            let count = Glibc.write(descriptor, rest.baseAddress, rest.count)
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { throw SystemError("write \(path)") }
            done += count
        }
    }
}
