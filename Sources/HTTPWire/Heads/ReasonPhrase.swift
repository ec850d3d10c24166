// Reason phrases, for answers that are made here.

/// Reason phrases of the statuses that Drydock makes itself.
public enum ReasonPhrase {
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
    public static func reason(_ status: Int) -> String { reasons[status] ?? "" }
}
