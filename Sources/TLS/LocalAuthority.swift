// A certificate authority of this machine: its certificate and key, and the leaves that it issues for hosts.

import CLibssl

/// The local authority. Its key never leaves this object but by ``keyPEM``.
package final class LocalAuthority: Sendable {
    package let certificate: Certificate
    private let key: PrivateKey

    /// An authority as files have it.
    /// - Throws: ``CertificateError``; ``CertificateError/mismatch`` also if the certificate is not that of an authority.
    package init(certificate: [UInt8], key: [UInt8]) throws(CertificateError) {
        let certificates = try PEM.certificates(in: certificate)
        self.key = try PEM.privateKey(in: key)
        guard X509_check_private_key(certificates[0].handle, self.key.handle) == 1, certificates[0].isAuthority else {
            ERR_clear_error()
            throw .mismatch
        }
        self.certificate = certificates[0]
    }

    /// Makes a key and a certificate for it.
    /// - Parameters:
    ///   - name: the common name, as a list of trusted authorities shows it.
    ///   - constraints: names below which alone it may issue, and single addresses; none for all names.
    ///   - now: seconds since 1970.
    ///   - days: how long it is valid, 3,650 days by default.
    package init(
        name: String,
        constraints: [HostName] = [],
        now: Int64,
        days: Int64 = 3_650
    ) throws(CertificateError) {
        let key = try PrivateKey()
        let draft = try CertificateDraft(now: now, days: days, key: key)
        try draft.name(name)
        try draft.issuer(draft.handle)
        try draft.add(NID_basic_constraints, "critical,CA:TRUE,pathlen:0")
        try draft.add(NID_key_usage, "critical,keyCertSign,cRLSign")
        try draft.add(NID_subject_key_identifier, "hash")
        if !constraints.isEmpty {
            let permitted = constraints.map { constraint in
                switch constraint {
                case .name(let name): "permitted;DNS:\(name)"
                case .address(let bytes):
                    "permitted;IP:\(constraint.text)/\(bytes.count == 4 ? "255.255.255.255" : "FFFF:FFFF:FFFF:FFFF:FFFF:FFFF:FFFF:FFFF")"
                }
            }
            try draft.add(NID_name_constraints, "critical," + permitted.joined(separator: ","))
        }
        self.key = key
        certificate = try draft.signed(by: key)
    }

    /// Whoever has this text can be any server for all who trust the authority: it goes into a file of mode 0600, and
    /// nowhere else.
    package var keyPEM: String? { key.pem }

    /// A certificate for one host, which begins a day before now, since clocks differ.
    /// - Parameters:
    ///   - host: the only name or address that it is for.
    ///   - key: the leaf's own key, which may serve many leaves.
    ///   - now: seconds since 1970.
    ///   - days: how long it is valid from now on; 7 days by default. It never outlives the authority.
    package func leaf(for host: HostName, key: PrivateKey, now: Int64, days: Int64 = 7) throws(CertificateError)
        -> TLSIdentity
    {
        let draft = try CertificateDraft(now: now, days: days, key: key, until: certificate.notAfter)
        let text = host.text
        try draft.name(LocalAuthority.commonName(host))
        try draft.issuer(certificate.handle)
        try draft.add(NID_basic_constraints, "critical,CA:FALSE")
        try draft.add(NID_key_usage, "critical,digitalSignature")
        try draft.add(NID_ext_key_usage, "serverAuth")
        switch host {
        case .name(let name): try draft.add(NID_subject_alt_name, "DNS:\(name)")
        case .address: try draft.add(NID_subject_alt_name, "IP:\(text)")
        }
        return try TLSIdentity(draft.signed(by: self.key), key: key)
    }

    /// What people read; clients read the subject alternative name. It has 64 bytes at most, and an address would be
    /// held to constraints of names.
    private static func commonName(_ host: HostName) -> String {
        guard case .name(let name) = host, name.utf8.count <= 64 else { return "Drydock" }
        return name
    }
}

/// A certificate that is being made.
private final class CertificateDraft {
    let handle: OpaquePointer
    private var context = X509V3_CTX()

    init(now: Int64, days: Int64, key: PrivateKey, until last: Int64? = nil) throws(CertificateError) {
        guard let made = X509_new() else { throw .openSSL(PEM.lastError()) }
        handle = made
        // 16 random bytes, positive (RFC 5280, section 4.1.2.2).
        var serial = [UInt8](repeating: 0, count: 16)
        guard RAND_bytes(&serial, 16) == 1 else { throw .openSSL(PEM.lastError()) }
        serial[0] = serial[0] & 0x7F | 0x40
        guard let number = BN_bin2bn(serial, 16, nil) else { throw .openSSL(PEM.lastError()) }
        defer { BN_free(number) }
        let end = min(now + days * 86_400, last ?? .max)
        guard X509_set_version(made, 2) == 1, BN_to_ASN1_INTEGER(number, X509_get_serialNumber(made)) != nil,
            ASN1_TIME_set(X509_getm_notBefore(made), Int(now - 86_400)) != nil,
            ASN1_TIME_set(X509_getm_notAfter(made), Int(end)) != nil,
            X509_set_pubkey(made, key.handle) == 1
        else { throw .openSSL(PEM.lastError()) }
    }

    deinit { X509_free(handle) }

    func name(_ text: String) throws(CertificateError) {
        let name = X509_get_subject_name(handle)
        guard X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8, text, -1, -1, 0) == 1 else {
            throw .openSSL(PEM.lastError())
        }
    }

    /// The issuer's name, and what extensions read of its certificate.
    func issuer(_ issuer: OpaquePointer) throws(CertificateError) {
        guard X509_set_issuer_name(handle, X509_get_subject_name(issuer)) == 1 else { throw .openSSL(PEM.lastError()) }
        X509V3_set_ctx(&context, issuer, handle, nil, nil, 0)
    }

    /// - Parameter value: in OpenSSL's words. Only texts of this file and checked host names come into it: a comma would
    ///   begin another value.
    func add(_ kind: Int32, _ value: String) throws(CertificateError) {
        guard let made = X509V3_EXT_conf_nid(nil, &context, kind, value) else { throw .openSSL(PEM.lastError()) }
        defer { X509_EXTENSION_free(made) }
        guard X509_add_ext(handle, made, -1) == 1 else { throw .openSSL(PEM.lastError()) }
    }

    func signed(by key: PrivateKey) throws(CertificateError) -> Certificate {
        guard X509_sign(handle, key.handle, EVP_sha256()) > 0 else { throw .openSSL(PEM.lastError()) }
        X509_up_ref(handle)
        return Certificate(owning: handle)
    }
}
