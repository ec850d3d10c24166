// Where clients speak TLS, and with which certificates.

import EventLoop
import Files
import FoundationEssentials
import Glibc
package import TLS

extension KeyTable {
    private static let tlsClients = SectionDescriptor(
        name: "tls.clients",
        keys: [
            KeyDescriptor(
                "ca",
                .path,
                "The certificates (PEM) of the authorities that issue those of clients.",
                required: true
            ),
            KeyDescriptor(
                "require",
                .boolean,
                default: "true",
                "Whether a client without a certificate is refused."
            ),
        ]
    )

    static let listenerTLS = SectionDescriptor(
        name: "tls",
        keys: [
            KeyDescriptor(
                "authority",
                .choice(["local"]),
                "local makes a certificate for each name and address that 'hosts' admits, by the local authority of 'drydock ca create'."
            ),
            KeyDescriptor("certificate", .path, "The certificate (PEM), followed by those that lead to its root."),
            KeyDescriptor(
                "key",
                .path,
                "The private key (PEM) of the certificate, without a password; only its owner may read it."
            ),
            KeyDescriptor(
                "clients",
                .shorthand(tlsClients, key: "ca"),
                "Has clients show a certificate, or just the file of the authorities that issue them."
            ),
        ]
    )

    /// Among the keys of the daemon.
    static let listenerTLSKey = KeyDescriptor(
        "tls",
        .rules(listenerTLS, key: "authority"),
        "The certificates for addresses of 'listen' that begin with https:// or any://: local, { certificate, key }, or a list of those, of which each client gets the one for the name that it asks for."
    )

    /// Among the keys of the daemon.
    static let authorityKey = KeyDescriptor(
        "ca",
        .path,
        "The folder of the local authority; by default ca in the folder of the service's state, /var/lib/drydock, or of the user's, ~/.local/state/drydock."
    )
}

/// A certificate and its key in files.
package struct TLSFiles: Sendable, Hashable {
    /// Absolute paths.
    package var certificate: String
    package var key: String

    /// Reads both.
    /// - Throws: why they cannot be used.
    package func identity() throws(CertificateError) -> TLSIdentity {
        try TLSIdentity(chain: Self.content(certificate), key: Self.content(key))
    }

    /// The certificates of a file.
    package static func certificates(_ path: String) throws(CertificateError) -> [Certificate] {
        try PEM.certificates(in: content(path))
    }

    private static func content(_ path: String) throws(CertificateError) -> [UInt8] {
        do throws(SystemError) { return try WholeFile.readEdited(path) } catch { throw .malformed("\(error)") }
    }
}

/// `tls`: what clients are shown where they speak TLS.
package struct ListenerTLS: Sendable, Equatable {
    /// The certificates of files, in the file's order; the first one is for clients that ask for no name, or for one
    /// that none of them is for.
    package var files: [TLSFiles]
    /// Certificates of the local authority are made for names that the files have none for.
    package var isLocal: Bool
    /// The file of the authorities that issue clients' certificates; nil asks for none.
    package var clientAuthorities: String?
    /// Whether a client without a certificate is refused. Default: true.
    package var requiresClients: Bool

    package init(
        files: [TLSFiles] = [],
        isLocal: Bool = false,
        clientAuthorities: String? = nil,
        requiresClients: Bool = true
    ) {
        self.files = files
        self.isLocal = isLocal
        self.clientAuthorities = clientAuthorities
        self.requiresClients = requiresClients
    }
}

/// The folder of the local authority where a file names none.
package enum DefaultAuthority {
    /// - Parameter environment: `STATE_DIRECTORY` is that of a service; root has the service's; another user has one below
    ///   `XDG_STATE_HOME`, or `HOME`. Nil if there is none of them.
    package static func folder(
        environment: [String: String] = ProcessInfo.processInfo.environment,
        user: UInt32 = geteuid()
    ) -> String? {
        func folder(_ name: String) -> String? {
            environment[name].flatMap { $0.hasPrefix("/") ? Paths.normal($0) : nil }
        }
        // Several are separated by colons, and ours is the first.
        let state = environment["STATE_DIRECTORY"]?.split(separator: ":").first.map(String.init)
        if let state, state.hasPrefix("/") { return Paths.normal(state) + "/ca" }
        if user == 0 { return "/var/lib/drydock/ca" }
        return (folder("XDG_STATE_HOME") ?? folder("HOME").map { $0 + "/.local/state" }).map { $0 + "/drydock/ca" }
    }
}

// MARK: - Reading and checking

extension ListenerTLS {
    /// A certificate that expires in fewer days is warned of.
    package static let warnedDays: Int64 = 14
    /// Files of certificates and keys are smaller, in bytes.
    fileprivate static let largestFile = 1 << 20

