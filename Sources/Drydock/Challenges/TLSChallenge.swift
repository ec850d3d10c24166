// What a program is asked about an origin that TLS alone does not let through.

public import FoundationEssentials

/// An origin whose certificate does not verify, or that asks for a certificate of the program's own.
///
/// Whoever set ``DownloadConfiguration/TLS/onChallenge`` is asked about it, once for each origin and public key, however
/// many downloads wait. Until there is an answer nothing has been sent to the origin but what opens a TLS connection.
public struct TLSChallenge: Sendable, Hashable {
    /// Why it is asked.
    public enum Reason: Sendable, Hashable {
        /// The certificate, or that of an authority behind it, has expired, in seconds since 1970.
        case expired(since: Int64)
        /// It is not valid yet, in seconds since 1970.
        case notYetValid(before: Int64)
        /// It was issued by an authority that is not trusted, or by itself.
        case unknownAuthority
        /// It is for another name.
        case otherName
        /// It does not verify for another reason; ``TLSChallenge/detail`` says which.
        case otherwise
        /// The certificate is good, and the origin asks for one in return.
        case wantsCertificate
    }

    /// What becomes of the origin, for the life of the manager. Another key of the same origin is another question.
    public enum Answer: Sendable, Hashable {
        /// The origin is not asked; downloads from it fail as untrusted.
        case refuse
        /// The origin is asked although its certificate does not verify, as long as it has the same public key. An
        /// origin that asks for a certificate is asked without one.
        case proceed
        /// The origin gets this certificate: a PEM file with the chain, and one with its key, where that is not in the
        /// same file. For ``Reason/wantsCertificate`` alone; for every other reason it refuses.
        case present(certificate: URL, key: URL? = nil)
    }

    /// Scheme, host and port, such as `https://example.com:8443`.
    public var origin: String
    /// Why it is asked.
    public var reason: Reason
    /// What is wrong, in words.
    public var detail: String
    /// The certificates that the origin has shown, as DER, its own first.
    public var certificates: [Data]
    /// The origin's public key as ``DownloadConfiguration/TLS/pins`` has it: `sha256//` and the Base64 of the digest of
    /// its SubjectPublicKeyInfo.
    public var pin: String
}
