// The words for a TLS handshake with an origin that failed, whichever carrier made it.

import HTTPWire

/// Words the failures of handshakes with one origin.
struct HandshakeFailure {
    /// Host and port, and the proxy on the way there.
    let name: String
    let tls: TLSOptions

    /// The error if the origin's certificate does not verify.
    /// - Parameters:
    ///   - bad: the fault that OpenSSL found; nil if it named none.
    ///   - isOtherName: whether the certificate is for another name, if it has no other fault.
    ///   - text: the reason in the words of OpenSSL or libcurl.
    ///   - challenge: the facts for a program that decides.
    func certificate(
        _ bad: BadCertificate?,
        isOtherName: Bool,
        text: String,
        challenge: CertificateChallenge? = nil
    ) -> UpstreamError {
        let (file, key) = (tls.ca, tls.caKey)
        var authority = "name the PEM file of its authority in \(key)"
        if let file { authority = "put the PEM of its authority into \(file), which \(key) names" }
        // OpenSSL gives this text for every missing certificate of the chain.
        if text.contains("unable to get local issuer certificate") {
            authority += ", or, if the origin does not send its intermediate certificate, add that there"
        }
        let whose = bad?.isAuthority == true ? "the authority's certificate of" : "the certificate of"
        let what: String =
            switch bad?.reason {
            case .expired(let time)?: "has expired on \(HTTPDate.format(time)); renew it there"
            case .notYetValid(let time)?:
                "is not valid before \(HTTPDate.format(time)); correct it there, or the clock of this machine"
            case .unknownAuthority?:
                "is of an authority that \(file ?? "this machine") does not know (\(text)); \(authority)"
            case nil where isOtherName:
                "is for another name (\(text)); correct the host that is asked for (of a service: 'base_url'), or the certificate there"
            case .other?, nil: "does not verify: \(text); correct it there, or \(authority)"
            }
        return UpstreamError(.certificate, detail: "\(whose) \(name) \(what)", challenge: challenge)
    }

    /// The error if the origin's key is none of the pinned ones.
    var pin: UpstreamError {
        let which = tls.pins.count == 1 ? "not the one" : "none of the \(tls.pins.count)"
        return UpstreamError(
            .certificate,
            detail:
                "\(name) shows a public key that is \(which) under 'tls.pin'; if the origin has a new key, pin that one as well"
        )
    }

    /// The error if one of the files of the options cannot be used.
    func file(_ text: String) -> UpstreamError {
        let files = [tls.ca, tls.clientCertificate, tls.clientKey].compactMap { $0 }
        return UpstreamError(
            .tlsFile,
            detail: "a TLS file for \(name) cannot be used: \(text); check \(files.joined(separator: ", "))"
        )
    }

    /// The error if there was no session for any other reason.
    func session(_ text: String) -> UpstreamError {
        let advice = "check that it speaks TLS 1.2 or newer there, and whether it wants tls.client_cert"
        return UpstreamError(.tls, detail: "no TLS with \(name): \(text); \(advice)")
    }
}
