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
            detail: "only http and https targets can be forwarded, not \(scheme); reach others by CONNECT",
            proxyError: "http_request_error"
        )
    }

    static let secureFromAfar = Problem(
        status: 403,
        title: "https refused on this listener",
        detail:
            "other machines can reach this listener, where an https URL in the request line would cross the network unencrypted;"
            + " have the client use CONNECT for https (as curl does), or add localhost:PORT to listen and use that from this machine",
        proxyError: "http_request_denied"
    )

    static func refused(_ target: String) -> Problem {
        Problem(
            status: 403,
            title: "Target refused",
            detail: "no rule allows \(target); add its host, or HOST:PORT, under forward.allow"
                + " (and HOST:PORT under forward.connect.allow for CONNECT and https)",
            proxyError: "http_request_denied"
        )
    }
}
