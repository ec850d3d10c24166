// The reason why a fetch gave no answer: the status to answer with, the error type of RFC 9209, and advice.

package import Upstream

/// The failure of a fetch, or of its start.
package indirect enum FetchError: Error, Sendable, Equatable, CustomStringConvertible {
    /// The origin could not be contacted, or its response was invalid or broke off.
    case upstream(UpstreamError)
    /// Too many fetches of the service are under way or waiting.
    case notAdmitted(String)
    /// The origin is not contacted for a while, such as because of its circuit breaker; with the whole seconds until it
    /// may be contacted again.
    case unavailable(String, seconds: Int)
    /// The request has waited for its origin as long as it may.
    case parkExpired(String)
    /// The request permits no contact with the origin (RFC 9111 section 5.2.1.7).
    case onlyIfCached(String)
    /// The daemon is offline, so the origin is not contacted.
    case offline(String)
    /// The service that plays the origin inside the daemon has failed.
    case inner(String)
    /// A redirect was to be followed, and must not be.
    case redirect(String)
    /// The answer could not be mapped.
    case mapping(String)
    /// The answer has another media type than the route expects.
    case type(String)
    /// The route answers from recordings, and has none of this request.
    case unrecorded(String)
    /// None of the sources that the route may ask has an answer.
    case unanswered(String)
    /// The request names no origin that may be asked, and its service has none of its own.
    case misdirected(String)
    /// No rule allows the origin that the request names.
    case targetRefused(String)
    /// The client has left.
    case cancelled
    /// An operator has ended the fetch.
    case stopped(String)

    /// The status of the answer.
    package var status: Int {
        switch self {
        case .upstream(let error): error.status
        case .notAdmitted, .unavailable, .cancelled, .stopped: 503
        case .inner, .redirect, .mapping, .type: 502
        case .misdirected: 421
        case .targetRefused: 403
        case .onlyIfCached, .offline, .parkExpired, .unrecorded, .unanswered: 504
        }
    }

    /// The error type of Proxy-Status (RFC 9209 section 2.3); nil if the failure is no proxy error.
    package var proxyStatus: String? {
        switch self {
        case .upstream(let error): error.proxyStatus
        case .notAdmitted: "connection_limit_reached"
        case .onlyIfCached, .unrecorded, .unanswered: nil
        case .misdirected, .targetRefused: "http_request_denied"
        case .offline, .unavailable, .parkExpired: "destination_unavailable"
        case .redirect: "http_protocol_error"
        case .inner, .mapping, .type, .cancelled: "proxy_internal_error"
        case .stopped: "connection_terminated"
        }
    }

    /// The advice at the end of the text of each `.offline`.
    package static let offlineAdvice =
        "and the daemon is offline, so that nobody is asked; 'drydock offline off' ends that"

    /// The title of a problem document; nil if the status says it all.
    package var title: String? {
        switch self {
        case .stopped: "Cancelled"
        case .mapping: "Answer not mapped"
        case .type: "Unexpected media type"
        case .unrecorded: "Not recorded"
        case .unanswered: "No rung answers"
        case .misdirected: "No origin named"
        case .targetRefused: "Target refused"
        default: nil
        }
    }

    /// The seconds after which another request may succeed, for Retry-After (RFC 9110 section 10.2.3); nil if that is
    /// unknown.
    package var retryAfter: Int? {
        if case .unavailable(_, let seconds) = self { return seconds }
        return status == 503 ? 1 : nil
    }

    /// The text for clients.
    package var told: String {
        if case .upstream(let error) = self { error.told } else { description }
    }

    /// The failure with advice, for logs and operators.
    package var description: String {
        switch self {
        case .upstream(let error): error.detail
        case .notAdmitted(let detail), .unavailable(let detail, seconds: _), .parkExpired(let detail),
            .onlyIfCached(let detail),
            .offline(let detail), .inner(let detail), .redirect(let detail), .mapping(let detail), .type(let detail),
            .unrecorded(let detail), .unanswered(let detail), .misdirected(let detail),
            .targetRefused(let detail), .stopped(let detail):
            detail
        case .cancelled: "the request was given up"
        }
    }

    /// The same error with one more sentence in its text.
    package func adding(_ sentence: String) -> FetchError {
        switch self {
        case .upstream(let error): .upstream(error.adding(sentence))
        case .mapping(let detail): .mapping("\(detail); \(sentence)")
        case .type(let detail): .type("\(detail); \(sentence)")
        default: self
        }
    }

    /// Whether the origin was connected but did not answer this method, so that another method may succeed. Without a
    /// connection none would.
    var mayBeOfMethodAlone: Bool {
        switch self {
        case .upstream(let error): !error.isUnsent && error.kind != .cancelled && error.kind != .internal
        case .inner, .redirect, .mapping, .type: true
        case .notAdmitted, .unavailable, .parkExpired, .onlyIfCached, .offline, .unrecorded, .unanswered, .misdirected,
            .targetRefused, .cancelled, .stopped:
            false
        }
    }

    /// Whether the origin has answered with a success, which is not what the configuration expects.
    var isOfSuccess: Bool {
        switch self {
        case .mapping, .type: true
        default: false
        }
    }

    /// Whether the origin failed, so that a stale stored response may replace its answer (RFC 9111 section 4.2.4).
    package var isOriginFailure: Bool {
        switch self {
        case .upstream(let error): error.kind != .request && error.kind != .requestBody && error.kind != .addressRefused
        case .notAdmitted, .unavailable, .parkExpired, .inner, .redirect, .mapping, .type, .offline, .unanswered,
            .misdirected:
            true
        case .onlyIfCached, .unrecorded, .targetRefused, .cancelled, .stopped: false
        }
    }
}
