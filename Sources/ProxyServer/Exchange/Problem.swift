// The errors that Drydock itself answers with: problem details (RFC 9457) and Proxy-Status (RFC 9209).

import Configuration
package import HTTPWire
import Matching
package import Upstream

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
    /// A JSON document that takes the place of this problem's own.
    package var document: [UInt8]?

    package init(
        status: Int,
        title: String,
        detail: String,
        proxyError: String? = nil,
        fields: Fields = Fields(),
        document: [UInt8]? = nil
    ) {
        self.status = status
        self.title = title
        self.detail = detail
        self.proxyError = proxyError
        self.fields = fields
        self.document = document
    }

    /// The answer to bytes that were refused.
    package init(_ error: WireError) {
        self.init(
            status: error.status,
            title: ReasonPhrase.reason(error.status),
            detail: error.detail,
            proxyError: error.status == 502 ? "http_protocol_error" : "http_request_error"
        )
    }

    /// The refusal of a service that a command names and no configuration has.
    package static func unknown(service name: String, among names: [String]) -> Problem {
        unknown("service", name, among: names)
    }

    package static func unknown(endpoint name: String, among names: [String]) -> Problem {
        unknown("endpoint", name, among: names)
    }

    private static func unknown(_ kind: String, _ name: String, among names: [String]) -> Problem {
        let near = Suggestions.nearest(to: name, among: names).map { "did you mean '\($0)'?" }
        let known = names.isEmpty ? "there are none" : "there are \(names.joined(separator: ", "))"
        return Problem(
            status: 404,
            title: "No such \(kind)",
            detail: "no \(kind) is called \(name); \(near ?? known)"
        )
    }

    /// The document.
    package var body: [UInt8] {
        if let document { return document }
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
        fields.set(.contentType, document == nil ? "application/problem+json" : "application/json")
        fields.set(.cacheControl, "no-store")
        if !fields.contains(.via) { fields.append(.via, "1.1 \(name)") }
        if let proxyError {
            fields.append(.proxyStatus, "\(name); error=\(proxyError); details=\(StructuredText.string(detail))")
        }
        return ResponseHead(status: status, reason: ReasonPhrase.reason(status), fields: fields)
    }
}

extension Problem {
    /// The answer to a request whose origin failed.
    package init(_ error: UpstreamError) {
        self.init(
            status: error.status,
            title: Self.title(error.kind),
            detail: error.told,
            proxyError: error.proxyStatus
        )
    }

    private static func title(_ kind: UpstreamError.Kind) -> String {
        switch kind {
        case .request: "Request cannot be sent"
        case .nameNotFound: "Name not found"
        case .resolver: "Name resolution failed"
        case .addressRefused: "Target not allowed"
        case .connectionRefused: "Connection refused"
        case .unreachable: "Origin unreachable"
        case .certificate: "Certificate not trusted"
        case .tls, .tlsFile: "TLS failed"
        case .proxy(407): "Proxy wants credentials"
        case .proxy(508): "Loop detected"
        case .proxy: "Proxy refused"
        case .timeout: "Origin timed out"
        case .closed, .truncated: "Origin closed"
        case .protocolViolation, .unexpectedStatus: "Origin broke the protocol"
        case .requestBody: "Request body failed"
        case .cancelled: "Cancelled"
        case .internal: "Internal failure"
        }
    }
}
