// The chunked coding, read strictly and without recursion (RFC 9112 section 7.1).

/// What a decoder found next. Offsets are those of the buffer it was given.
public enum BodyStep: Sendable, Equatable {
    /// Content; the next call starts at the end of the range.
    case data(Range<Int>)
    /// Every byte was taken; `consumed` is the end of the buffer.
    case needMore(consumed: Int)
    /// The body is complete; `consumed` is the offset of the first byte after it.
    case finished(consumed: Int)
}

/// Decodes one chunked body over any number of buffers, each byte looked at once.
public struct ChunkedDecoder: Sendable {
    public typealias Step = BodyStep

    /// What the next byte is part of. size → sizeSpace? → extension? → sizeLineFeed → data → dataReturn → dataLineFeed
    /// → size; after the last chunk sizeLineFeed → trailerStart → lastLineFeed or trailers → finished.
    private enum State: UInt8 {
        case size, sizeSpace, sizeExtension, sizeLineFeed, data, dataReturn, dataLineFeed, trailerStart, trailers,
            lastLineFeed,
            finished
    }

    /// Bytes of the extensions of one chunk.
    private static let longestExtension = 256
    /// Bytes of all extensions of a body that holds less content than that.
    private static let longestExtensions = 16384

    private let side: MessageSide
    private let isLenient: Bool
    private var state = State.size
    private var digits = 0
    private var size: UInt64 = 0
    private var extensionLength = 0
    private var extensionsLength = 0
    private var contentLength = 0
    /// Bytes taken in earlier calls, for the offset of an error.
    private var taken = 0
    private var trailerParser: TrailerParser
    private var failure: WireError?

    /// `trailerLimits.head` bounds the trailer section. A `.request` side refuses with 400 or 431, a `.response` side
    /// with 502. A lenient decoder accepts whitespace between a size and its CRLF; before an extension it is always
    /// allowed (RFC 9112 section 7.1.1).
    public init(
        side: MessageSide,
        isLenient: Bool = false,
        trailerLimits: HeadLimits = HeadLimits(head: 16384)
    ) {
        self.side = side
        self.isLenient = isLenient
        trailerParser = TrailerParser(side: side, limits: trailerLimits)
    }

    public var isFinished: Bool { state == .finished }

    /// The trailers that came, once finished.
    public var trailers: Fields { isFinished ? trailerParser.fields : Fields() }

    /// Takes bytes from `start` on, up to the next run of content, the end of the body, or the end of the
    /// buffer. A refusal is final.
    public mutating func next(_ buffer: UnsafeRawBufferPointer, from start: Int) throws(WireError) -> BodyStep {
        if let failure { throw failure }
        var position = start
        do throws(WireError) {
            let step = try advance(buffer.bytes, &position)
            taken &+= position &- start
            return step
        } catch {
            let place = error.offset &+ taken &+ position &- start
            let placed = WireError(status: error.status, reason: error.reason, offset: place)
            failure = placed
            throw placed
        }
    }

    /// Errors thrown here have offset 0, to which `next` adds the place of `position`.
    private mutating func advance(
        _ bytes: RawSpan,
        _ position: inout Int
    ) throws(WireError) -> BodyStep {
        if state == .finished { return .finished(consumed: position) }
        while position < bytes.byteCount {
            let byte = bytes[at: position]
            switch state {
            case .size: try takeSize(byte)
            case .sizeSpace: try takeSpace(byte)
            case .sizeExtension: try takeExtension(byte)
            case .sizeLineFeed:
                try expectLineFeed(byte)
                state = size == 0 ? .trailerStart : .data
            case .data:
                let count = Int(truncatingIfNeeded: min(size, UInt64(bytes.byteCount &- position)))
                let range = position..<position &+ count
                size &-= UInt64(count)
                contentLength &+= count
                if size == 0 { state = .dataReturn }
                position = range.upperBound
                return .data(range)
            case .dataReturn:
                guard byte == 0x0D else { throw refuse(byte == 0x0A ? .bareLineFeed : .chunkEndMalformed) }
                state = .dataLineFeed
            case .dataLineFeed:
                try expectLineFeed(byte)
                digits = 0
                extensionLength = 0
                state = .size
            case .trailerStart:
                state = byte == 0x0D ? .lastLineFeed : .trailers
                if state == .trailers { continue }
            case .trailers: return try takeTrailers(bytes, &position)
            case .lastLineFeed:
                try expectLineFeed(byte)
                state = .finished
                position &+= 1
                return .finished(consumed: position)
            case .finished:
                return .finished(consumed: position)
            }
            position &+= 1
        }
        return .needMore(consumed: position)
    }

    private mutating func takeSize(_ byte: UInt8) throws(WireError) {
        if ByteClass.table[Int(byte)] & ByteClass.hex != 0 {
            // 16 digits at most, and a size that fits a signed 64-bit offset.
            guard digits < 16, size <= UInt64(Int64.max) >> 4 || digits == 0 else { throw refuse(.chunkSizeTooLarge) }
            let digit = byte < 0x3A ? byte &- 0x30 : (byte | 0x20) &- 0x57
            size = (digits == 0 ? 0 : size &<< 4) | UInt64(digit)
            digits &+= 1
            return
        }
        guard digits > 0 else { throw refuse(byte == 0x0A ? .bareLineFeed : .chunkSizeMalformed) }
        switch byte {
        case 0x0D: state = .sizeLineFeed
        case 0x3B: state = .sizeExtension
        case 0x20, 0x09:
            state = .sizeSpace
            try countExtension()
        case 0x0A: throw refuse(.bareLineFeed)
        default: throw refuse(.chunkSizeMalformed)
        }
    }

    /// Whitespace after the size; the byte after it decides whether it is allowed.
    private mutating func takeSpace(_ byte: UInt8) throws(WireError) {
        switch byte {
        case 0x20, 0x09: try countExtension()
        case 0x3B: state = .sizeExtension
        case 0x0D where isLenient: state = .sizeLineFeed
        case 0x0A: throw refuse(.bareLineFeed)
        default: throw refuse(.chunkSizeMalformed)
        }
    }

    private mutating func takeExtension(_ byte: UInt8) throws(WireError) {
        if byte == 0x0D {
            state = .sizeLineFeed
            return
        }
        guard ByteClass.table[Int(byte)] & ByteClass.value != 0 else {
            throw refuse(byte == 0x0A ? .bareLineFeed : .chunkExtensionMalformed)
        }
        try countExtension()
    }

    private mutating func countExtension() throws(WireError) {
        extensionLength &+= 1
        extensionsLength &+= 1
        if extensionLength > Self.longestExtension
            || extensionsLength > Self.longestExtensions && extensionsLength > contentLength
        {
            throw refuse(.chunkExtensionTooLong)
        }
    }

    private mutating func takeTrailers(
        _ bytes: RawSpan,
        _ position: inout Int
    ) throws(WireError) -> BodyStep {
        let collected = trailerParser.collectedCount
        do throws(WireError) {
            guard let end = try trailerParser.take(bytes, from: position) else {
                position = bytes.byteCount
                return .needMore(consumed: position)
            }
            position = end
            state = .finished
            return .finished(consumed: end)
        } catch {
            // The place in the trailer section, as one relative to this buffer.
            throw WireError(status: error.status, reason: error.reason, offset: error.offset &- collected)
        }
    }

    private func expectLineFeed(_ byte: UInt8) throws(WireError) {
        guard byte == 0x0A else { throw refuse(.bareCarriageReturn) }
    }

    private func refuse(_ reason: WireReason) -> WireError { WireError(reason, side: side) }
}
