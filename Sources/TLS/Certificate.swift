// X.509 certificates and their keys: read from PEM, asked for names and times, written as PEM.

import CLibssl

/// A certificate.
///
/// Sendable, unchecked: OpenSSL counts its references atomically, and nothing changes it after it was made.
package final class Certificate: @unchecked Sendable {
    /// Owned; freed with this object.
    let handle: OpaquePointer

    /// Takes over one reference.
    init(owning handle: OpaquePointer) { self.handle = handle }

    deinit { X509_free(handle) }

    /// The moment after which it is not valid, in seconds since 1970; nil if its field cannot be read.
    package var notAfter: Int64? { Certificate.seconds(X509_get0_notAfter(handle)) }
    /// The moment before which it is not valid, in seconds since 1970; nil if its field cannot be read.
    package var notBefore: Int64? { Certificate.seconds(X509_get0_notBefore(handle)) }

    /// SHA-256 of the certificate's DER form.
    package var fingerprint: [UInt8] {
        var digest = [UInt8](repeating: 0, count: Int(EVP_MAX_MD_SIZE))
        var count: UInt32 = 0
        guard X509_digest(handle, EVP_sha256(), &digest, &count) == 1 else { return [] }
        return Array(digest.prefix(Int(count)))
    }

    /// The certificate's subject in one line, for people.
    package var subject: String { Certificate.line(X509_get_subject_name(handle)) }
    /// The issuer's name in one line, for people.
    package var issuer: String { Certificate.line(X509_get_issuer_name(handle)) }

    /// The names and addresses that it is for, from its subject alternative names: DNS names in lower case, addresses in
    /// their usual text.
    package var names: [String] {
        guard let extensionValue = X509_get_ext_d2i(handle, NID_subject_alt_name, nil, nil) else { return [] }
        let names = OpaquePointer(extensionValue)
        defer { GENERAL_NAMES_free(names) }
        return (0..<c_general_name_count(names)).compactMap { index in
            guard let name = c_general_name(names, index)?.pointee else { return nil }
            guard name.type == GEN_DNS || name.type == GEN_IPADD, let text = name.d.dNSName else { return nil }
            let count = Int(ASN1_STRING_length(text))
            guard let base = ASN1_STRING_get0_data(text) else { return nil }
            let bytes = Array(UnsafeBufferPointer(start: base, count: count))
            return name.type == GEN_DNS
                ? String(decoding: bytes, as: UTF8.self).lowercased() : HostName.text(ofAddress: bytes)
        }
    }

    /// SHA-256 of its public key in DER (RFC 7469, section 2.4): what a pin names; nil if the key cannot be written.
    package var keyDigest: [UInt8]? {
        var der: UnsafeMutablePointer<UInt8>?
        let count = i2d_X509_PUBKEY(X509_get_X509_PUBKEY(handle), &der)
        guard count > 0, let der else { return nil }
        defer { CRYPTO_free(der, nil, 0) }
        var digest = [UInt8](repeating: 0, count: Int(EVP_MAX_MD_SIZE))
        var length: UInt32 = 0
        guard EVP_Digest(der, Int(count), &digest, &length, EVP_sha256(), nil) == 1 else { return nil }
        return Array(digest.prefix(Int(length)))
    }

    /// Whether it may issue certificates.
    package var isAuthority: Bool { X509_check_ca(handle) == 1 }

    /// The certificate in PEM.
    package var pem: String {
        PEM.written { PEM_write_bio_X509($0, handle) } ?? ""
    }

    private static func seconds(_ time: UnsafePointer<ASN1_TIME>?) -> Int64? {
        guard let time, let epoch = ASN1_TIME_set(nil, 0) else { return nil }
        defer { ASN1_STRING_free(epoch) }
        var (days, seconds): (Int32, Int32) = (0, 0)
        guard ASN1_TIME_diff(&days, &seconds, epoch, time) == 1 else { return nil }
        return Int64(days) * 86_400 + Int64(seconds)
    }

    private static func line(_ name: OpaquePointer?) -> String {
        guard let name else { return "" }
        return PEM.written { c_x509_name_print($0, name) } ?? ""
    }
}

