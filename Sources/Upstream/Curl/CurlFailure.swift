// libcurl's result codes as upstream errors.

import CLibcurl
import HTTPWire

enum CurlFailure {
    /// The facts about a failed transfer at its end.
    struct Context {
        let name: String
        let address: String?
        let isHeadComplete: Bool
        let hasReceived: Bool
        let osError: Int32
        /// The message of libcurl.
        let text: String
        /// The certificate's fault, if OpenSSL reported one.
        let certificate: BadCertificate?
        /// The certificates that the origin has shown; nil if no program decides about them.
        let shown: ShownCertificates?
        let tls: TLSOptions
        /// Whether the connection leads to the proxy that `name` names.
        let isProxied: Bool
    }

    static func error(_ code: CURLcode, _ context: Context) -> UpstreamError {
        let name = context.name
        switch code {
        case CURLE_COULDNT_CONNECT:
            return ConnectionFailure.connect(
                context.name,
                context.osError,
                text: context.text,
                isProxied: context.isProxied
            )
        case CURLE_OPERATION_TIMEDOUT:
            return UpstreamError(
                .timeout(.connect),
                detail: "no connection to \(name) in time: check that the origin is up"
            )
        case CURLE_COULDNT_RESOLVE_HOST, CURLE_COULDNT_RESOLVE_PROXY:
            return UpstreamError(.resolver, detail: "the name of \(name) could not be resolved: \(context.text)")
        case CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_ISSUER_ERROR: return certificate(context)
        case CURLE_SSL_PINNEDPUBKEYNOTMATCH: return pin(context)
        case CURLE_SSL_CERTPROBLEM, CURLE_SSL_CACERT_BADFILE: return tlsFile(context)
        case CURLE_SSL_CONNECT_ERROR, CURLE_SSL_CIPHER, CURLE_USE_SSL_FAILED: return tls(context)
        case CURLE_URL_MALFORMAT:
            return UpstreamError(.request, detail: "libcurl takes no URL with \(name): check the host")
        case CURLE_UNSUPPORTED_PROTOCOL, CURLE_WEIRD_SERVER_REPLY, CURLE_FILESIZE_EXCEEDED,
            CURLE_BAD_CONTENT_ENCODING, CURLE_OUT_OF_MEMORY:
            return violation(code, context)
        case CURLE_PARTIAL_FILE, CURLE_GOT_NOTHING, CURLE_SEND_ERROR, CURLE_RECV_ERROR, CURLE_SEND_FAIL_REWIND:
            return closed(context)
        default:
            return UpstreamError(.internal, detail: "the transfer from \(name) failed: \(words(code, context))")
        }
    }

    private static func words(_ code: CURLcode, _ context: Context) -> String {
        context.text.isEmpty ? String(cString: curl_easy_strerror(code)) : context.text
    }

    private static func certificate(_ context: Context) -> UpstreamError {
        let isOtherName = context.text.contains("subject name")
        return HandshakeFailure(name: context.name, tls: context.tls).certificate(
            context.certificate,
            isOtherName: isOtherName,
            text: context.text,
            challenge: CertificateChallenge(context.shown, context.certificate, isOtherName: isOtherName)
        )
    }

    private static func pin(_ context: Context) -> UpstreamError {
        HandshakeFailure(name: context.name, tls: context.tls).pin
    }

    private static func tlsFile(_ context: Context) -> UpstreamError {
        HandshakeFailure(name: context.name, tls: context.tls).file(context.text)
    }

    private static func tls(_ context: Context) -> UpstreamError {
        if let shown = context.shown, shown.wantsCertificate {
            return UpstreamError(
                .tls,
                detail: "no TLS with \(context.name): it asks for a certificate, and there is none for it; name one",
                challenge: CertificateChallenge(shown, nil)
            )
        }
        return HandshakeFailure(name: context.name, tls: context.tls).session(context.text)
    }

    /// The violation of HTTP that libcurl reports before Drydock's parser sees the bytes.
    private static func violation(_ code: CURLcode, _ context: Context) -> UpstreamError {
        let text = context.text.lowercased()
        let reason: WireReason =
            switch code {
            case CURLE_FILESIZE_EXCEEDED: .contentLengthMalformed
            case _ where text.contains("content-length"): .contentLengthMalformed
            case _ where text.contains("version"): .versionUnsupported
            // libcurl takes no line over 100 KiB into memory.
            case CURLE_OUT_OF_MEMORY: .headTooLong
            case CURLE_BAD_CONTENT_ENCODING: .transferEncodingUnknown
            case _ where !context.hasReceived: .statusLineMalformed
            case _ where text.contains("nul byte"): .fieldValueControl
            default: .fieldNameMalformed
            }
        let error = WireError(reason, side: .response)
        let detail = "\(context.name) sent a response that is refused: \(context.text); \(reason.responseAdvice)"
        return UpstreamError(.protocolViolation(error), detail: detail)
    }

    private static func closed(_ context: Context) -> UpstreamError {
        // In TLS 1.3 the alert about a missing client certificate comes only after the handshake.
        if context.text.contains("alert") { return tls(context) }
        return ConnectionFailure.closed(
            context.name,
            context.address,
            isHeadComplete: context.isHeadComplete,
            text: context.text
        )
    }
}
