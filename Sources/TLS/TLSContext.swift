// What all sessions of a listener, or all sessions to servers of a kind, have in common.

import CLibssl

/// The settings of sessions, in the form that OpenSSL wants.
///
/// Sendable, unchecked: the context is not changed after it was made, and OpenSSL lets any number of threads make sessions
/// of it.
package final class TLSContext: @unchecked Sendable {
    /// The certificate for a name; nil for a name that nothing is served for. Without a name, or with one that cannot be
    /// a host's, it is chosen for the address of the connection, and for nil if that is unknown.
    package typealias Choice = @Sendable (HostName?) -> TLSIdentity?

    /// Owned.
    let handle: OpaquePointer
    let isServer: Bool
    let choice: Choice?
    let tickets: TicketKeys?
    /// Application protocols in the order of preference, each preceded by its length (RFC 7301).
    private let protocols: [UInt8]
    /// Digests of public keys of which a server's has to be one; empty for no such demand.
    let pins: Set<[UInt8]>
    /// What tells sessions apart beside the name: the realm, and what is demanded of clients, so that one that began
    /// without a certificate does not go on where one is asked for.
    let realm: [UInt8]

    /// How clients show who they are.
    package struct ClientDemand: Sendable {
        /// The authorities that issue their certificates.
        package var authorities: [Certificate]
        /// Whether a client without a certificate is refused.
        package var isRequired: Bool

        package init(authorities: [Certificate], isRequired: Bool = true) {
            self.authorities = authorities
            self.isRequired = isRequired
        }
    }

    /// Whom a client trusts.
    package enum Trust: Sendable {
        /// The authorities of the system.
        case system
        /// Those of a PEM file, and those of a folder that is named by their hashes, which is read when one is needed.
        case files(String?, folder: String?)
        /// These alone.
        case authorities([Certificate])
        /// Anybody: for origins whose certificate is not to be verified.
        case anybody
    }

    /// For sessions with clients, TLS 1.2 and 1.3.
    /// - Parameters:
    ///   - protocols: application protocols in the order of preference; a client that asks for others only is refused.
    ///   - tickets: shared by all contexts whose sessions may be resumed; nil for no resumption.
    ///   - realm: sessions of one realm do not go on in another, although they have the same tickets.
    ///   - clients: whether clients have to show a certificate.
    ///   - choice: called once in each handshake, on its thread; it must not block.
    package init(
        serving protocols: [String] = ["http/1.1"],
        tickets: TicketKeys?,
        realm: [UInt8] = [],
        clients: ClientDemand? = nil,
        choice: @escaping Choice
    ) throws(CertificateError) {
        guard let made = SSL_CTX_new(TLS_server_method()) else { throw .openSSL(PEM.lastError()) }
        handle = made
        isServer = true
        self.choice = choice
        self.tickets = tickets
        self.protocols = TLSContext.wire(protocols)
        pins = []
        self.realm =
            realm + [0] + (clients.map { [$0.isRequired ? 2 : 1] + $0.authorities.flatMap(\.fingerprint) } ?? [])
        try prepare()
        let context = Unmanaged.passUnretained(self).toOpaque()
        SSL_CTX_set_client_hello_cb(made, TLSSession.helloCallback, nil)
        SSL_CTX_set_cert_cb(made, TLSSession.certificateCallback, nil)
        SSL_CTX_set_alpn_select_cb(made, TLSContext.protocolCallback, context)
        c_ssl_ctx_refuse_renegotiation(made)
        // One ticket for each handshake: a second one costs 13 µs, and clients keep one connection alive.
        if tickets == nil { c_ssl_ctx_refuse_tickets(made) }
        guard SSL_CTX_set_num_tickets(made, tickets == nil ? 0 : 1) == 1,
            tickets == nil || c_ssl_ctx_set_ticket_keys(made, TicketKeys.callback) == 1
        else { throw .openSSL(PEM.lastError()) }
        if let clients {
            let required = clients.isRequired ? SSL_VERIFY_FAIL_IF_NO_PEER_CERT : 0
            SSL_CTX_set_verify(made, SSL_VERIFY_PEER | required, nil)
            for authority in clients.authorities {
                guard X509_STORE_add_cert(SSL_CTX_get_cert_store(made), authority.handle) == 1,
                    SSL_CTX_add_client_CA(made, authority.handle) == 1
                else { throw .openSSL(PEM.lastError()) }
            }
        }
    }

    /// For sessions with servers, TLS 1.2 and 1.3.
    /// - Parameters:
    ///   - protocols: application protocols that are offered; none are offered if it is empty.
    ///   - trust: whose certificates are accepted.
    ///   - pins: SHA-256 of public keys (DER) of which the server's has to be one; none by default.
    ///   - identity: shown to servers that ask for a certificate.
    package init(
        asking protocols: [String],
        trust: Trust,
        pins: Set<[UInt8]> = [],
        identity: TLSIdentity? = nil
    ) throws(CertificateError) {
        guard let made = SSL_CTX_new(TLS_client_method()) else { throw .openSSL(PEM.lastError()) }
        handle = made
        isServer = false
        choice = nil
        tickets = nil
        self.protocols = TLSContext.wire(protocols)
        self.pins = pins
        realm = []
        try prepare()
        switch trust {
        case .anybody: SSL_CTX_set_verify(made, SSL_VERIFY_NONE, nil)
        case .system:
            SSL_CTX_set_verify(made, SSL_VERIFY_PEER, TLSSession.verificationCallback)
            guard SSL_CTX_set_default_verify_paths(made) == 1 else { throw .openSSL(PEM.lastError()) }
        case .files(let file, let folder):
            SSL_CTX_set_verify(made, SSL_VERIFY_PEER, TLSSession.verificationCallback)
            if let file, SSL_CTX_load_verify_file(made, file) != 1 { throw .openSSL(PEM.lastError()) }
            if let folder, SSL_CTX_load_verify_dir(made, folder) != 1 { throw .openSSL(PEM.lastError()) }
        case .authorities(let authorities):
            SSL_CTX_set_verify(made, SSL_VERIFY_PEER, TLSSession.verificationCallback)
            for authority in authorities {
                guard X509_STORE_add_cert(SSL_CTX_get_cert_store(made), authority.handle) == 1 else {
                    throw .openSSL(PEM.lastError())
                }
            }
        }
        // Whoever names a certificate trusts it, whether or not it issued itself: so does libcurl.
        X509_VERIFY_PARAM_set_flags(SSL_CTX_get0_param(made), UInt(X509_V_FLAG_PARTIAL_CHAIN))
        if !self.protocols.isEmpty {
            guard SSL_CTX_set_alpn_protos(made, self.protocols, UInt32(self.protocols.count)) == 0 else {
                throw .openSSL(PEM.lastError())
            }
        }
        if let identity {
            guard
                SSL_CTX_use_cert_and_key(
                    made,
                    identity.certificate.handle,
                    identity.key.handle,
                    identity.stack?.handle,
                    1
                ) == 1
            else { throw .openSSL(PEM.lastError()) }
        }
    }

    deinit { SSL_CTX_free(handle) }

    /// What clients and servers have in common: versions, and buffers that are freed when they are empty. Ciphers with forward
    /// secrecy are a server's demand; a client takes OpenSSL's list, as libcurl does.
    private func prepare() throws(CertificateError) {
        c_ssl_ctx_set_modes(handle, Int(SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER))
        c_ssl_ctx_set_read_ahead(handle)
        _ = c_ssl_ctx_set_cache_mode(handle, Int(SSL_SESS_CACHE_OFF))
        guard c_ssl_ctx_set_versions(handle, TLS1_2_VERSION, TLS1_3_VERSION) == 1,
            !isServer || SSL_CTX_set_cipher_list(handle, "ECDHE+AESGCM:ECDHE+CHACHA20") == 1
        else { throw .openSSL(PEM.lastError()) }
    }

    private static func wire(_ protocols: [String]) -> [UInt8] {
        protocols.flatMap { [UInt8(truncatingIfNeeded: $0.utf8.count)] + Array($0.utf8) }
    }

    /// Chooses the first of our protocols that the client offers (RFC 7301, section 3.2).
    private static let protocolCallback: SSL_CTX_alpn_select_cb_func = {
        _,
        chosen,
        count,
        offered,
        offeredCount,
        argument in
        guard let chosen, let count, let offered, let argument else { return SSL_TLSEXT_ERR_ALERT_FATAL }
        let context = Unmanaged<TLSContext>.fromOpaque(argument).takeUnretainedValue()
        let all = UnsafeBufferPointer(start: offered, count: Int(offeredCount))
        var ours = context.protocols[...]
        while let length = ours.first {
            let wanted = ours.prefix(Int(length) + 1)
            var index = 0
            while index < all.count {
                let end = index + 1 + Int(all[index])
                guard end <= all.count else { return SSL_TLSEXT_ERR_ALERT_FATAL }
                if all[index..<end].elementsEqual(wanted) {
                    chosen.pointee = offered + index + 1
                    count.pointee = all[index]
                    return SSL_TLSEXT_ERR_OK
                }
                index = end
            }
            ours = ours.dropFirst(Int(length) + 1)
        }
        return SSL_TLSEXT_ERR_ALERT_FATAL
    }
}
