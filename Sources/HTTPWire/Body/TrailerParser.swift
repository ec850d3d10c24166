// The trailer section of a chunked body: collected across reads, bounded, and parsed like the fields of a head.

/// Parses trailers up to and including their empty line (RFC 9112 section 7.1.2).
public struct TrailerParser: Sendable {
    private let limits: HeadLimits
    private let side: MessageSide
    private var scanner = FieldScanner()
    private var collected: [UInt8] = []
    private var position = 0

    /// Fields that are dropped from trailers, because they would change framing, routing, authentication or the
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

    /// `limits.head` bounds the whole section; 16 KiB by default.
    public init(side: MessageSide, limits: HeadLimits = HeadLimits(head: 16384)) {
        self.side = side
        self.limits = limits
    }

    /// Bytes of the section taken so far.
    var collectedCount: Int { collected.count }

    /// Takes the bytes from `start` on. Returns the offset after the empty line, or nil where more bytes are
    /// needed and all were taken.
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
