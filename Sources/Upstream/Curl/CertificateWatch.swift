// The fault of an origin's certificate, in more detail than libcurl gives: the time, the certificate, and what the
// server showed, for a program that decides about it.

import CLibcurl

/// The fault of a certificate that does not verify.
struct BadCertificate {
    enum Reason {
        /// The certificate's lifetime ended at this time, in Unix seconds.
        case expired(since: Int64)
        case notYetValid(before: Int64)
        /// It was issued by an authority that is not trusted.
        case unknownAuthority
        case other
    }

    let reason: Reason
    /// Whether the bad certificate is one of the authorities above the origin's own.
    let isAuthority: Bool

    init(_ bad: c_curl_bad_certificate) {
        self.init(
            code: bad.code,
            depth: Int(bad.depth),
            notBefore: bad.not_before == 0 ? nil : Int64(bad.not_before),
            notAfter: bad.not_after == 0 ? nil : Int64(bad.not_after)
        )
    }

    /// - Parameters:
    ///   - code: one of the `X509_V_ERR_…` of openssl/x509_vfy.h.
    ///   - depth: 0 for the origin's own certificate.
    ///   - notBefore: in Unix seconds, as `notAfter`; nil if unknown.
    init(code: Int32, depth: Int, notBefore: Int64?, notAfter: Int64?) {
        isAuthority = depth > 0
        reason =
            switch (code, notBefore, notAfter) {
            case (9, let time?, _): .notYetValid(before: time)
            case (10, _, let time?): .expired(since: time)
            case (2, _, _), (18, _, _), (19, _, _), (20, _, _), (21, _, _): .unknownAuthority
            default: .other
            }
    }
}

/// What a server has shown in a handshake, and whether it asked for a certificate.
struct ShownCertificates {
    /// The certificates in DER, the origin's own first.
    var chain: [[UInt8]] = []
    /// The pin of the origin's public key in the form that configurations have; empty if the key could not be read.
    var pin = ""
    var wantsCertificate = false
}

/// The events that are recorded of the TLS handshakes of one easy handle.
struct HandshakeInterest {
    /// Whether the handshake ends when the server asks for a certificate.
    let endsWhereWanted: Bool
    /// The name or address that the server's certificate has to be for; nil for any.
    let host: String?
    let isAddress: Bool
}

/// Records the faults that OpenSSL finds in certificates; loop-bound, and outlives the connections of its multi handle.
final class CertificateWatch {
    private typealias Address = UnsafeRawPointer

    /// The handle of each TLS context, the latest last; the addresses are compared and never read.
    private var made: [(tls: Address, easy: Address)] = []
    private var found: [Address: BadCertificate] = [:]
    /// The interests of those handles that report challenges, by the handles' addresses.
    private var interests: [Address: HandshakeInterest] = [:]
    private var shown: [Address: ShownCertificates] = [:]
    /// The most handshakes that are recorded at a time; beyond it the oldest report no more than libcurl does.
    private static let limit = 256

    /// Records the certificates of this handle's new connections.
    func install(on easy: UnsafeMutableRawPointer) {
        // A former handle may have had the same address.
        setInterest(nil, of: easy)
        // Unretained, as in CurlMulti, which holds this object.
        c_curl_set_pointer(easy, CURLOPT_SSL_CTX_DATA, Unmanaged.passUnretained(self).toOpaque())
        c_curl_set_tls_function(easy) { easy, tls, context in
            guard let easy, let tls, let watch = CertificateWatch.of(context) else { return CURLE_OK }
            let isHeard = c_curl_set_verify(
                tls,
                { chain, context in
                    var bad = c_curl_bad_certificate()
                    let result = c_curl_verify_chain(chain, &bad)
                    if let chain, let watch = CertificateWatch.of(context) {
                        watch.judged(chain, result > 0 ? nil : BadCertificate(bad))
                    }
                    return result
                },
                context
            )
            guard isHeard else { return CURLE_OK }
            watch.begin(Address(tls), Address(easy))
            guard let interest = watch.interests[Address(easy)] else { return CURLE_OK }
            watch.shown[Address(easy)] = ShownCertificates()
            if interest.endsWhereWanted { CertificateWatch.ask(tls, context) }
            return CURLE_OK
        }
    }

    /// Ends handshakes in which the server asks for a certificate, since there is none yet.
    private static func ask(_ tls: UnsafeMutableRawPointer, _ context: UnsafeMutableRawPointer?) {
        _ = c_curl_set_wanted(
            tls,
            { session, context in
                guard let session, let watch = CertificateWatch.of(context) else { return 1 }
                return watch.certificateWanted(session) ? 0 : 1
            },
            context
        )
    }

