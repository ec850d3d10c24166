// Answers to requests with Range from a whole representation: all of it, one part, several, or 416 (RFC 9110 section
// 14.2).

package import HTTPWire

package enum RangeAnswer: Sendable, Equatable {
    /// Range is ignored, and the whole representation is the answer.
    case whole
    /// The parts in the order of the request, without overlaps; not empty.
    case parts([Range<Int64>])
    /// No range of the request can be satisfied: 416.
    case unsatisfiable
}

/// The answer to a request for one range.
package enum OnePart: Sendable, Equatable {
    case whole
    case part(Range<Int64>)
}

extension Caching {
    /// The answer to the Range of `request` from a stored response that may be used, after its other conditions have
    /// been evaluated (RFC 9110 section 13.2.2): ``answerConditional(request:stored:)`` comes first.
    /// - Parameter length: the length of the whole representation in bytes.
    package static func rangeAnswer(request: RequestHead, stored: StoredHead, length: Int64) -> RangeAnswer {
        // Range is defined for GET only, and counts only if the answer without it would be a 200 (section 14.2).
        guard request.method == .get, stored.status == 200, let ranges = ByteRanges.parse(request.fields),
            stored.withValidators({ ifRangeHolds(request.fields, stored: $0) })
        else { return .whole }
        let parts = ranges.resolved(length: length)
        if !parts.isEmpty { return .parts(parts) }
        // A suffix of an empty representation is satisfiable, but no Content-Range can express it (section 14.1.2).
        let wantsEnd = ranges.specs.contains { if case .suffix(let count) = $0 { count > 0 } else { false } }
        return length == 0 && wantsEnd ? .whole : .unsatisfiable
    }

    /// The answer to a GET as by ``rangeAnswer(request:stored:length:)``, from borrowed fields: the one part that it
    /// asks for, or the whole; nil if more than these two is needed. Allocates nothing.
    /// - Parameter lines: the fields of the request, without those that Connection names.
    package static func onePart(
        _ lines: some FieldLines,
        stored: BorrowedValidators,
        length: Int64
    ) -> OnePart? {
        guard stored.status == 200 else { return .whole }
        guard let asked = ByteRanges.only(lines) else { return nil }
        guard ifRangeHolds(lines, stored: stored) else { return .whole }
        return asked.resolved(length: length).map { .part($0) }
    }

    /// Whether If-Range (RFC 9110 section 13.1.5) is absent, or names just this representation by a strong validator.
    package static func ifRangeHolds(_ lines: some FieldLines, stored: BorrowedValidators) -> Bool {
        var isPresent = false
        lines.forEachValue(.ifRange) { _ in isPresent = true }
        guard isPresent else { return true }
        return lines.only(.ifRange) { value in
            if let limit = HTTPDate.parse(value, now: stored.responseTime) {
                return stored.stronglyModifiedAt == limit
            }
            // A value without quotes is not an entity tag, so it is not known to be strong.
            guard let own = stored.tag, own.isQuoted, let tag = BorrowedTag(value) else { return false }
            return own.matchesStrongly(tag)
        } ?? false
    }

    /// The head of a 206 with one part: all fields of the 200, and Content-Range (RFC 9110 section 15.3.7.1).
    package static func partHead(stored: StoredHead, range: Range<Int64>, length: Int64) -> ResponseHead {
        var fields = partFields(stored.fields)
        fields.set(.contentRange, ContentRange(range: range, length: length).value)
        fields.set(.contentLength, String(range.upperBound - range.lowerBound))
        return ResponseHead(status: 206, reason: "Partial Content", fields: fields)
    }

    /// The head of a 206 with several parts, each of which has its own Content-Range (RFC 9110 section 15.3.7.2).
    package static func multipartHead(stored: StoredHead, _ multipart: Multipart) -> ResponseHead {
        var fields = partFields(stored.fields)
        fields.set(.contentType, multipart.contentType)
        fields.set(.contentLength, String(multipart.length))
        return ResponseHead(status: 206, reason: "Partial Content", fields: fields)
    }

    /// The head of a 416 (RFC 9110 section 15.5.17).
    package static func unsatisfiableHead(length: Int64) -> ResponseHead {
        let fields = Fields([("Content-Range", ContentRange(length: length).value), ("Accept-Ranges", "bytes")])
        return ResponseHead(status: 416, reason: "Range Not Satisfiable", fields: fields)
    }

    private static func partFields(_ stored: Fields) -> Fields {
        var fields = stored
        fields.removeAll { name, known in !isInPart(name, known) }
        if !fields.contains(.acceptRanges) { fields.append(.acceptRanges, "bytes") }
        return fields
    }

    /// Whether a 206 repeats a field of the stored response; Content-Length is yet to be set. Allocates nothing.
    package static func isInPart(_ name: UnsafeRawBufferPointer, _ known: KnownField) -> Bool {
        // A switch compares directly; `!=` of another module's enum goes through its conformance.
        switch known {
        case .contentRange: false
        case .other: !isContentDigest(name)
        default: true
        }
    }

    /// Whether the field is a digest of one message's content rather than of the representation (RFC 9530 section 2).
    static func isContentDigest(_ name: UnsafeRawBufferPointer) -> Bool {
        name.equalsIgnoringCase("content-digest") || name.equalsIgnoringCase("content-md5")
    }
}

/// The framing of a body with several parts (RFC 9110 section 14.6).
package struct Multipart: Sendable, Equatable {
    /// The delimiter and fields before each part, in the order of the parts.
    package let heads: [[UInt8]]
    /// The delimiter after the last part.
    package let tail: [UInt8]
    /// The value of Content-Type.
    package let contentType: String
    /// The length of all parts with their delimiters, in bytes.
    package let length: Int64

    /// - Parameters:
    ///   - complete: the length of the whole representation in bytes.
    ///   - stored: the fields of the stored response.
    ///   - boundary: 1 to 70 letters and digits that the content is most unlikely to contain.
    package init(ranges: [Range<Int64>], complete: Int64, stored: Fields, boundary: String) {
        contentType = "multipart/byteranges; boundary=\(boundary)"
        let type =
            stored.values(.contentType).first.map { Array("Content-Type: ".utf8) + $0 + Array("\r\n".utf8) } ?? []
        heads = ranges.indices.map { index in
            let value = ContentRange(range: ranges[index], length: complete).value
            return Array("\(index == 0 ? "" : "\r\n")--\(boundary)\r\n".utf8) + type
                + Array("Content-Range: \(value)\r\n\r\n".utf8)
        }
        tail = Array("\r\n--\(boundary)--\r\n".utf8)
        let framing = heads.reduce(tail.count) { $0 + $1.count }
        length = ranges.reduce(Int64(framing)) { $0 + ($1.upperBound - $1.lowerBound) }
    }
}
