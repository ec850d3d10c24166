// Why a handshake or a session came to its end, in words for a log and with a label for a metric.

import CLibssl

/// The reason for which a session ended.
package struct TLSFailure: Error, Sendable, Hashable {
    /// What kind of failure it is: the label of a metric, and what decides on advice.
    package enum Kind: String, Sendable, CaseIterable {
        /// What came is no TLS, or a record that no peer may send.
        case malformed
        /// The two sides have no protocol version in common.
        case version
        /// They have no cipher or signature scheme in common.
        case cipher
        /// The client asks for application protocols of which none is spoken here.
        case protocols
        /// There is no certificate for the name that was asked for.
        case name
        /// The peer does not trust the certificate that it was shown.
        case distrusted
        /// The peer's certificate is not trusted here; the reason is in the message.
        case untrusted
        /// The peer ended the connection before the handshake was complete.
        case abandoned
        /// The peer sent another alert; its name is in the message.
        case alert
        /// OpenSSL failed for a reason of its own, which is in the message.
        case other
    }

    package let kind: Kind
    /// The reason in words that end no sentence: “its certificate has expired”.
    package let message: String

    package init(_ kind: Kind, _ message: String) {
        self.kind = kind
        self.message = message
    }
}

extension TLSFailure {
    /// The oldest error of this thread's queue, which is empty afterwards. A fatal alert of the peer is told by its name.
    /// - Parameter verification: OpenSSL's result of the verification of the peer's certificate; nil if that was not asked for.
    static func fromQueue(verification: Int? = nil) -> TLSFailure {
        let error = ERR_get_error()
        ERR_clear_error()
        guard error != 0 else { return TLSFailure(.abandoned, "the peer closed the connection") }
        let reason = c_err_reason(error)
        // An alert that came from the peer is 1,000 and its number (RFC 8446, section 6).
        if c_err_library(error) == ERR_LIB_SSL, reason > SSL_AD_REASON_OFFSET {
            return .ofAlert(UInt8(truncatingIfNeeded: reason - SSL_AD_REASON_OFFSET))
        }
        switch reason {
        case SSL_R_CERTIFICATE_VERIFY_FAILED:
            return TLSFailure(.untrusted, verification.map(verificationMessage) ?? "its certificate is not trusted")
        case SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE:
            return TLSFailure(.untrusted, "it shows no certificate, and one is asked for")
        case SSL_R_UNSUPPORTED_PROTOCOL, SSL_R_WRONG_VERSION_NUMBER, SSL_R_VERSION_TOO_LOW,
            SSL_R_NO_PROTOCOLS_AVAILABLE:
            return TLSFailure(.version, "it speaks no TLS 1.2 or 1.3")
        case SSL_R_NO_SHARED_CIPHER, SSL_R_NO_SHARED_SIGNATURE_ALGORITHMS, SSL_R_NO_SUITABLE_KEY_SHARE,
            SSL_R_NO_SUITABLE_GROUPS, SSL_R_NO_SUITABLE_SIGNATURE_ALGORITHM:
            return TLSFailure(.cipher, "it has no cipher, group or signature scheme in common with this side")
        case SSL_R_NO_APPLICATION_PROTOCOL:
            return TLSFailure(.protocols, "it asks for none of the application protocols that are spoken here")
        case SSL_R_HTTP_REQUEST, SSL_R_HTTPS_PROXY_REQUEST:
            return TLSFailure(.malformed, "it speaks plain HTTP")
        case SSL_R_UNEXPECTED_EOF_WHILE_READING:
            return TLSFailure(.abandoned, "it closed the connection")
        default:
            let text = ERR_reason_error_string(error).map { String(cString: $0) } ?? "error \(error)"
            let isMalformed = c_err_library(error) == ERR_LIB_SSL
            return TLSFailure(isMalformed ? .malformed : .other, "OpenSSL says: \(text)")
        }
    }

    /// A fatal alert that the peer has sent (RFC 8446, section 6.2).
    static func ofAlert(_ number: UInt8) -> TLSFailure {
        let name = alertName(number)
        switch Int32(number) {
        case SSL_AD_UNKNOWN_CA, SSL_AD_BAD_CERTIFICATE, SSL_AD_CERTIFICATE_UNKNOWN:
            return TLSFailure(.distrusted, "it does not trust the certificate (alert \(name))")
        case SSL_AD_PROTOCOL_VERSION: return TLSFailure(.version, "it refuses the protocol version (alert \(name))")
        default: return TLSFailure(.alert, "it ended the session with the alert \(name)")
        }
    }

    /// An alert's name as in RFC 8446; its number if it has none.
    static func alertName(_ number: UInt8) -> String {
        names[number] ?? "\(number)"
    }

    private static let names: [UInt8: String] = [
        0: "close_notify", 10: "unexpected_message", 20: "bad_record_mac", 22: "record_overflow",
        40: "handshake_failure", 42: "bad_certificate", 43: "unsupported_certificate", 44: "certificate_revoked",
        45: "certificate_expired", 46: "certificate_unknown", 47: "illegal_parameter", 48: "unknown_ca",
        49: "access_denied", 50: "decode_error", 51: "decrypt_error", 70: "protocol_version",
        71: "insufficient_security", 80: "internal_error", 86: "inappropriate_fallback", 90: "user_canceled",
        109: "missing_extension", 110: "unsupported_extension", 112: "unrecognized_name",
        113: "bad_certificate_status_response", 115: "unknown_psk_identity", 116: "certificate_required",
        120: "no_application_protocol",
    ]

    /// What is wrong with a certificate, in words that follow “the peer”.
    static func verificationMessage(_ result: Int) -> String {
        switch Int32(truncatingIfNeeded: result) {
        case X509_V_ERR_CERT_HAS_EXPIRED: "its certificate has expired"
        case X509_V_ERR_CERT_NOT_YET_VALID: "its certificate is not valid yet"
        case X509_V_ERR_HOSTNAME_MISMATCH, X509_V_ERR_IP_ADDRESS_MISMATCH: "its certificate is for another name"
        case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT: "its certificate is self-signed"
        case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN, X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY,
            X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT, X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
            "the issuer of its certificate is unknown"
        case X509_V_ERR_CERT_REVOKED: "its certificate is revoked"
        default: "its certificate is refused (\(String(cString: X509_verify_cert_error_string(result))))"
        }
    }
}

/// What is wrong with a certificate of a chain that a server has shown.
package struct CertificateFault: Sendable {
    /// OpenSSL's `X509_V_ERR_…`.
    package let code: Int32
    /// 0 for the server's own certificate, more for the authorities above it.
    package let depth: Int
    /// The certificate at fault; nil if OpenSSL names none.
    package let certificate: Certificate?

    /// Whether it is for another name or address than the one that was asked for, and for nothing else.
    package var isOtherName: Bool {
        [X509_V_ERR_HOSTNAME_MISMATCH, X509_V_ERR_IP_ADDRESS_MISMATCH].contains(code)
    }

    /// OpenSSL's words for it.
    package var text: String { String(cString: X509_verify_cert_error_string(Int(code))) }
}
