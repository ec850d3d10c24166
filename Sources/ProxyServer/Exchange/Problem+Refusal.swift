// Makes problem documents of refusals. Routers and services refuse with values; only this file turns them into answers.

import DemoMode
import DownloadCore
import HTTPWire
import ServiceCore

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
            let mounted = plan.services.map { "\($0.place) (\($0.plan.name))" }
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
        let place = service == nil ? "at the top of it, or in a service" : "in that service, or at the top of it"
        return .denied(
            421,
            "Host not served",
            "\(who) for the host \(host.name); if that is a name of this daemon, write hosts: [\"\(host.name)\"] in its"
                + " configuration file, \(place), and reload it; until then ask for localhost or the listen address"
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