    /// How soon a certificate expires, in words for a warning; nil if that is not soon.
    /// - Parameter now: seconds since 1970.
    package static func expiry(of certificate: Certificate, now: Int64) -> String? {
        guard let end = certificate.notAfter, end - now < warnedDays * 86_400 else { return nil }
        let days = (end - now) / 86_400
        let when = end < now ? "has expired" : "expires in \(days) day\(days == 1 ? "" : "s")"
        return "\(when) (\(certificate.subject)); renew it"
    }
}

extension Resolver {
    /// - Parameters:
    ///   - reader: of the daemon.
    ///   - listen: where clients connect.
    /// - Returns: nil if no client speaks TLS.
    mutating func tls(_ reader: SectionReader, listen: [ListenPoint]) -> ListenerTLS? {
        let first = zip(listen, reader.items("listen")).first { $0.0.scheme != .http }
        guard let position = reader.position("tls") else {
            if let (point, item) = first {
                fail(
                    item.position,
                    "\(point) speaks TLS, and 'tls' says with which certificate; write tls: local, or tls: { certificate: ./server.pem, key: ./server.key }"
                )
            }
            return nil
        }
        guard !broken.contains(position) else { return nil }
        var result = ListenerTLS()
        for value in reader.items("tls") {
            guard case .section(let entries) = value.content, !broken.contains(value.position) else { continue }
            tls(SectionReader(entries: entries, section: KeyTable.listenerTLS), value.position, &result)
        }
        if first == nil {
            warnings.append(
                ConfigurationError(
                    position: position,
                    message:
                        "'tls' is for addresses with TLS, and 'listen' has none; write listen: [localhost:8080, https://localhost:8443]",
                    isOfPlainListeners: true
                )
            )
        }
        return result
    }

    private mutating func tls(_ reader: SectionReader, _ position: SourcePosition, _ result: inout ListenerTLS) {
        let (certificate, key) = (reader.text("certificate"), reader.text("key"))
        if reader.entry("authority") != nil {
            for name in ["certificate", "key"] where reader.entry(name) != nil {
                fail(
                    self.position(reader, name),
                    "'tls.\(name)' and 'authority: local' exclude each other; make them two entries of a list"
                )
            }
            if result.isLocal { fail(position, "'authority: local' is there twice; remove one") }
            result.isLocal = true
        } else if let certificate, let key {
            if let files = checked(TLSFiles(certificate: certificate, key: key), reader) { result.files.append(files) }
        } else if certificate != nil || key != nil {
            fail(position, "'tls' has no '\(key == nil ? "key" : "certificate")'; name its file")
        } else if reader.entry("clients") == nil {
            fail(
                position,
                "this entry of 'tls' has no certificate; write local, or { certificate: ./server.pem, key: ./server.key }"
            )
        }
        guard reader.entry("clients") != nil else { return }
        let clients = reader.section("clients")
        if result.clientAuthorities != nil {
            fail(self.position(reader, "clients"), "'tls.clients' is there twice; remove one")
        }
        result.clientAuthorities = authorities(clients)
        result.requiresClients = clients.bool("require")
    }

    /// - Returns: nil if the files cannot be used.
    private mutating func checked(_ files: TLSFiles, _ reader: SectionReader) -> TLSFiles? {
        guard isReadable(reader, "certificate"), isReadable(reader, "key") else { return nil }
        if let problem = FileChecks.openToAll(files.key) {
            let message = "'tls.key' \(problem.message)"
            if problem.isFixed {
                warnings.append(ConfigurationError(position: position(reader, "key"), message: message))
            } else {
                fail(position(reader, "key"), file: message)
            }
        }
        do throws(CertificateError) {
            let identity = try files.identity()
            if let soon = ListenerTLS.expiry(of: identity.certificate, now: Int64(Date().timeIntervalSince1970)) {
                warnings.append(
                    ConfigurationError(position: position(reader, "certificate"), message: "'tls.certificate' \(soon)")
                )
            }
            return files
        } catch {
            let key = error.isOfKey ? "key" : "certificate"
            fail(position(reader, key), file: "'tls.\(key)' cannot be used: \(error)")
            return nil
        }
    }

    private mutating func authorities(_ reader: SectionReader) -> String? {
        guard let path = reader.text("ca"), isReadable(reader, "ca") else { return nil }
        do throws(CertificateError) {
            _ = try TLSFiles.certificates(path)
            return path
        } catch {
            fail(position(reader, "ca"), file: "'tls.clients.ca' cannot be used: \(error)")
            return nil
        }
    }

    private mutating func isReadable(_ reader: SectionReader, _ key: String) -> Bool {
        guard let path = reader.text(key) else { return false }
        // A file that changes is taken up at once.
        demoFiles.append(path)
        guard let problem = FileChecks.readable(path, atMost: ListenerTLS.largestFile) else { return true }
        fail(position(reader, key), file: "'\(key == "ca" ? "tls.clients.ca" : "tls.\(key)")' \(problem)")
        return false
    }
}