/// A private key.
///
/// Sendable, unchecked: OpenSSL counts its references atomically, and nothing changes it after it was made.
package final class PrivateKey: @unchecked Sendable {
    /// Owned; freed with this object, which clears its memory.
    let handle: OpaquePointer

    init(owning handle: OpaquePointer) { self.handle = handle }

    deinit { EVP_PKEY_free(handle) }

    /// A new P-256 key; some 20 µs.
    /// - Throws: ``CertificateError`` if the system's OpenSSL makes none.
    package init() throws(CertificateError) {
        guard let made = c_new_p256() else { throw .openSSL(PEM.lastError()) }
        handle = made
    }

    /// The key in PEM (PKCS #8), without a password.
    package var pem: String? {
        PEM.written { PEM_write_bio_PrivateKey($0, handle, nil, nil, 0, nil, nil) }
    }
}

/// What a server shows, and proves with its key: a certificate, those that lead from it to a root, and the key.
package final class TLSIdentity: Sendable {
    package let certificate: Certificate
    package let chain: [Certificate]
    let key: PrivateKey
    /// The chain as OpenSSL takes it; nil if there is none.
    let stack: CertificateStack?

    /// - Throws: ``CertificateError/mismatch`` if the key is not that of the certificate.
    package init(_ certificate: Certificate, chain: [Certificate] = [], key: PrivateKey) throws(CertificateError) {
        guard X509_check_private_key(certificate.handle, key.handle) == 1 else {
            ERR_clear_error()
            throw .mismatch
        }
        self.certificate = certificate
        self.chain = chain
        self.key = key
        stack = chain.isEmpty ? nil : CertificateStack(chain)
    }

    /// Reads a chain and a key as files have them: the server's own certificate first.
    /// - Parameters:
    ///   - chain: PEM with at least one certificate.
    ///   - key: PEM with a key that needs no password; it may be the same text.
    package convenience init(chain: [UInt8], key: [UInt8]) throws(CertificateError) {
        let certificates = try PEM.certificates(in: chain)
        try self.init(certificates[0], chain: Array(certificates.dropFirst()), key: PEM.privateKey(in: key))
    }
}

/// Certificates in the form of OpenSSL's lists.
///
/// Sendable, unchecked: nothing changes the list after it was made.
final class CertificateStack: @unchecked Sendable {
    let handle: OpaquePointer

    init?(_ certificates: [Certificate]) {
        guard let made = c_x509_stack() else { return nil }
        handle = made
        for certificate in certificates where c_x509_push(made, certificate.handle) != 1 { return nil }
    }

    deinit { c_x509_free_stack(handle) }
}

/// Why a certificate or a key cannot be used.
package enum CertificateError: Error, Sendable, Hashable {
    /// There is no certificate in the text.
    case noCertificate
    /// There is no private key in the text.
    case noKey
    /// The key is protected by a password.
    case password
    /// A certificate of the text cannot be read.
    case malformed(String)
    /// The key is not that of the certificate.
    case mismatch
    /// The name is neither a host name nor an address.
    case name(String)
    /// OpenSSL failed.
    case openSSL(String)
}

extension CertificateError {
    /// Whether the private key is what cannot be used.
    package var isOfKey: Bool {
        switch self {
        case .noKey, .password, .mismatch: true
        case .noCertificate, .malformed, .name, .openSSL: false
        }
    }
}

extension CertificateError: CustomStringConvertible {
    package var description: String {
        switch self {
        case .noCertificate:
            "there is no certificate: a block that begins with “-----BEGIN CERTIFICATE-----” is expected"
        case .noKey: "there is no private key: a block that begins with “-----BEGIN PRIVATE KEY-----” is expected"
        case .password: "the private key is protected by a password: write it without one, as `openssl pkey` does"
        case .malformed(let reason): "a certificate cannot be read: \(reason)"
        case .mismatch: "the private key is not that of the certificate"
        case .name(let name): "“\(name)” is neither a host name nor an address"
        case .openSSL(let reason): "OpenSSL says: \(reason)"
        }
    }
}
