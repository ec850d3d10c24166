// What a scripted origin received and what it is told to answer.

import Foundation

/// One request as the origin received it.
package struct OriginRequest: Sendable {
    package var method: String
    /// Exactly as received.
    package var target: String
    package var fields: [(name: String, value: String)]
    /// The number of the connection, from 1, and of the request on it, from 1.
    package var connection: Int
    package var ordinal: Int
    /// The first mebibyte of the body.
    package var body: [UInt8] = []
    package var bodyLength = 0
    /// Whether the whole body equals `Pattern` from offset 0.
    package var bodyIsPattern = true
    /// False when the connection ended inside the body.
    package var isComplete = true

    /// The first value of a field, its name in any case.
    package func field(_ name: String) -> String? {
        fields.first { $0.name.caseInsensitiveEqual(name) }?.value
    }

    package func all(_ name: String) -> [String] {
        fields.filter { $0.name.caseInsensitiveEqual(name) }.map(\.value)
    }
}

/// What the origin does with one request: steps in order.
package struct OriginReply: Sendable {
    package enum Step: Sendable {
        /// Exactly these bytes.
        case bytes([UInt8])
        /// So many bytes of `Pattern`, from this offset.
        case pattern(Int, from: Int)
        /// One byte that is urgent, and so no part of what is read (RFC 9293 section 3.8.5).
        case urgent(UInt8)
        /// Waits until the gate opens, at most two minutes.
        case wait(Gate)
        case pause(milliseconds: UInt32)
        /// Ends the connection now, with FIN.
        case cut
        /// Ends the connection now, with RST.
        case reset
        /// Answers every piece that is read with what the closure makes of it, until the peer ends the connection.
        case converse(@Sendable ([UInt8]) -> [UInt8])
        /// Waits until the peer sends something behind the request.
        case more
        /// Connects to this port of 127.0.0.1 and copies bytes both ways until both sides have ended, as a proxy does
        /// behind CONNECT.
        case tunnel(Int)
        /// Leaves the connection open and silent until the peer or the origin ends it.
        case hang
    }

    package var steps: [Step]

    package init(_ steps: [Step]) {
        self.steps = steps
    }

    /// These steps, then those of another reply.
    package func then(_ other: OriginReply) -> OriginReply { OriginReply(steps + other.steps) }

    /// A final answer with Content-Length; for HEAD pass `request`, so that the body stays away.
    package static func answer(
        _ status: Int = 200,
        to request: OriginRequest? = nil,
        fields: [(String, String)] = [],
        body: [UInt8]
    ) -> OriginReply {
        let head = head(status, fields: fields + [("Content-Length", "\(body.count)")])
        return OriginReply(request?.method == "HEAD" ? [head] : [head, .bytes(body)])
    }

    /// As above, with a text body.
    package static func answer(
        _ status: Int = 200,
        to request: OriginRequest? = nil,
        fields: [(String, String)] = [],
        _ text: String
    ) -> OriginReply {
        answer(status, to: request, fields: fields, body: Array(text.utf8))
    }

    /// A 200 with this text.
    package static func answer(_ text: String, fields: [(String, String)] = []) -> OriginReply {
        answer(200, fields: fields, body: Array(text.utf8))
    }

    /// A representation with a validator: 304 when If-None-Match names it, no body for HEAD.
    package static func resource(
        _ request: OriginRequest,
        etag: String,
        fields: [(String, String)] = [],
        _ text: String
    ) -> OriginReply {
        let fields = fields + [("ETag", etag)]
        if let condition = request.field("If-None-Match"), condition.contains(etag) {
            return OriginReply([head(304, fields: fields)])
        }
        return answer(to: request, fields: fields, text)
    }

    /// `count` bytes of `Pattern` with Content-Length.
    package static func pattern(_ count: Int, fields: [(String, String)] = []) -> OriginReply {
        OriginReply([head(200, fields: fields + [("Content-Length", "\(count)")]), .pattern(count, from: 0)])
    }

    /// A chunked body, a chunk per piece.
    package static func chunked(_ pieces: [String], fields: [(String, String)] = []) -> OriginReply {
        let chunks = pieces.map { text("\(String($0.utf8.count, radix: 16))\r\n\($0)\r\n") }
        return OriginReply(
            [head(200, fields: fields + [("Transfer-Encoding", "chunked")])] + chunks + [text("0\r\n\r\n")]
        )
    }

    /// Exactly this text, as bytes.
    package static func raw(_ text: String) -> OriginReply {
        OriginReply([.bytes(Array(text.utf8))])
    }

    /// Takes the request and says nothing.
    package static let never = OriginReply([.hang])

    /// Takes the request and ends the connection.
    package static let cut = OriginReply([.cut])

    /// The step that writes a head with these fields and a Date.
    package static func head(_ status: Int, fields: [(String, String)]) -> Step {
        var text = "HTTP/1.1 \(status) Scripted\r\n"
        if !fields.contains(where: { $0.0 == "Date" }) { text += "Date: \(httpDate())\r\n" }
        for (name, value) in fields { text += "\(name): \(value)\r\n" }
        return self.text(text + "\r\n")
    }

    /// The step that writes this text.
    package static func text(_ text: String) -> Step { .bytes(Array(text.utf8)) }
}

/// A date in the form of RFC 9110 section 5.6.7, `offset` seconds from now.
package func httpDate(_ offset: Int = 0) -> String {
    var seconds = time(nil) + offset
    var parts = tm()
    gmtime_r(&seconds, &parts)
    var text = [CChar](repeating: 0, count: 40)
    let length = strftime(&text, text.count, "%a, %d %b %Y %H:%M:%S GMT", &parts)
    return String(decoding: text[..<length].map { UInt8(bitPattern: $0) }, as: UTF8.self)
}
