// The error of bytes on the wire that were refused: the reason, the status of the answer, and the offset.

/// The reason of a refusal. Logs and `Cache-Status` print the raw value.
public enum WireReason: String, Sendable, CaseIterable {
    case methodMalformed = "method-malformed"
    case methodTooLong = "method-too-long"
    case targetMalformed = "target-malformed"
    case targetTooLong = "target-too-long"
    case targetAsterisk = "target-asterisk"
    case authorityMalformed = "authority-malformed"
    case versionMalformed = "version-malformed"
    case versionUnsupported = "version-unsupported"
    case statusLineMalformed = "status-line-malformed"
    case reasonTooLong = "reason-too-long"
    case bareLineFeed = "bare-line-feed"
    case bareCarriageReturn = "bare-carriage-return"
    case fieldNameEmpty = "field-name-empty"
    case fieldNameMalformed = "field-name-malformed"
    case spaceBeforeColon = "space-before-colon"
    case foldedLine = "folded-line"
    case fieldValueControl = "field-value-control"
    case fieldTooLong = "field-too-long"
    case tooManyFields = "too-many-fields"
    case headTooLong = "head-too-long"
    case hostMissing = "host-missing"
    case hostRepeated = "host-repeated"
    case hostMalformed = "host-malformed"
    case contentLengthMalformed = "content-length-malformed"
    case contentLengthRepeated = "content-length-repeated"
    case contentLengthWithTransferEncoding = "content-length-with-transfer-encoding"
    case transferEncodingMalformed = "transfer-encoding-malformed"
    case transferEncodingUnknown = "transfer-encoding-unknown"
    case transferEncodingInHTTP10 = "transfer-encoding-in-http-1.0"
    case bodyNotAllowed = "body-not-allowed"
    case lengthRequired = "length-required"
    case chunkSizeMalformed = "chunk-size-malformed"
    case chunkSizeTooLarge = "chunk-size-too-large"
    case chunkExtensionMalformed = "chunk-extension-malformed"
    case chunkExtensionTooLong = "chunk-extension-too-long"
    case chunkEndMalformed = "chunk-end-malformed"
    case trailersTooLong = "trailers-too-long"
    case bodyTruncated = "body-truncated"
    case tooManyInterims = "too-many-interims"

    /// The status of the answer to a request; for a response it is always 502.
    public var requestStatus: Int {
        switch self {
        case .targetTooLong: 414
        case .fieldTooLong, .tooManyFields, .headTooLong, .trailersTooLong: 431
        case .methodTooLong, .transferEncodingUnknown: 501
        case .versionUnsupported: 505
        case .lengthRequired: 411
        default: 400
        }
    }

    /// The remedy for the sender of a response, if it differs from that for the sender of a request.
    public var responseAdvice: String {
        switch self {
        case .fieldTooLong: "send shorter field lines, or raise limits.response_line"
        case .tooManyFields: "send fewer field lines, or raise limits.response_fields"
        case .headTooLong: "send a shorter head, or raise limits.response_head"
        default: advice
        }
    }

    /// The remedy for the sender.
    public var advice: String {
        switch self {
        case .methodMalformed: "send a method made of token characters, then one space"
        case .methodTooLong: "send a method of at most 32 bytes"
        case .targetMalformed:
            "send a path, an absolute URL, or host:port with CONNECT, percent-encoded or in UTF-8, without spaces or #"
        case .targetTooLong: "send a shorter request target, or raise limits.target"
        case .targetAsterisk: "send * only with OPTIONS"
        case .authorityMalformed:
            "send host or host:port with letters, digits, -, ., _ and ~, or an IPv6 address in brackets"
        case .versionMalformed: "end the request line with HTTP/1.1 and CRLF"
        case .versionUnsupported: "speak HTTP/1.1 or HTTP/1.0"
        case .statusLineMalformed: "begin the response with HTTP/1.1, a space, three digits and a reason"
        case .reasonTooLong: "send a reason of at most 512 bytes"
        case .bareLineFeed: "end lines with CRLF, not with LF alone"
        case .bareCarriageReturn: "send CR only right before LF"
        case .fieldNameEmpty: "put a field name before the colon"
        case .fieldNameMalformed: "make field names of token characters and follow them with a colon"
        case .spaceBeforeColon: "put the colon right after the field name"
        case .foldedLine: "send each field on one line; folded lines are obsolete"
        case .fieldValueControl: "send no control characters but HTAB in field values"
        case .fieldTooLong: "send shorter field lines, or raise limits.field"
        case .tooManyFields: "send fewer field lines, or raise limits.fields"
        case .headTooLong: "send a shorter head, or raise limits.head"
        case .hostMissing: "send one Host field"
        case .hostRepeated: "send Host once"
        case .hostMalformed: "send Host as host or host:port"
        case .contentLengthMalformed: "send Content-Length as decimal digits below 2^63"
        case .contentLengthRepeated: "send Content-Length once, with one value"
        case .contentLengthWithTransferEncoding: "send Content-Length or Transfer-Encoding, not both"
        case .transferEncodingMalformed: "send Transfer-Encoding: chunked, once"
        case .transferEncodingUnknown: "use no transfer coding but chunked"
        case .transferEncodingInHTTP10: "send no Transfer-Encoding in HTTP/1.0"
        case .bodyNotAllowed: "send this request without a body"
        case .lengthRequired: "send Content-Length"
        case .chunkSizeMalformed: "send chunk sizes as 1 to 16 hexadecimal digits and CRLF"
        case .chunkSizeTooLarge: "send chunks below 2^63 bytes"
        case .chunkExtensionMalformed: "send chunk extensions without control characters and end them with CRLF"
        case .chunkExtensionTooLong: "send shorter chunk extensions, or none"
        case .chunkEndMalformed: "end chunk data with CRLF after as many bytes as the size says"
        case .trailersTooLong: "send shorter trailers"
        case .bodyTruncated: "send the whole body before closing"
        case .tooManyInterims: "send fewer and shorter 1xx responses before the final one"
        }
    }
}

/// The error of bytes that Drydock refuses; their connection is closed after the answer.
public struct WireError: Error, Sendable, Equatable {
    /// The status of the answer: 400, 411, 414, 431, 501 or 505 for a request, 502 for a response.
    public var status: Int
    public var reason: WireReason
    /// The offset of the error in bytes from the start of the head, target or body.
    public var offset: Int

    public init(status: Int, reason: WireReason, offset: Int = 0) {
        self.status = status
        self.reason = reason
        self.offset = offset
    }

    public init(_ reason: WireReason, side: MessageSide, offset: Int = 0) {
        self.init(status: side == .request ? reason.requestStatus : 502, reason: reason, offset: offset)
    }

    /// The reason, the offset and the remedy.
    public var detail: String {
        "\(reason.rawValue) at byte \(offset): \(status == 502 ? reason.responseAdvice : reason.advice)"
    }
}

extension WireError: CustomStringConvertible {
    public var description: String { "\(status) \(detail)" }
}
