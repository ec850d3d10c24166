// Bodies by their framing (RFC 9112 sections 6 and 7): the framing that a parsed head declares, and one decoder for
// every framing, chunks and trailers included.

/// Decodes the body that follows a head: the same steps whether its end is a length, a last chunk or the end of the
/// connection.
///
/// Not copyable, because reading one from another module would copy it.
public struct BodyDecoder: ~Copyable, Sendable {
    /// The framing, which tells how the end is found.
    public let framing: BodyFraming
    private let side: MessageSide
    private var remaining: UInt64 = 0
    private var isClosed = false
    /// The decoder of chunks: one element if the body is chunked, otherwise empty. A decoder is large: an optional
    /// would be moved and destroyed member by member, even if nil.
    private var chunks: [ChunkedDecoder] = []

    /// - Parameters:
    ///   - side: a `.request` is refused with 400 or 431, a `.response` with 502.
    ///   - trailerLimits: its `head` bounds the trailer section.
    ///   - isLenient: as in ``ChunkedDecoder``.
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

    /// Whether the whole body has been decoded; bytes after it are not part of it.
    public var isComplete: Bool {
        switch framing {
        case .none: true
        case .length: remaining == 0
        case .chunked: chunks.first?.isFinished ?? false
        case .untilClose: isClosed
        }
    }

    /// The number of bytes that are still to come if a length gives it; nil otherwise.
    public var lengthLeft: UInt64? { if case .length = framing { remaining } else { nil } }

    /// Counts content bytes that were read elsewhere; no more than ``lengthLeft``.
    public mutating func skip(_ count: Int) { remaining -= min(remaining, UInt64(count)) }

    /// The trailers of a chunked body, once it is complete.
    public var trailers: Fields { chunks.first?.trailers ?? Fields() }

    /// Decodes bytes from `start` on: returns the next run of content, the end of the body, or the end of the buffer. A
    /// refusal is final.
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

    /// Completes a body that ends with its connection, which ended in an orderly way. Throws `bodyTruncated` for any
    /// other body that is not complete.
    public mutating func connectionClosed() throws(WireError) {
        if case .untilClose = framing {
            isClosed = true
        } else if !isComplete {
            throw WireError(.bodyTruncated, side: side)
        }
    }
}

// MARK: - What the head says

// The meaning of Content-Length, Transfer-Encoding, Connection and Expect in a parsed head, each by itself (RFC 9112
// sections 6 and 9). `RequestParser` and `ResponseParser` refuse combinations that a head must not have.

/// A head that was scanned: the bytes that the scanner's offsets point into, and the side that sent it. Used within one
/// call.
struct ScannedHead {
    let buffer: UnsafeRawBufferPointer
    let side: MessageSide

    func error(_ reason: WireReason, _ entry: FieldEntry) -> WireError {
        WireError(reason, side: side, offset: Int(entry.valueOffset))
    }
}

// These are methods of the scanner, which is borrowed: a separate value would retain its entries.
extension FieldScanner {
    /// The only Content-Length, 0 to 2^63 - 1; nil without one. Repeated fields, lists, and anything but digits are
    /// refused.
    func contentLength(_ head: ScannedHead) throws(WireError) -> UInt64? {
        guard let entry = self.entry(.contentLength) else { return nil }
        if repeated.contains(.contentLength) { throw head.error(.contentLengthRepeated, entry) }
        let value = entry.value(in: head.buffer)
        if let length = Decimal.parse(value) { return length }
        throw head.error(value.contains(0x2C) ? .contentLengthRepeated : .contentLengthMalformed, entry)
    }

    /// Whether the body is chunked. Any Transfer-Encoding but exactly `chunked` is refused, and in HTTP/1.0 every one.
    func isChunked(_ head: ScannedHead, _ version: HTTPVersion) throws(WireError) -> Bool {
        guard let entry = self.entry(.transferEncoding) else { return false }
        if version == .http10 { throw head.error(.transferEncodingInHTTP10, entry) }
        if repeated.contains(.transferEncoding) { throw head.error(.transferEncodingMalformed, entry) }
        let value = entry.value(in: head.buffer)
        if value.equalsIgnoringCase("chunked") { return true }
        throw head.error(Self.namesUnknownCodings(value) ? .transferEncodingUnknown : .transferEncodingMalformed, entry)
    }

    /// Whether the list is well-formed and only names codings that Drydock does not have: 501 rather than 400 (RFC 9112
    /// section 6.1).
    private static func namesUnknownCodings(_ value: UnsafeRawBufferPointer) -> Bool {
        var isWellFormed = true
        var chunkedWasSeen = false
        value.forEachMember { member in
            let isChunked = member.equalsIgnoringCase("chunked")
            // No coding may follow `chunked`, not even another `chunked`.
            if chunkedWasSeen || !(isChunked || ByteClass.all(member, are: ByteClass.token)) { isWellFormed = false }
            if isChunked { chunkedWasSeen = true }
        }
        return isWellFormed
    }

    /// Whether the version and Connection allow the connection to be reused (RFC 9112 section 9.3); `close` wins.
    func keepAlive(_ head: ScannedHead, _ version: HTTPVersion) -> Bool {
        guard present.contains(.connection) else { return version == .http11 }
        if connectionNames(head, "close") { return false }
        return version == .http11 || connectionNames(head, "keep-alive")
    }

    /// Whether some Connection field has this option.
    func connectionNames(_ head: ScannedHead, _ option: StaticString) -> Bool {
        var isNamed = false
        for entry in entries where entry.known == .connection {
            entry.value(in: head.buffer).forEachMember { if $0.equalsIgnoringCase(option) { isNamed = true } }
        }
        return isNamed
    }
}

// MARK: - The chunked coding

