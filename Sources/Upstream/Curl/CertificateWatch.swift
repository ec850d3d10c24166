// The fault of an origin's certificate, in more detail than libcurl gives: since when, and which
// certificate of the chain.

import CLibcurl

/// Why a certificate does not verify.
struct BadCertificate {
    enum Reason {
        /// Unix seconds.
        case expired(since: Int64)
        case notYetValid(before: Int64)
        /// It was issued by an authority that is not trusted.
        case unknownAuthority
        case other
    }

    let reason: Reason
    /// It is that of an authority of the origin's certificate.
    let isAuthority: Bool

    init(_ bad: c_curl_bad_certificate) {
        isAuthority = bad.depth > 0
        // X509_V_ERR_…, from openssl/x509_vfy.h.
        reason =
            switch bad.code {
            case 9 where bad.not_before != 0: .notYetValid(before: Int64(bad.not_before))
            case 10 where bad.not_after != 0: .expired(since: Int64(bad.not_after))
            case 2, 18, 19, 20, 21: .unknownAuthority
            default: .other
            }
    }
}

/// Hears what OpenSSL finds wrong; loop-bound, and outlives the connections of its multi handle.
final class CertificateWatch {
    private typealias Address = UnsafeRawPointer

    /// Which handle a TLS context was made for, the latest last; addresses that are compared and never read.
    private var made: [(tls: Address, easy: Address)] = []
    private var found: [Address: BadCertificate] = [:]
    /// Handshakes at a time; of those beyond, the oldest say no more than libcurl does.
    private static let limit = 256

    /// Has the certificates of this handle's new connections looked at.
    func install(on easy: UnsafeMutableRawPointer) {
        // Unretained: as of CurlMulti, which holds this object.
        c_curl_set_pointer(easy, CURLOPT_SSL_CTX_DATA, Unmanaged.passUnretained(self).toOpaque())
        c_curl_set_tls_function(easy) { easy, tls, context in
            guard let easy, let tls, let context else { return CURLE_OK }
            let watch = Unmanaged<CertificateWatch>.fromOpaque(context).takeUnretainedValue()
            let isHeard = c_curl_set_verify(
                tls,
                { chain, context in
                    var bad = c_curl_bad_certificate()
                    let result = c_curl_verify_chain(chain, &bad)
                    if result <= 0, let context {
                        Unmanaged<CertificateWatch>.fromOpaque(context).takeUnretainedValue().note(bad)
                    }
                    return result
                },
                context
            )
            if isHeard { watch.begin(Address(tls), Address(easy)) }
            return CURLE_OK
        }
    }

    private func begin(_ tls: Address, _ easy: Address) {
        found.removeValue(forKey: easy)
        if made.count >= Self.limit { made.removeFirst() }
        made.append((tls, easy))
    }

    private func note(_ bad: c_curl_bad_certificate) {
        guard let tls = bad.tls, let easy = made.last(where: { $0.tls == tls })?.easy else { return }
        found[easy] = BadCertificate(bad)
    }

    /// Takes the result of a handle's latest handshake.
    func take(_ easy: UnsafeMutableRawPointer) -> BadCertificate? {
        let easy = Address(easy)
        made.removeAll { $0.easy == easy }
        return found.removeValue(forKey: easy)
    }
}

@available(*, unavailable) extension CertificateWatch: Sendable {}
