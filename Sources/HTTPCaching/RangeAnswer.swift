// What a request with Range gets of a representation that is at hand: the whole, one part, several, or 416 (RFC 9110 section 14.2).

package import HTTPWire

package enum RangeAnswer: Sendable, Equatable {
    /// Range counts for nothing here.
    case whole
    /// Not empty; in the order of the request, without overlaps.
    case parts([Range<Int64>])
    /// None of what was asked for exists: 416.
    case unsatisfiable
}

extension Caching {
    /// What `request` gets of a stored response that may be used, after its other conditions have been evaluated
    /// (RFC 9110 section 13.2.2): ``answerConditional(request:stored:)`` comes first.
    /// - Parameter length: of the whole representation, in bytes.
    package static func rangeAnswer(request: RequestHead, stored: StoredHead, length: Int64) -> RangeAnswer {
        // Range is defined for GET only, and counts where the answer without it would be a 200 (section 14.2).
        guard request.method == .get, stored.status == 200, let ranges = ByteRanges.parse(request.fields),
            ifRangeHolds(request.fields, stored: stored)
        else { return .whole }
        let parts = ranges.resolved(length: length)
        if !parts.isEmpty { return .parts(parts) }
        // A suffix of an empty representation is satisfiable, and no Content-Range can say so (section 14.1.2).
        let wantsEnd = ranges.specs.contains { if case .suffix(let count) = $0 { count > 0 } else { false } }
        return length == 0 && wantsEnd ? .whole : .unsatisfiable
    }

    /// If-Range (RFC 9110 section 13.1.5): true where it is absent, or names just this representation by a strong validator.
    package static func ifRangeHolds(_ fields: Fields, stored: StoredHead) -> Bool {
        let values = fields.all(.ifRange)
        guard let value = values.first else { return true }
        guard values.count == 1 else { return false }
        if let limit = HTTPDate.parse(value, now: stored.responseTime) {
            return strongLastModified(stored.fields, now: stored.responseTime) == limit
        }
        // Without quotes it is no entity tag, and nobody can say that it is a strong one.
        guard let tag = EntityTag(Array(Latin1.bytes(value))), let own = entityTag(stored.fields), own.isQuoted else {
            return false
        }
        return own.matchesStrongly(tag)
    }

    /// The head of a 206 with one part: everything of the 200, and Content-Range (RFC 9110 section 15.3.7.1).
    package static func partHead(stored: StoredHead, range: Range<Int64>, length: Int64) -> ResponseHead {
        var fields = partFields(stored.fields)
        fields.set(.contentRange, ContentRange(range: range, length: length).value)
        fields.set(.contentLength, String(range.upperBound - range.lowerBound))
        return ResponseHead(status: 206, reason: "Partial Content", fields: fields)
    }

    /// The head of a 206 with several parts: Content-Range stands in the parts (RFC 9110 section 15.3.7.2).
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
        fields.remove(.contentRange)
        fields.removeAll(named: contentDigests)
        if !fields.contains(.acceptRanges) { fields.append(.acceptRanges, "bytes") }
        return fields
    }

    /// What describes the bytes of one message rather than the representation (RFC 9530 section 2).
    static let contentDigests: Set<String> = ["content-digest", "content-md5"]
}

/// The framing of a body with several parts (RFC 9110 section 14.6).
package struct Multipart: Sendable, Equatable {
    /// What comes before each part, in order.
    package let heads: [[UInt8]]
    /// What comes after the last one.
    package let tail: [UInt8]
    /// The value of Content-Type.
    package let contentType: String
    /// Of everything, in bytes.
    package let length: Int64

    /// - Parameters:
    ///   - complete: the length of the whole representation, in bytes.
    ///   - stored: its fields.
    ///   - boundary: 1 to 70 letters and digits that the bytes are most unlikely to hold.
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