/// The result of one step of a decoder. Offsets are those of the buffer it was given.
public enum BodyStep: Sendable, Equatable {
    /// A run of content; the next call starts at the end of the range.
    case data(Range<Int>)
    /// Every byte was taken; `consumed` is the end of the buffer.
    case needMore(consumed: Int)
    /// The body is complete; `consumed` is the offset of the first byte after it.
    case finished(consumed: Int)
}

/// Decodes one chunked body over any number of buffers, reading each byte once.
public struct ChunkedDecoder: Sendable {
    public typealias Step = BodyStep

    /// The part that the next byte belongs to. Transitions: size → sizeSpace? → extension? → sizeLineFeed → data →
    /// dataReturn → dataLineFeed → size; after the last chunk sizeLineFeed → trailerStart → lastLineFeed or trailers →
    /// finished.
    private enum State: UInt8 {
        case size, sizeSpace, sizeExtension, sizeLineFeed, data, dataReturn, dataLineFeed, trailerStart, trailers,
            lastLineFeed,
            finished
    }

    /// The most bytes of the extensions of one chunk.
    private static let longestExtension = 256
    /// The most bytes of all extensions of a body, unless it has more content than that.
    private static let longestExtensions = 16384

    private let side: MessageSide
    private let isLenient: Bool
    private var state = State.size
    private var digits = 0
    private var size: UInt64 = 0
    private var extensionLength = 0
    private var extensionsLength = 0
    private var contentLength = 0
    /// The number of bytes decoded in earlier calls, for the offset of an error.
    private var taken = 0
    private var trailerParser: TrailerParser
    private var failure: WireError?

    /// - Parameters:
    ///   - side: a `.request` is refused with 400 or 431, a `.response` with 502.
    ///   - trailerLimits: its `head` bounds the trailer section.
    ///   - isLenient: whether whitespace is accepted between a size and its CRLF; before an extension it always is (RFC
    ///     9112 section 7.1.1).
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

    /// The trailers of the body, once it is finished.
    public var trailers: Fields { isFinished ? trailerParser.fields : Fields() }

    /// Decodes bytes from `start` on, up to the next run of content, the end of the body, or the end of the buffer. A
    /// refusal is final.
    public mutating func next(_ buffer: UnsafeRawBufferPointer, from start: Int) throws(WireError) -> BodyStep {
        if let failure { throw failure }
        var position = start
        do throws(WireError) {
            let step = try advance(buffer.bytes, &position)
            taken &+= position &- start
            return step
        } catch {
            let offset = error.offset &+ taken &+ position &- start
            let placed = WireError(status: error.status, reason: error.reason, offset: offset)
            failure = placed
            throw placed
        }
    }

    /// Errors thrown here have offset 0, to which `next` adds the offset of `position`.
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
            // The size has 16 digits at most, and fits a signed 64-bit offset.
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

    /// Takes whitespace after the size; the byte after it decides whether it is allowed.
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
            // The offset in the trailer section is converted to one in this buffer.
            throw WireError(status: error.status, reason: error.reason, offset: error.offset &- collected)
        }
    }

    private func expectLineFeed(_ byte: UInt8) throws(WireError) {
        guard byte == 0x0A else { throw refuse(.bareCarriageReturn) }
    }

    private func refuse(_ reason: WireReason) -> WireError { WireError(reason, side: side) }
}

// MARK: - Trailers

/// Parses trailers up to and including their empty line (RFC 9112 section 7.1.2).
public struct TrailerParser: Sendable {
    private let limits: HeadLimits
    private let side: MessageSide
    private var scanner = FieldScanner()
    private var collected: [UInt8] = []
    private var position = 0

    /// The fields that are dropped from trailers, because they would change framing, routing, authentication or the
    /// content's form after the fact (RFC 9110 section 6.5.1).
    public static let unwelcome = FieldSet(
        .contentLength,
        .transferEncoding,
        .host,
        .connection,
        .keepAlive,
        .proxyConnection,
        .te,
        .trailer,
        .upgrade,
        .expect,
        .maxForwards,
        .authorization,
        .proxyAuthorization,
        .proxyAuthenticate,
        .wwwAuthenticate,
        .cookie,
        .setCookie,
        .cacheControl,
        .cdnCacheControl,
        .pragma,
        .vary,
        .age,
        .expires,
        .range,
        .contentRange,
        .contentType,
        .contentEncoding,
        .location
    )

    /// - Parameter limits: its `head` bounds the whole section; 16 KiB by default.
    public init(side: MessageSide, limits: HeadLimits = HeadLimits(head: 16384)) {
        self.side = side
        self.limits = limits
    }

    /// The number of bytes of the section taken so far.
    var collectedCount: Int { collected.count }

    /// Takes the bytes from `start` on. Returns the offset after the empty line; nil if all were taken and more are
    /// needed.
    public mutating func take(_ bytes: RawSpan, from start: Int) throws(WireError) -> Int? {
        let before = collected.count
        let part = bytes.extracting(start..<min(bytes.byteCount, start + limits.head - before))
        part.withUnsafeBytes { collected.append(contentsOf: $0) }
        let held = collected
        position = try scanner.scan(held.span.bytes, from: position, limits: limits, side: side)
        if scanner.isDone { return start + position - before }
        if position >= limits.head { throw WireError(.trailersTooLong, side: side, offset: position) }
        return nil
    }

    /// The trailers, without the fields that are not allowed there.
    public var fields: Fields {
        collected.withUnsafeBytes { bytes in
            var present = FieldSet()
            let entries = scanner.entries.filter { $0.known == .other || !Self.unwelcome.contains($0.known) }
            for entry in entries { present.insert(entry.known) }
            return Fields(bytes, entries, present)
        }
    }
}
