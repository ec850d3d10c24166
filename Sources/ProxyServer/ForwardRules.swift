// The refusals of forward mode, with what to do about each (http rule 40).

enum ForwardRules {
    static let disabled = Problem(
        status: 403,
        title: "Forward mode is off",
        detail: "this daemon does not forward to other hosts; set forward.enabled, or ask for a service by its path",
        proxyError: "http_request_denied"
    )

    static func scheme(_ scheme: String) -> Problem {
        Problem(
            status: 400,
            title: "Scheme not supported",
            detail: "only http targets can be forwarded, not \(scheme); use CONNECT for https",
            proxyError: "http_request_error"
        )
    }

    static func refused(_ target: String) -> Problem {
        Problem(
            status: 403,
            title: "Target refused",
            detail: "no rule allows \(target); add its host under forward.allow"
                + " (and HOST:PORT under forward.connect.allow for CONNECT)",
            proxyError: "http_request_denied"
        )
    }
}
