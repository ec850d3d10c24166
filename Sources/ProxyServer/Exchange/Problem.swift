// The errors that Drydock itself answers with: problem details (RFC 9457) and Proxy-Status (RFC 9209).

import Configuration
package import HTTPWire

/// One `application/problem+json` answer.
package struct Problem: Error, Sendable, Equatable {
    package var status: Int
    /// What kind of problem it is; the same for each of the kind.
    package var title: String
    /// What happened here and what to do about it.
    package var detail: String
    /// The error token of RFC 9209, such as `connection_refused`; nil where no proxy error is meant.
    package var proxyError: String?
    /// Further fields, such as Retry-After or Allow.
    package var fields: Fields

    package init(
        status: Int,
        title: String,
        detail: String,
        proxyError: String? = nil,
        fields: Fields = Fields()
    ) {
        self.status = status
        self.title = title
        self.detail = detail
        self.proxyError = proxyError
        self.fields = fields
    }

    /// The answer to bytes that were refused.
    package init(_ error: WireError) {
        self.init(
            status: error.status,
            title: StatusText.reason(error.status),
            detail: error.detail,
            proxyError: error.status == 502 ? "http_protocol_error" : "http_request_error"
        )
    }

    /// The refusal of a service that a command names and no configuration has.
    package static func unknown(service name: String, among names: [String]) -> Problem {
        let near = Suggestions.nearest(to: name, among: names).map { "did you mean '\($0)'?" }
        let known = names.isEmpty ? "there are none" : "there are \(names.joined(separator: ", "))"
        return Problem(
            status: 404,
            title: "No such service",
            detail: "no service is called \(name); \(near ?? known)"
        )
    }

    /// The document.
    package var body: [UInt8] {
        var json = JSONText()
        json.beginObject()
        json.member("title", title)
        json.member("status", status)
        json.member("detail", detail)
        json.endObject()
        return json.bytes + [0x0A]
    }

    /// The head that goes with the document, without Content-Length.
    /// - Parameter name: the daemon's pseudonym.
    package func head(name: String) -> ResponseHead {
        var fields = self.fields
        fields.set(.contentType, "application/problem+json")
        fields.set(.cacheControl, "no-store")
        if !fields.contains(.via) { fields.append(.via, "1.1 \(name)") }
        if let proxyError {
            fields.append(.proxyStatus, "\(name); error=\(proxyError); details=\(StructuredText.string(detail))")
        }
        return ResponseHead(status: status, reason: StatusText.reason(status), fields: fields)
    }
}

/// Reason phrases of the statuses that Drydock makes itself.
package enum StatusText {
    private static let reasons: [Int: String] = [
        100: "Continue", 101: "Switching Protocols", 200: "OK", 201: "Created", 202: "Accepted",
        203: "Non-Authoritative Information", 204: "No Content",
        304: "Not Modified", 400: "Bad Request", 403: "Forbidden", 404: "Not Found", 405: "Method Not Allowed",
        408: "Request Timeout", 409: "Conflict", 410: "Gone", 411: "Length Required", 412: "Precondition Failed",
        413: "Content Too Large", 414: "URI Too Long", 417: "Expectation Failed", 421: "Misdirected Request",
        422: "Unprocessable Content",
        429: "Too Many Requests", 431: "Request Header Fields Too Large", 500: "Internal Server Error",
        501: "Not Implemented", 502: "Bad Gateway", 503: "Service Unavailable", 504: "Gateway Timeout",
        505: "HTTP Version Not Supported", 508: "Loop Detected",
    ]

    /// The phrase of RFC 9110 section 15; empty for statuses that Drydock never makes.
    package static func reason(_ status: Int) -> String { reasons[status] ?? "" }
}

extension Exchange {
    /// Answers with a problem document; cuts the answer where a head has already been sent.
    package func problem(_ problem: Problem) {
        guard !isHeadSent else { return fail() }
        let body = problem.body
        var head = problem.head(name: context.settings.name)
        if outcome.error.isEmpty { outcome.error = problem.detail }
        // Whoever tells of the error can name its line.
        if listener.role == .proxy, trace != nil || context.log?.needsID == true {
            head.fields.set(RequestID.fieldName, requestID.text)
        }
        sendHead(head, body: .known(Int64(body.count)))
        queue(body)
        finish()
    }
}
