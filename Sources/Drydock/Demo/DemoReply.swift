// What a draw becomes for one request: the whole body, a part of it, or the news that the asker has it already.

import DemoMode
import DownloadCore
import FoundationEssentials
import HTTPCaching
import HTTPTypes
import HTTPWire

/// The head and the body of a demo answer. A 200 to GET and HEAD obeys conditions and ranges as a web server does for a
/// file (RFC 9110 section 13.2.2).
struct DemoReply {
    private(set) var head: ResponseHead
    private(set) var body = Data()

    /// - Parameter now: Unix seconds, for conditions that are dates.
    init(_ draw: DemoDraw, to request: RequestHead, now: Int64) {
        let isRepresentation =
            draw.status == 200 && draw.content.file != nil && (request.method == .get || request.method == .head)
        if isRepresentation {
            head = ResponseHead(status: 200, fields: draw.representationFields)
            select(draw.body, for: request, now: now)
        } else {
            head = ResponseHead(status: draw.status, fields: draw.fields)
            if draw.status != 204, draw.status != 304 { fill(draw.body, for: request) }
        }
        head.reason = ReasonPhrase.reason(head.status)
        head.fields.remove("Drydock-Demo")
        head.fields.append("Drydock-Demo", draw.fieldValue)
    }

    private mutating func select(_ bytes: [UInt8], for request: RequestHead, now: Int64) {
        let own = OwnRepresentation(head, length: Int64(bytes.count), now: now)
        guard let request = own.judged(request) else {
            head = ResponseHead(status: 412)
            return fill([], for: request)
        }
        if case .notModified(let fields) = Caching.answerConditional(request: request, stored: own.head) {
            head = ResponseHead(status: 304, fields: fields)
            return
        }
        switch Caching.rangeAnswer(request: request, stored: own.head, length: Int64(bytes.count)) {
        case .whole: fill(bytes, for: request)
        case .unsatisfiable:
            head = Caching.unsatisfiableHead(length: Int64(bytes.count))
            fill([], for: request)
        case .parts(let ranges): fill(ranges, of: bytes, own.head)
        }
    }

    private mutating func fill(_ bytes: [UInt8], for request: RequestHead) {
        head.fields.set(.contentLength, String(bytes.count))
        if request.method != .head { body = Data(bytes) }
    }

    private mutating func fill(_ ranges: [Range<Int64>], of bytes: [UInt8], _ stored: StoredHead) {
        let parts = ranges.map { bytes[Int($0.lowerBound)..<Int($0.upperBound)] }
        guard ranges.count > 1 else {
            head = Caching.partHead(stored: stored, range: ranges[0], length: Int64(bytes.count))
            body = Data(parts[0])
            return
        }
        let boundary = (0..<2).map { _ in String(UInt64.random(in: 0 ... .max), radix: 36) }.joined()
        let multipart = Multipart(
            ranges: ranges,
            complete: Int64(bytes.count),
            stored: stored.fields,
            boundary: boundary
        )
        head = Caching.multipartHead(stored: stored, multipart)
        for (part, head) in zip(parts, multipart.heads) { body += head + part }
        body += multipart.tail
    }
}

extension HTTPResponse {
    init(_ head: ResponseHead) {
        self.init(
            status: Status(code: head.status, reasonPhrase: head.reason),
            headerFields: HTTPFields(head.fields)
        )
    }
}
