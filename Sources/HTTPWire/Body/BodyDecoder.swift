// One decoder over every framing of a body.

/// Decodes the body that follows a head: the same steps whether its end is a length, a last chunk or
/// the end of the connection.
///
/// Not copyable, because reading one from another module would copy it.
public struct BodyDecoder: ~Copyable, Sendable {
    /// How the end is found.
    public let framing: BodyFraming
    private let side: MessageSide
    private var remaining: UInt64 = 0
    private var isClosed = false
    /// One element if the body is chunked, otherwise empty. A decoder is large: an optional would be moved and
    /// destroyed member by member, even if nil.
    private var chunks: [ChunkedDecoder] = []

    /// A `.request` side refuses with 400 or 431, a `.response` side with 502. `trailerLimits.head` bounds the trailer
    /// section; `isLenient` is that of ``ChunkedDecoder``.
    public init(
        _ framing: BodyFraming,
        side: MessageSide,
        isLenient: Bool = false,
        trailerLimits: HeadLimits = HeadLimits(head: 16384)
    ) {
        self.framing = framing
        self.side = side
        switch framing {
        case .length(let length): remaining = length
        case .chunked: chunks = [ChunkedDecoder(side: side, isLenient: isLenient, trailerLimits: trailerLimits)]
        case .none, .untilClose: break
        }
    }

    /// Whether the whole body has come; what follows it is not part of it.
    public var isComplete: Bool {
        switch framing {
        case .none: true
        case .length: remaining == 0
        case .chunked: chunks.first?.isFinished ?? false
        case .untilClose: isClosed
        }
    }

    /// Bytes that are still to come where a length says how many; else nil.
    public var lengthLeft: UInt64? { if case .length = framing { remaining } else { nil } }

    /// So many bytes of content were taken elsewhere; no more than ``lengthLeft``.
    public mutating func skip(_ count: Int) { remaining -= min(remaining, UInt64(count)) }

    /// The trailers of a chunked body, once complete.
    public var trailers: Fields { chunks.first?.trailers ?? Fields() }

    /// Takes bytes from `start` on: the next run of content, the end of the body, or the end of the
    /// buffer. A refusal is final.
    public mutating func next(_ buffer: UnsafeRawBufferPointer, from start: Int) throws(WireError) -> BodyStep {
        if !chunks.isEmpty { return try chunks[0].next(buffer, from: start) }
        if isComplete { return .finished(consumed: start) }
        guard start < buffer.count else { return .needMore(consumed: start) }
        var count = buffer.count - start
        if case .length = framing {
            count = Int(truncatingIfNeeded: min(remaining, UInt64(count)))
            remaining -= UInt64(count)
        }
        return .data(start..<start + count)
    }

    /// The connection ended in an orderly way: completes a body that ends with it, and throws `bodyTruncated` for any
    /// other that is not complete.
    public mutating func connectionClosed() throws(WireError) {
        if case .untilClose = framing {
            isClosed = true
        } else if !isComplete {
            throw WireError(.bodyTruncated, side: side)
        }
    }
}
