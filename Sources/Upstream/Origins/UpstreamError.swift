// Why a transfer failed: the kind, the status to answer with, the RFC 9209 error type, and a text that says what to do.

import Glibc
package import HTTPWire

/// The deadline that passed.
package enum TimeoutPhase: String, Sendable {
    case resolve, connect
    case firstByte = "first_byte"
    case idle, total
}

/// A failed transfer.
package struct UpstreamError: Error, Sendable, Equatable {
    package enum Kind: Sendable, Equatable {
        /// The URL, the method with its body or a field cannot be sent.
        case request
        /// The name has no address.
        case nameNotFound
        /// The resolver was not available, or failed.
        case resolver
        /// `TargetRules` refuses every address of the name.
        case addressRefused
        case connectionRefused
        /// There is no route, or connecting failed in another way.
        case unreachable
        /// The origin's certificate does not verify.
        case certificate
        /// The TLS handshake failed.
        case tls
        /// The `ca`, `client_cert` or `client_key` file cannot be used.
        case tlsFile
        /// The proxy on the way to the origin refuses with this status, before any part of the request was sent to the
        /// origin; nil if it gave no valid answer.
        case proxy(Int?)
        case timeout(TimeoutPhase)
        /// The connection ended before the response head.
        case closed
        /// The connection ended within the body.
        case truncated
        /// The bytes are not HTTP/1.1, or have a framing that is refused.
        case protocolViolation(WireError)
        /// The status does not fit the request: 101, or 304 to a request without conditions.
        case unexpectedStatus(Int)
        /// The source of the request's body failed or ended early.
        case requestBody
        /// The client of the transfers was shut down.
        case cancelled
        /// libcurl or the process failed, such as with too many open files.
        case `internal`
    }

    package let kind: Kind
    /// The texts behind one reference: an outcome with this error is copied with each answer, and copying a long value
    /// is slow.
    private let words: Words

    /// The host, the cause and the remedy, for logs and operators.
    package var detail: String { words.detail }
    /// The detail for clients, which does not reveal the address of a name.
    package var told: String { words.told }
    /// The certificates that the origin has shown in a handshake that failed; nil if no program decides about them.
    package var challenge: CertificateChallenge? { words.challenge }

    private final class Words: Sendable, Equatable {
        let detail: String
        let told: String
        /// Whether an origin received the request before the one that failed was asked.
        let isAfterAnother: Bool
        let challenge: CertificateChallenge?

        init(
            _ detail: String,
            _ told: String,
            isAfterAnother: Bool = false,
            challenge: CertificateChallenge? = nil
        ) {
            (self.detail, self.told, self.isAfterAnother) = (detail, told, isAfterAnother)
            self.challenge = challenge
        }

        static func == (one: Words, other: Words) -> Bool {
            (one.detail, one.told, one.isAfterAnother) == (other.detail, other.told, other.isAfterAnother)
                && one.challenge == other.challenge
        }
    }

    /// - Parameters:
    ///   - told: the text for clients, if the detail has an address that name servers gave.
    ///   - challenge: the facts by which a program may decide before the request is made again.
    package init(_ kind: Kind, detail: String, told: String? = nil, challenge: CertificateChallenge? = nil) {
        self.kind = kind
        words = Words(detail, told ?? detail, challenge: challenge)
    }

    private init(_ kind: Kind, _ words: Words) {
        self.kind = kind
        self.words = words
    }

    /// This error for a request that a redirect led to: another origin received the request before.
    package var afterAnother: UpstreamError {
        UpstreamError(kind, Words(detail, told, isAfterAnother: true, challenge: challenge))
    }

    /// This error with one more sentence, which must not reveal anything that clients must not learn.
    package func adding(_ sentence: String) -> UpstreamError {
        UpstreamError(
            kind,
            Words(
                "\(detail); \(sentence)",
                "\(told); \(sentence)",
                isAfterAnother: words.isAfterAnother,
                challenge: challenge
            )
        )
    }

    /// The status to answer with (RFC 9209 section 2.3): 502, 503 or 504; 508 for a loop.
    package var status: Int {
        switch kind {
        case .timeout, .proxy(504): 504
        // A loop through tunnels is answered like one without a tunnel (RFC 5842 section 7.2).
        case .proxy(508): 508
        case .unreachable, .cancelled, .internal: 503
        default: 502
        }
    }

    /// The error type of Proxy-Status (RFC 9209 section 2.3).
    package var proxyStatus: String {
        switch kind {
        case .request: "http_request_error"
        case .nameNotFound, .resolver: "dns_error"
        case .addressRefused: "destination_ip_prohibited"
        case .connectionRefused: "connection_refused"
        case .unreachable: "destination_ip_unroutable"
        case .certificate: "tls_certificate_error"
        case .tls: "tls_protocol_error"
        case .tlsFile, .proxy(407): "proxy_configuration_error"
        case .proxy(504): "connection_timeout"
        case .proxy(508): "proxy_loop_detected"
        case .proxy(nil): "connection_terminated"
        case .proxy(let status?): status < 500 ? "http_request_denied" : "destination_unavailable"
        case .timeout(.resolve): "dns_timeout"
        case .timeout(.connect): "connection_timeout"
        case .timeout(.firstByte), .timeout(.total): "http_response_timeout"
        case .timeout(.idle): "connection_read_timeout"
        case .closed: "connection_terminated"
        case .truncated: "http_response_incomplete"
        case .protocolViolation(let error): Self.proxyStatus(error.reason)
        case .unexpectedStatus: "http_protocol_error"
        case .requestBody: "http_request_error"
        case .cancelled, .internal: "proxy_internal_error"
        }
    }

    private static func proxyStatus(_ reason: WireReason) -> String {
        switch reason {
        case .headTooLong, .tooManyFields: "http_response_header_section_size"
        case .fieldTooLong: "http_response_header_size"
        case .trailersTooLong: "http_response_trailer_section_size"
        case .transferEncodingUnknown, .transferEncodingMalformed: "http_response_transfer_coding"
        case .bodyTruncated: "http_response_incomplete"
        default: "http_protocol_error"
        }
    }

    /// True if no byte of the request was sent, so that it may be repeated with any method.
    package var isUnsent: Bool {
        if words.isAfterAnother { return false }
        switch kind {
        case .nameNotFound, .resolver, .addressRefused, .connectionRefused, .unreachable, .certificate, .tls, .tlsFile,
            .timeout(.resolve), .timeout(.connect), .request, .proxy:
            return true
        default: return false
        }
    }
}

