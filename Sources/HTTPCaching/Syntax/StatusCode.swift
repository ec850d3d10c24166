// What the caching rules know about status codes (RFC 9110 section 15).

enum StatusCode {
    /// RFC 9110 section 15.1. 206 is in that list and left out here: partial responses are not stored as they are.
    static func isHeuristicallyCacheable(_ status: Int) -> Bool {
        switch status {
        case 200, 203, 204, 300, 301, 308, 404, 405, 410, 414, 501: true
        default: false
        }
    }

    /// Whether `cache.ttl` applies to a status. The other heuristically cacheable statuses report an error or an
    /// absence: with them, a lifetime meant for contents would keep the error for as long.
    static func takesTTL(_ status: Int) -> Bool {
        switch status {
        case 200, 203, 204, 301, 308: true
        default: false
        }
    }

    /// The final statuses whose meaning for a cache is implemented, for `must-understand` (RFC 9111 section 5.2.2.3).
    static func isUnderstood(_ status: Int) -> Bool {
        switch status {
        case 200...205, 300...303, 307, 308, 400...411, 413...415, 417, 421, 422, 426, 500...505: true
        default: false
        }
    }

    static func isSuccessful(_ status: Int) -> Bool { (200..<300).contains(status) }
}
