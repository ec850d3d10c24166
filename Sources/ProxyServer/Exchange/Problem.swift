// The errors that Drydock itself answers with: problem details (RFC 9457) and Proxy-Status (RFC 9209), made of refusals
// here alone, since routers and services refuse with values.

import DemoMode
import DownloadCore
package import HTTPWire
import Matching
import ServiceCore
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

// MARK: - Refusals

extension Problem {
    /// - Parameter plan: of the request that was refused.
    init(_ refusal: RouteRefusal, _ plan: RoutePlan) {
        switch refusal {
        case .loopBack(let method):
            self = .denied(
                405,
                "Method not allowed",
                "\(method.name) asks for the request itself, and an origin would send back the"
                    + " credentials that were added to it; it goes no further than this",
                Fields([("Allow", Router.methods)])
            )
        case .loop:
            self.init(
                status: 508,
                title: "Loop detected",
                detail: "the request came back to \(plan.name); check base_url and upstream proxies,"
                    + " or give each daemon its own name",
                proxyError: "proxy_loop_detected"
            )
        case .expectation:
            self.init(
                status: 417,
                title: "Expectation not known",
                detail: "only 'Expect: 100-continue' is understood; send the request without the other expectation"
            )
        case .host(let host, let service): self = .host(host, service)
        case .noService(let target):
            let mounted = plan.services.map { "\($0.mountPoint) (\($0.plan.name))" }
            let list =
                mounted.isEmpty ? "no service is configured" : "services are at " + mounted.joined(separator: ", ")
            self.init(status: 404, title: "No such service", detail: "no service matches \(target); \(list)")
        case .noEndpoint(let request, let service, let nearest):
            let near = nearest.isEmpty ? "" : "; the nearest: " + nearest.joined(separator: ", ")
            self.init(
                status: 404,
                title: "No such endpoint",
                detail: "service \(service) answers only what its endpoints name (unlisted: 404), and none of them is "
                    + "\(request)\(near)"
            )
        case .dotSegments(let service):
            self.init(
                status: 400,
                title: "Path with dot segments",
                detail:
                    "the path holds '.' or '..' as a segment, as it is or made by %2e, %2f, %5c, '\\' or ';', and could leave what service "
                    + "\(service) answers for; send the path that it leads to",
                proxyError: "http_request_error"
            )
        case .foreignPage(let service, let origin):
            let told =
                origin.map { "the web origin \($0); name it under cors.origins if that page may use them" }
                ?? "what a page of another web origin loads; "
                + "open the address itself, or ask with CORS from a page that cors.origins names"
            self.init(
                status: 403,
                title: "Foreign origin",
                detail: "service \(service) adds credentials and does not answer \(told)"
            )
        case .denied(let service, let rule):
            self = .denied(
                403,
                "Request denied",
                rule == "allow"
                    ? "no rule under 'allow' of service \(service) matches this request"
                    : "the rule \(rule) of service \(service) denies this request"
            )
        case .request(let fault, let service, let endpoint):
            self.init(
                status: fault.status,
                title: fault.title,
                detail: "endpoint \(endpoint) of service \(service): \(fault.detail)",
                proxyError: "http_request_error"
            )
        case .noAnswer(let service):
            self.init(
                status: 404,
                title: "No demo answer",
                detail: "service \(service) has no base_url, and no demo answer for this request; "
                    + "switch its demo mode on, or give it a base_url"
            )
        case .noDemoRule(let name, let service, let nearest):
            let who = name == service ? "service \(service)" : "endpoint \(name) of service \(service)"
            self.init(
                status: 404,
                title: "No demo rule",
                detail: "no rule of \(who) answers this request; the nearest are "
                    + nearest.map(\.description).joined(separator: " | ")
            )
        case .badOverride(let problem, let service):
            self.init(
                status: 400,
                title: "Bad override",
                detail: "\(DemoOverride.fieldName) of a request to service \(service): \(problem)"
            )
        case .undescribed(let problems, let service):
            self.init(
                status: 400,
                title: "Not a request of this API",
                detail:
                    "the document under 'openapi' of service \(service) does not describe this request: \(problems);"
                    + " correct the request or the document, or write validate: report"
            )
        case .forwardOff:
            self = .denied(
                403,
                "Forward mode is off",
                "this daemon does not forward to other hosts; set forward.enabled, or ask for a service by its path"
            )
        case .scheme(let scheme):
            self.init(
                status: 400,
                title: "Scheme not supported",
                detail: "only http and https targets can be forwarded, not \(scheme); reach others by CONNECT",
                proxyError: "http_request_error"
            )
        case .secureFromAfar:
            self = .denied(
                403,
                "https refused on this listener",
                "other machines can reach this listener, where an https URL in the request line would cross the network"
                    + " unencrypted; have the client use CONNECT for https (as curl does), or add localhost:PORT to"
                    + " listen and use that from this machine"
            )
        case .misdirected(let reason):
            self = .denied(
                421,
                "Misdirected request",
                "\(reason); the daemon reads this tunnel (forward.intercept), and answers in it for that authority alone:"
                    + " CONNECT, SNI and Host have to name the same host"
            )
        case .nestedTunnel:
            self = .denied(
                405,
                "Method not allowed",
                "CONNECT inside of a tunnel leads nowhere; send it to the proxy itself",
                Fields([("Allow", Router.methods.replacing(", CONNECT", with: ""))])
            )
        case .target(let target):
            self = .denied(
                403,
                "Target refused",
                "no rule allows \(target); add its host, or HOST:PORT, under forward.allow"
                    + " (and HOST:PORT under forward.connect.allow for CONNECT and https)"
            )
        case .notAdmitted(let failure):
            self.init(
                status: failure.status,
                title: ReasonPhrase.reason(failure.status),
                detail: failure.description,
                proxyError: failure.proxyStatus,
                fields: Fields([("Retry-After", "1")])
            )
        case .clientLeft: self.init(status: 503, title: "Cancelled", detail: "the client left")
        }
    }

    private static func host(_ host: Authority, _ service: String?) -> Problem {
        let who = service.map { "service \($0) does not answer" } ?? "no service answers"
        let section = service == nil ? "at the top of it, or in a service" : "in that service, or at the top of it"
        return .denied(
            421,
            "Host not served",
            "\(who) for the host \(host.name); if that is a name of this daemon, write hosts: [\"\(host.name)\"] in its"
                + " configuration file, \(section), and reload it; until then ask for localhost or the listen address"
        )
    }

    private static func denied(
        _ status: Int,
        _ title: String,
        _ detail: String,
        _ fields: Fields = Fields()
    ) -> Problem {
        Problem(status: status, title: title, detail: detail, proxyError: "http_request_denied", fields: fields)
    }
}

extension ServiceClient {
    /// Does what may be refused, with a document for each refusal.
    func refusing<Value>(_ body: () throws(RouteRefusal) -> Value) throws(Problem) -> Value {
        do throws(RouteRefusal) { return try body() } catch { throw Problem(error, plan) }
    }
}