extension UpstreamError {
    /// The error if the rules of forward mode allow none of the host's addresses.
    static func refused(_ name: String, at addresses: String) -> UpstreamError {
        let advice =
            "name the host under forward.allow to allow it, or, where a redirect led there, under redirects.allow"
        return UpstreamError(
            .addressRefused,
            detail: "\(name) leads to \(addresses), an internal address: \(advice)",
            told: "\(name) leads to an internal address: \(advice)"
        )
    }
}

extension UpstreamError: CustomStringConvertible {
    package var description: String { "\(status) \(proxyStatus): \(detail)" }
}

// MARK: - Connections that failed or broke off

/// The errors of connections that failed or broke off, for both carriers.
enum ConnectionFailure {
    /// The error of a connection that could not be opened.
    /// - Parameters:
    ///   - osError: `errno`; 0 if unknown.
    ///   - text: the message if it is unknown.
    ///   - isProxied: whether the connection would have led to the proxy that `name` names.
    static func connect(_ name: String, _ osError: Int32, text: String, isProxied: Bool) -> UpstreamError {
        let reason = osError == 0 ? text : String(cString: strerror(osError))
        let isRefused = osError == ECONNREFUSED
        let advice =
            isRefused
            ? "check that the \(isProxied ? "proxy" : "origin") runs and listens on that port"
            : "check the network and its routes"
        let detail = "cannot connect to \(name): \(reason); \(advice)"
        switch osError {
        case ECONNREFUSED: return UpstreamError(.connectionRefused, detail: detail)
        case EMFILE, ENFILE, ENOBUFS, ENOMEM: return UpstreamError(.internal, detail: detail)
        case ETIMEDOUT: return UpstreamError(.timeout(.connect), detail: detail)
        default: return UpstreamError(.unreachable, detail: detail)
        }
    }

    /// The error of a deadline that has passed.
    static func timeout(_ name: String, _ phase: TimeoutPhase) -> UpstreamError {
        let what =
            switch phase {
            case .resolve:
                "the name of \(name) was not resolved in time: check the name servers, or raise timeout.connect"
            case .connect: "no connection to \(name) in time: check that the origin is up, or raise timeout.connect"
            case .firstByte:
                "\(name) took the request and sent no response head in time: raise timeout.first_byte if it is slow"
            case .idle: "\(name) neither sent nor took a byte for too long: raise timeout.idle if it is slow"
            case .total: "the exchange with \(name) took too long: raise timeout.total"
            }
        return UpstreamError(.timeout(phase), detail: what)
    }

    /// The error of a connection that ended.
    /// - Parameters:
    ///   - address: the address of the connection, with its port.
    ///   - text: how the connection ended.
    static func closed(_ name: String, _ address: String?, isHeadComplete: Bool, text: String) -> UpstreamError {
        let address = address.map { " at \($0)" } ?? ""
        let what =
            isHeadComplete ? "within the body: \(text)" : "before a response head: \(text); see its log"
        return UpstreamError(
            isHeadComplete ? .truncated : .closed,
            detail: "\(name)\(address) ended the connection \(what)",
            told: "\(name) ended the connection \(what)"
        )
    }
}
