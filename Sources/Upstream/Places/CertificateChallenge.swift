// What an origin has shown in a TLS handshake that failed, for whoever decides about it.

/// A handshake that failed for a reason about which a program may decide; told where ``TLSOptions/tellsChallenges``.
package struct CertificateChallenge: Sendable, Equatable {
    package enum Reason: Sendable, Equatable {
        /// Unix seconds.
        case expired(since: Int64)
        case notYetValid(before: Int64)
        /// It was issued by an authority that is not trusted.
        case unknownAuthority
        /// It is for another name.
        case otherName
        case other
        /// It is good, and the origin asks for a certificate in return.
        case wantsCertificate
    }

    package let reason: Reason
    /// As DER, the origin's own first.
    package let certificates: [[UInt8]]
    /// The origin's public key, as ``TLSOptions/pins`` has it.
    package let pin: String
}

extension CertificateChallenge {
    /// - Parameter isOther: nothing is wrong but the name.
    /// - Returns: nil where the key could not be read, so that nothing could be decided about it.
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
