// One TLS session over OpenSSL, without a socket: encrypted bytes come from a wire and go into an output, and the other
// way round.

import CLibssl
import EventLoop

/// How a handshake goes on.
package enum SessionStep: Sendable, Hashable {
    case finished
    /// More bytes of the peer are needed. What is in the output goes out first.
    case wantsInput
    /// It is over. An alert may be in the output.
    case failed(TLSFailure)
}

/// How a read of a session went.
package enum TLSReadResult: Sendable, Hashable {
    case bytes(Int)
    /// More bytes of the peer are needed.
    case wouldBlock
    /// The peer has said that nothing follows (close_notify).
    case end
    /// The connection ended without close_notify: what came may not be all (RFC 8446, section 6.1).
    case truncated
    case failed(TLSFailure)
}

/// A session of either side; loop-bound. After a failure it is of no more use, but what is in its output is for the peer.
package final class TLSSession {
    /// What was agreed on; known once the handshake has finished.
    package struct Agreement: Sendable, Hashable {
        /// `TLSv1.2` or `TLSv1.3`.
        package let version: String
        /// OpenSSL's name of the cipher.
        package let cipher: String
        /// The application protocol; nil if none was agreed on.
        package let applicationProtocol: String?
        /// Whether an earlier session went on.
        package let isResumed: Bool
    }

    /// Owned, with its BIO; freed with this object.
    let handle: OpaquePointer
    private let context: TLSContext
    /// Where encrypted bytes come from.
    // Unowned and unchecked, since a weak reference costs more than the read: whoever sets it owns the session as well,
    // and makes no call of it once the wire is gone.
    package unowned(unsafe) var wire: (any TLSWire)?
    /// Where encrypted bytes go.
    package let output: TLSOutput
    /// Bytes of the peer that were read before the session began; they come before those of the wire.
    private var early: ArraySlice<UInt8>
    /// Whether the wire has ended.
    private(set) var hasEnded = false
    /// The name that the client asked for; nil if it said none, or none that can be a host's.
    package private(set) var serverName: HostName?
    /// This end's, for clients that ask for no name: it is looked up for those alone.
    private let address: () -> HostName?
    private var identity: TLSIdentity?
    private var refusal: TLSFailure?
    /// What is wrong with the certificates that a server has shown; nil as long as nothing is.
    package private(set) var fault: CertificateFault?
    private var isBroken = false
    /// Whether OpenSSL has asked for more than the wire had: what it holds is then a part of a record.
    private var isStarved = false

    var tickets: TicketKeys? { context.tickets }

    /// A session with a client.
    /// - Parameters:
    ///   - address: of this end: the certificate for it is chosen if the client asks for no name.
    ///   - received: bytes that the client has sent already.
    ///   - output: where encrypted bytes go.
    package init(
        serving context: TLSContext,
        at address: @autoclosure @escaping () -> HostName? = nil,
        received: [UInt8] = [],
        output: TLSOutput
    ) throws(CertificateError) {
        guard let made = SSL_new(context.handle) else { throw .openSSL(PEM.lastError()) }
        (handle, self.context, self.output, early) = (made, context, output, received[...])
        self.address = address
        try connect()
        SSL_set_accept_state(made)
    }

    /// A session with a server.
    /// - Parameters:
    ///   - host: the name or address that its certificate has to be for; a name is sent to it.
    ///   - output: where encrypted bytes go.
    package init(asking context: TLSContext, for host: HostName, output: TLSOutput) throws(CertificateError) {
        guard let made = SSL_new(context.handle) else { throw .openSSL(PEM.lastError()) }
        (handle, self.context, self.output, early, address) = (made, context, output, [], { nil })
        try connect()
        SSL_set_connect_state(made)
        switch host {
        case .name(let name):
            guard c_ssl_set_host(made, name) == 1, SSL_set1_host(made, name) == 1 else {
                throw .openSSL(PEM.lastError())
            }
        case .address(let bytes):
            guard X509_VERIFY_PARAM_set1_ip(SSL_get0_param(made), bytes, bytes.count) == 1 else {
                throw .openSSL(PEM.lastError())
            }
        }
        serverName = host
    }

    deinit {
        // A session that is freed without these flags could not be resumed.
        SSL_set_shutdown(handle, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN)
        SSL_free(handle)
    }

    private func connect() throws(CertificateError) {
        guard let bio = SessionBIO.make(for: self) else { throw .openSSL(PEM.lastError()) }
        SSL_set_bio(handle, bio, bio)
        c_ssl_set_owner(handle, Unmanaged.passUnretained(self).toOpaque())
    }

    /// The session of OpenSSL's object, which frees that object before it goes.
    static func owner(of handle: OpaquePointer) -> TLSSession? {
        c_ssl_owner(handle).map { Unmanaged<TLSSession>.fromOpaque($0).takeUnretainedValue() }
    }

    func receive(into buffer: UnsafeMutableRawBufferPointer) -> IOResult {
        if !early.isEmpty {
            let count = min(early.count, buffer.count)
            buffer.copyBytes(from: early.prefix(count))
            early = early.count == count ? [] : early.dropFirst(count)
            isStarved = false
            return .bytes(count)
        }
        guard !hasEnded, let wire else { return hasEnded ? .end : .wouldBlock }
        let result = wire.receive(into: buffer)
        switch result {
        case .bytes: isStarved = false
        case .wouldBlock: isStarved = true
        case .end, .truncated, .failed: hasEnded = true
        }
        return result
    }

    // MARK: What the owner does

    /// Goes on with the handshake; to be called at first, and whenever there are bytes to read, until it has finished.
    package func handshake() -> SessionStep {
        let result = SSL_do_handshake(handle)
        guard result != 1 else {
            guard isPinned else {
                isBroken = true
                return .failed(TLSFailure(.untrusted, "its public key is none of the pinned ones"))
            }
            return .finished
        }
        if SSL_get_error(handle, result) == SSL_ERROR_WANT_READ { return .wantsInput }
        return .failed(failure())
    }

    /// Reads decrypted bytes: at most one record at a time.
    package func read(into buffer: UnsafeMutableRawBufferPointer) -> TLSReadResult {
        guard !buffer.isEmpty else { return .bytes(0) }
        var count = 0
        forgetOthersErrors()
        let result = SSL_read_ex(handle, buffer.baseAddress, buffer.count, &count)
        guard result != 1 else { return .bytes(count) }
        switch SSL_get_error(handle, result) {
        case SSL_ERROR_WANT_READ: return .wouldBlock
        case SSL_ERROR_ZERO_RETURN: return .end
        default:
            // The end of the wire where a record should begin or go on.
            if hasEnded, c_err_reason(ERR_peek_error()) == SSL_R_UNEXPECTED_EOF_WHILE_READING || ERR_peek_error() == 0 {
                ERR_clear_error()
                isBroken = true
                return .truncated
            }
            return .failed(failure())
        }
    }

    /// Encrypts bytes into the output, all of them; nil, or why there will be no more.
    package func write(_ bytes: UnsafeRawBufferPointer) -> TLSFailure? {
        guard !bytes.isEmpty else { return nil }
        var count = 0
        forgetOthersErrors()
        guard SSL_write_ex(handle, bytes.baseAddress, bytes.count, &count) == 1 else { return failure() }
        return nil
    }

    /// Says that nothing follows (close_notify), unless the session has failed.
    package func finishWriting() {
        guard !isBroken, SSL_is_init_finished(handle) == 1 else { return }
        if SSL_shutdown(handle) < 0 { ERR_clear_error() }
    }

    /// Whether a read may give something without a word from the wire: its readiness does not tell of these bytes.
    package var hasPending: Bool {
        !early.isEmpty || SSL_pending(handle) > 0 || (!isStarved && SSL_has_pending(handle) == 1)
    }

    /// What was agreed on.
    package var agreement: Agreement {
        var (name, count): (UnsafePointer<UInt8>?, UInt32) = (nil, 0)
        SSL_get0_alpn_selected(handle, &name, &count)
        return Agreement(
            version: String(cString: SSL_get_version(handle)),
            cipher: SSL_get_current_cipher(handle).flatMap(SSL_CIPHER_get_name).map { String(cString: $0) } ?? "",
            applicationProtocol: name.map {
                String(decoding: UnsafeBufferPointer(start: $0, count: Int(count)), as: UTF8.self)
            },
            isResumed: SSL_session_reused(handle) == 1
        )
    }

    /// The certificate that the peer has shown.
    package var peerCertificate: Certificate? { c_ssl_peer(handle).map(Certificate.init(owning:)) }

    /// What a client keeps of a session, so that a later one goes on with it; nil before the server's ticket has come, which
    /// comes with its first bytes in TLS 1.3.
    package var ticket: SessionTicket? {
        guard let session = SSL_get1_session(handle) else { return nil }
        let ticket = SessionTicket(owning: session)
        return SSL_SESSION_is_resumable(session) == 1 ? ticket : nil
    }

    /// Goes on with an earlier session; before the handshake.
    package func resume(_ ticket: SessionTicket) { SSL_set_session(handle, ticket.handle) }

    // MARK: Failures and pins

    /// OpenSSL takes any error of the thread's queue for one of the call at hand (SSL_get_error(3)), and libcurl leaves
    /// those of its own sessions there.
    private func forgetOthersErrors() {
        if ERR_peek_error() != 0 { ERR_clear_error() }
    }

    private func failure() -> TLSFailure {
        isBroken = true
        if let refusal {
            ERR_clear_error()
            return refusal
        }
        return .fromQueue(verification: SSL_get_verify_result(handle))
    }

    private var isPinned: Bool {
        guard !context.pins.isEmpty else { return true }
        guard let certificate = peerCertificate, let digest = certificate.keyDigest else { return false }
        return context.pins.contains(digest)
    }

    // MARK: Calls of OpenSSL

    /// Reads the name of a ClientHello, and chooses the certificate for it. A ticket of one name or address is not taken
    /// for another.
    static let helloCallback: SSL_client_hello_cb_fn = { handle, alert, _ in
        guard let handle, let session = owner(of: handle), let choice = session.context.choice else {
            return SSL_CLIENT_HELLO_ERROR
        }
        var (bytes, count): (UnsafePointer<UInt8>?, Int) = (nil, 0)
        if SSL_client_hello_get0_ext(handle, UInt32(TLSEXT_TYPE_server_name), &bytes, &count) == 1, let bytes {
            session.serverName = ClientHello.name(in: Array(UnsafeBufferPointer(start: bytes, count: count)))
        }
        let host = session.serverName ?? session.address()
        guard let identity = choice(host) else {
            alert?.pointee = Int32(SSL_AD_UNRECOGNIZED_NAME)
            session.refusal = TLSFailure(
                .name,
                "there is no certificate for \(session.serverName.map { "“\($0.text)”" } ?? "a client that says no name")"
            )
            return SSL_CLIENT_HELLO_ERROR
        }
        session.identity = identity
        let name = Array((host?.text ?? "").utf8) + [0] + session.context.realm
        return isTold(apart: name, handle) ? SSL_CLIENT_HELLO_SUCCESS : SSL_CLIENT_HELLO_ERROR
    }

    /// Has a session go on only where it began under the same name. OpenSSL takes 32 bytes: a shorter name stands for itself,
    /// and a longer one is a digest of just that length.
    private static func isTold(apart name: [UInt8], _ handle: OpaquePointer) -> Bool {
        guard name.count >= 32 else { return SSL_set_session_id_context(handle, name, UInt32(name.count)) == 1 }
        var digest = [UInt8](repeating: 0, count: Int(EVP_MAX_MD_SIZE))
        var length: UInt32 = 0
        return EVP_Digest(name, name.count, &digest, &length, EVP_sha256(), nil) == 1 && length == 32
            && SSL_set_session_id_context(handle, digest, length) == 1
    }

    /// Keeps the first fault of a server's certificates, which ends the handshake.
    static let verificationCallback: SSL_verify_cb = { isGood, chain in
        guard isGood != 1, let chain,
            let handle = X509_STORE_CTX_get_ex_data(chain, SSL_get_ex_data_X509_STORE_CTX_idx()),
            let session = owner(of: OpaquePointer(handle)), session.fault == nil
        else { return isGood }
        let certificate = X509_STORE_CTX_get_current_cert(chain).flatMap { found in
            X509_up_ref(found) == 1 ? Certificate(owning: found) : nil
        }
        session.fault = CertificateFault(
            code: X509_STORE_CTX_get_error(chain),
            depth: Int(X509_STORE_CTX_get_error_depth(chain)),
            certificate: certificate
        )
        return isGood
    }

    /// Shows the certificate that was chosen; not called when a session is resumed.
    static let certificateCallback: @convention(c) (OpaquePointer?, UnsafeMutableRawPointer?) -> Int32 = { handle, _ in
        guard let handle, let identity = owner(of: handle)?.identity else { return 0 }
        return c_ssl_use_chain(handle, identity.certificate.handle, identity.key.handle, identity.stack?.handle)
    }
}

@available(*, unavailable) extension TLSSession: Sendable {}

/// What a client keeps of a session.
///
/// Sendable, unchecked: OpenSSL counts its references atomically, and a session that was handed out is not changed.
package final class SessionTicket: @unchecked Sendable {
    let handle: OpaquePointer

    init(owning handle: OpaquePointer) { self.handle = handle }

    deinit { SSL_SESSION_free(handle) }
}