    /// Unretained: the multi handle's object holds it, and outlives every handshake.
    private static func of(_ context: UnsafeMutableRawPointer?) -> CertificateWatch? {
        context.map { Unmanaged<CertificateWatch>.fromOpaque($0).takeUnretainedValue() }
    }

    /// Sets what is recorded of a handle's handshakes from now on; nil records only what is wrong with a certificate.
    func setInterest(_ interest: HandshakeInterest?, of easy: UnsafeMutableRawPointer) {
        interests[Address(easy)] = interest
        if interest == nil { shown.removeValue(forKey: Address(easy)) }
    }

    private func begin(_ tls: Address, _ easy: Address) {
        found.removeValue(forKey: easy)
        shown.removeValue(forKey: easy)
        if made.count >= Self.limit { made.removeFirst() }
        made.append((tls, easy))
    }

    private func easy(of tls: Address?) -> Address? { made.last { $0.tls == tls }?.easy }

    private func judged(_ chain: UnsafeMutableRawPointer, _ bad: BadCertificate?) {
        guard let easy = easy(of: c_curl_chain_owner(chain)) else { return }
        if let bad { found[easy] = bad }
        if shown[easy] != nil { shown[easy] = ShownCertificates(chain) }
    }

    /// Records that the server asks for a certificate.
    /// - Returns: whether the handshake ends here.
    private func certificateWanted(_ session: UnsafeMutableRawPointer) -> Bool {
        guard let easy = easy(of: c_curl_session_owner(session)), shown[easy] != nil, let interest = interests[easy]
        else { return false }
        // A certificate for another name is reported first: libcurl continues the handshake and finds it.
        if let host = interest.host, !c_curl_is_for(session, host, interest.isAddress) { return false }
        shown[easy]?.wantsCertificate = true
        return true
    }

    /// Takes the fault that a handle's latest handshake found, and the certificates that the server showed in it.
    func take(_ easy: UnsafeMutableRawPointer) -> (bad: BadCertificate?, shown: ShownCertificates?) {
        let easy = Address(easy)
        made.removeAll { $0.easy == easy }
        return (found.removeValue(forKey: easy), shown.removeValue(forKey: easy))
    }
}

@available(*, unavailable) extension CertificateWatch: Sendable {}

extension ShownCertificates {
    fileprivate init(_ chain: UnsafeMutableRawPointer) {
        var told: [[UInt8]] = []
        withUnsafeMutablePointer(to: &told) { told in
            c_curl_tell_chain(
                chain,
                { bytes, length, context in
                    // The array belongs to the caller, and outlives this call.
                    let bytes = UnsafeRawBufferPointer(start: bytes, count: Int(length))
                    context?.assumingMemoryBound(to: [[UInt8]].self).pointee.append(Array(bytes))
                },
                told
            )
        }
        guard let key = told.first else { return }
        self.chain = Array(told.dropFirst())
        var digest = [CChar](repeating: 0, count: 45)
        let isHashed = key.withUnsafeBytes { c_curl_digest($0.baseAddress, $0.count, &digest) }
        if isHashed {
            pin = "sha256//" + String(decoding: digest.prefix(44).map { UInt8(bitPattern: $0) }, as: UTF8.self)
        }
    }
}

// MARK: - What was shown

/// A handshake that failed for a reason about which a program may decide; reported only with
/// ``TLSOptions/tellsChallenges``.
package struct CertificateChallenge: Sendable, Equatable {
    package enum Reason: Sendable, Equatable {
        /// The certificate's lifetime ended at this time, in Unix seconds.
        case expired(since: Int64)
        case notYetValid(before: Int64)
        /// It was issued by an authority that is not trusted.
        case unknownAuthority
        /// The certificate is good, but for another name.
        case otherName
        case other
        /// The certificate is good, and the origin asks for one in return.
        case wantsCertificate
    }

    package let reason: Reason
    /// The certificates in DER, the origin's own first.
    package let certificates: [[UInt8]]
    /// The origin's public key, in the form of ``TLSOptions/pins``.
    package let pin: String
}

extension CertificateChallenge {
    /// - Parameter isOtherName: whether the name is the only fault.
    /// - Returns: nil if the key could not be read, so that nothing could be decided about it.
    init?(_ shown: ShownCertificates?, _ bad: BadCertificate?, isOtherName: Bool = false) {
        guard let shown, !shown.pin.isEmpty else { return nil }
        certificates = shown.chain
        pin = shown.pin
        if shown.wantsCertificate {
            reason = .wantsCertificate
            return
        }
        reason =
            switch bad?.reason {
            case .expired(let time)?: .expired(since: time)
            case .notYetValid(let time)?: .notYetValid(before: time)
            case .unknownAuthority?: .unknownAuthority
            case nil where isOtherName: .otherName
            case .other?, nil: .other
            }
    }
}
