// What Content-Length, Transfer-Encoding, Connection and Expect of a parsed head say each (RFC 9112 sections 6 and 9).
// What may not stand in one head together is for `RequestParser` and `ResponseParser` to refuse.

/// A head that was scanned: the bytes that the scanner's offsets point into, and whose it is. Used within one call.
struct ScannedHead {
    let buffer: UnsafeRawBufferPointer
    let side: MessageSide

    func error(_ reason: WireReason, _ entry: FieldEntry) -> WireError {
        WireError(reason, side: side, offset: Int(entry.valueOffset))
    }
}

// Methods of the scanner, which is borrowed: a value of their own would hold its entries with a reference.
extension FieldScanner {
    /// The one Content-Length, 0 to 2^63 - 1, or nil without one; repeated, a list, or anything but digits is refused.
    func contentLength(_ head: ScannedHead) throws(WireError) -> UInt64? {
        guard let entry = self.entry(.contentLength) else { return nil }
        if repeated.contains(.contentLength) { throw head.error(.contentLengthRepeated, entry) }
        let value = entry.value(in: head.buffer)
        if let length = Decimal.parse(value) { return length }
        throw head.error(value.contains(0x2C) ? .contentLengthRepeated : .contentLengthMalformed, entry)
    }

    /// Whether the body is chunked; any Transfer-Encoding but exactly `chunked` is refused, and every one in HTTP/1.0.
    func isChunked(_ head: ScannedHead, _ version: HTTPVersion) throws(WireError) -> Bool {
        guard let entry = self.entry(.transferEncoding) else { return false }
        if version == .http10 { throw head.error(.transferEncodingInHTTP10, entry) }
        if repeated.contains(.transferEncoding) { throw head.error(.transferEncodingMalformed, entry) }
        let value = entry.value(in: head.buffer)
        if value.equalsIgnoringCase("chunked") { return true }
        throw head.error(Self.namesUnknownCodings(value) ? .transferEncodingUnknown : .transferEncodingMalformed, entry)
    }

    /// Whether the list is well-formed and only asks for codings that Drydock does not have: 501 rather than
    /// 400 (RFC 9112 section 6.1).
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

    /// Whether the connection may be used again as far as version and Connection say (RFC 9112
    /// section 9.3); `close` wins.
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
