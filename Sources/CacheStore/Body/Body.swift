// The bytes of a fill, a stored response, a demo answer or a file, for any number of readers on any loop.

package import EventLoop
package import HTTPWire

/// How a growing body behaves.
package struct FillOptions: Sendable {
    /// Bytes in memory at most, while the budget allows it.
    package var window: Int
    /// Where the bytes go that leave the window; nil for what is not stored.
    package var spill: SpillFile?
    package var budget: FillBudget
    /// False for what nobody may join later, such as an event stream: bytes that were read are forgotten at once.
    package var keepsStart: Bool
    /// Nanoseconds that a reader may be far behind the fastest, where nothing is stored.
    package var lagLimit: UInt64
    /// Whether the writer hears that the last reader has left also where a file takes the bytes.
    package var watchesReaders = false
    /// Up to so many bytes stay in memory as a whole, whoever reads, as long as the budget allows it: for the memory tier.
    package var keepsUpTo = 0

    /// - Parameters:
    ///   - window: bytes; 1 MiB by default.
    ///   - lagLimit: nanoseconds; 10 s by default.
    package init(
        window: Int = 1024 * 1024,
        spill: SpillFile? = nil,
        budget: FillBudget,
        keepsStart: Bool = true,
        lagLimit: UInt64 = 10_000_000_000
    ) {
        self.window = max(window, FillBudget.leastWindow)
        self.spill = spill
        self.budget = budget
        self.keepsStart = keepsStart
        self.lagLimit = lagLimit
    }
}

/// Sendable: a growing body's state is under its own mutex; all else never changes.
package final class Body: Sendable {
    enum Source: Sendable {
        case chunk(Chunk)
        case file(SharedFile, offset: Int64, length: Int64)
        case fill(Fill)
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
        _ options: FillOptions,
        expectedLength: Int64? = nil,
        on loop: isolated EventLoop
    ) -> (body: Body, writer: BodyWriter) {
        let link = WriterLink()
        let fill = Fill(options: options, expectedLength: expectedLength, loop: loop, writer: link)
        return (Body(.fill(fill)), BodyWriter(fill: fill, link: link, on: loop))
    }

    /// In bytes: of a complete body, or the declared one of a growing body; nil where nobody knows.
    package var knownLength: Int64? {
        switch source {
        case .chunk(let chunk): return Int64(chunk.capacity)
        case .file(_, _, let length): return length
        case .fill(let fill):
            if case .complete(let length) = fill.end { return length }
            return fill.expectedLength
        }
    }

    package var end: BodyEnd {
        switch source {
        case .chunk(let chunk): .complete(length: Int64(chunk.capacity))
        case .file(_, _, let length): .complete(length: length)
        case .fill(let fill): fill.end
        }
    }

    /// Bytes that have arrived so far.
    package var arrived: Int64 {
        switch source {
        case .chunk(let chunk): Int64(chunk.capacity)
        case .file(_, _, let length): length
        case .fill(let fill): fill.length
        }
    }

    /// The trailer fields that came with a complete body.
    package var trailers: Fields {
        if case .fill(let fill) = source { fill.trailers } else { Fields() }
    }

    /// False where the source of a complete body did not say itself that it was whole: nobody may store it.
    package var isEndProven: Bool {
        if case .fill(let fill) = source { fill.isEndProven } else { true }
    }

    /// The whole body, where it is one chunk in memory: what the hot path writes.
    package var wholeChunk: Chunk? {
        if case .chunk(let chunk) = source { chunk } else { nil }
    }

    /// Readers of a growing body now.
    package var readerCount: Int {
        if case .fill(let fill) = source { fill.readerCount } else { 0 }
    }

    /// What leaves the window of a growing body goes to a file.
    package var isFiling: Bool {
        if case .fill(let fill) = source { fill.isFiling } else { false }
    }

    /// All bytes of a growing body are held, and are to be, for the memory tier.
    package var isKeptWhole: Bool {
        if case .fill(let fill) = source { fill.isKeptWhole } else { false }
    }

    /// Nobody wants the whole of a growing body in memory any more.
    package func stopKeeping() {
        if case .fill(let fill) = source { fill.stopKeeping() }
    }

    /// Bytes of the window of a growing body.
    package var heldBytes: Int {
        switch source {
        case .chunk(let chunk): chunk.capacity
        case .file: 0
        case .fill(let fill): fill.heldBytes
        }
    }

    /// The same body as one chunk, if it is complete and in memory as a whole: what the memory tier keeps.
    package func inMemory() -> Body? {
        switch source {
        case .chunk: self
        case .file: nil
        case .fill(let fill): fill.wholeInMemory().map { .complete($0) }
        }
    }

    /// A reader at the first byte, to be used on `loop` only.
    /// - Returns: nil where byte 0 has left the window and no file has it, or where the fill has failed.
    package func makeReader(on loop: EventLoop) -> BodyReader? {
        switch source {
        case .chunk, .file: BodyReader(body: self, id: 0, loop: loop)
        case .fill(let fill): fill.join().map { BodyReader(body: self, id: $0, loop: loop) }
        }
    }
}
