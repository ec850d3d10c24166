// What Content-Length, Transfer-Encoding, Connection and Expect of a parsed head say (RFC 9112 sections 6 and 9).

/// Reads the framing fields of a scanned head; `buffer` is the one its offsets point into.
struct FramingFields {
    let fields: FieldScanner
    let buffer: UnsafeRawBufferPointer
    let side: MessageSide

    /// The one Content-Length, 0 to 2^63 - 1, or nil without one; repeated, a list, or anything but digits is refused.
    func contentLength() throws(WireError) -> UInt64? {
        guard let entry = fields.entry(.contentLength) else { return nil }
        if fields.repeated.contains(.contentLength) { throw error(.contentLengthRepeated, entry) }
        let value = entry.value(in: buffer)
        if let length = Decimal.parse(value) { return length }
        throw error(value.contains(0x2C) ? .contentLengthRepeated : .contentLengthMalformed, entry)
    }

    /// Whether the body is chunked; any Transfer-Encoding but exactly `chunked` is refused, and every one in HTTP/1.0.
    func isChunked(_ version: HTTPVersion) throws(WireError) -> Bool {
        guard let entry = fields.entry(.transferEncoding) else { return false }
        if version == .http10 { throw error(.transferEncodingInHTTP10, entry) }
        if fields.repeated.contains(.transferEncoding) { throw error(.transferEncodingMalformed, entry) }
        let value = entry.value(in: buffer)
        if value.equalsIgnoringCase("chunked") { return true }
        throw error(Self.namesUnknownCodings(value) ? .transferEncodingUnknown : .transferEncodingMalformed, entry)
    }

    /// Whether the list is well-formed and only asks for codings that Drydock does not have: 501 rather than 400 (RFC 9112 section 6.1).
    private static func namesUnknownCodings(_ value: UnsafeRawBufferPointer) -> Bool {
        var isWellFormed = true
        var chunkedWasSeen = false
        value.forEachMember { member in
            let isChunked = member.equalsIgnoringCase("chunked")
            // Nothing may follow `chunked`, itself included.
            if chunkedWasSeen || !(isChunked || ByteClass.all(member, are: ByteClass.token)) { isWellFormed = false }
            if isChunked { chunkedWasSeen = true }
        }
        return isWellFormed
    }

    /// Whether the connection may be used again as far as version and Connection say (RFC 9112 section 9.3); `close` wins.
    func keepAlive(_ version: HTTPVersion) -> Bool {
        guard fields.present.contains(.connection) else { return version == .http11 }
        if connectionNames("close") { return false }
        return version == .http11 || connectionNames("keep-alive")
    }

    /// Whether some Connection field has this option.
    func connectionNames(_ option: StaticString) -> Bool {
        var isNamed = false
        for entry in fields.entries where entry.known == .connection {
            entry.value(in: buffer).forEachMember { if $0.equalsIgnoringCase(option) { isNamed = true } }
        }
        return isNamed
    }

    func error(_ reason: WireReason, _ entry: FieldEntry) -> WireError {
        WireError(reason, side: side, offset: Int(entry.valueOffset))
    }
}
