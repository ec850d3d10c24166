// The TLS of the daemon's listeners: certificates of files and of the local authority, put in force by a start, a reload
// and a change of their files.

import Configuration
import EventLoop
import Glibc
import HTTPWire
import Logging
import ProxyServer
import ServiceCore
import Synchronization
import TLS
import Upstream

/// What clients are shown where they speak TLS, and the connections of such listeners.
///
/// Sendable: what is in force is under a lock, from which it is copied.
final class ListenerSecurity: DaemonFeature {
    /// The settings of new sessions, and when their first certificate to expire does.
    struct Settings: Sendable {
        let context: TLSContext
        let leaves: LeafCache?
        /// Seconds since 1970; nil if no certificate comes from a file.
        let expires: Int64?
    }

    private let environment: [String: String]
    private let inForce = Mutex<Settings?>(nil)
    private let admitted = AdmittedHosts()
    /// Of all handshakes with clients.
    let counters = TLSCounters()
    private let rooms = LoopRooms()
    private let authority: LocalLeaves
    // All loops and all settings have the same, so that a session goes on wherever the client comes back.
    let tickets = TicketKeys { Int64(Monotonic.now() / 1_000_000_000) }

    /// - Parameter leaves: those of the local authority.
    init(environment: [String: String], leaves: LocalLeaves) {
        self.environment = environment
        authority = leaves
    }

    // MARK: Settings

    /// Reads the certificates of a configuration; blocks.
    /// - Returns: nil if no client speaks TLS.
    /// - Throws: what cannot be used; what is in force stays.
    func prepare(_ configuration: Configuration) throws(DaemonError) -> Settings? {
        guard let tls = configuration.tls, isNeeded(by: configuration) else { return nil }
        var identities: [TLSIdentity] = []
        for files in tls.files {
            do throws(CertificateError) { identities.append(try files.identity()) } catch {
                throw .configuration("'tls': \(files.certificate) and \(files.key): \(error)")
            }
        }
        let leaves = tls.isLocal ? try authority.prepare(configuration, for: "'tls: local'") : nil
        let table = CertificateTable(identities, leaves: leaves, admitted: admitted)
        do throws(CertificateError) {
            let context = try TLSContext(tickets: tickets, clients: try tls.demand()) { table.identity(for: $0) }
            return Settings(
                context: context,
                leaves: leaves,
                expires: identities.compactMap(\.certificate.notAfter).min()
            )
        } catch {
            throw .configuration("'tls': \(error)")
        }
    }

    /// Whether clients speak TLS at an address of the configuration, or at a socket that systemd has passed.
    private func isNeeded(by configuration: Configuration) -> Bool {
        let passed = (environment["LISTEN_FDNAMES"] ?? "").split(separator: ":")
        return configuration.listen.contains { $0.scheme != .http } || passed.contains("proxy-tls")
            || passed.contains("proxy-any")
    }

    /// Puts settings in force for sessions that begin from now on. Nil changes nothing: listeners stay what they are until
    /// a restart.
    func use(_ settings: Settings?) {
        guard let settings else { return }
        if let leaves = settings.leaves { authority.use(leaves) }
        inForce.exchange(settings)
    }

    /// Names are admitted by this plan from now on.
    func use(_ plan: RoutePlan) { admitted.use(plan) }

    // MARK: Connections

    /// The connections of a listener.
    func connections(_ scheme: ListenScheme) -> ConnectionFactory {
        guard scheme != .http else { return .plain }
        return ConnectionFactory(security: scheme == .https ? .secure : .plain) { [self] socket, loop in
            let plain = socket.plain
            guard let tls = session(over: plain, on: loop) else {
                // Nobody is served plainly where TLS is promised.
                plain.close(resets: true)
                return plain
            }
            return scheme == .https ? tls : FirstByteTransport(plain, or: tls)
        }
    }

    /// Whether sessions can be made.
    var isReady: Bool { inForce.withLock { $0 != nil } }

    /// A session over a socket; nil if there is no memory for one.
    private func session(over plain: PlainTransport, on loop: isolated EventLoop) -> TLSTransport? {
        guard let settings = inForce.withLock({ $0 }) else { return nil }
        return try? TLSTransport(
            serving: settings.context,
            over: plain,
            in: rooms.room(of: loop),
            at: plain.ownAddress.flatMap { HostName($0.host) },
            counters: [counters]
        )
    }

    // MARK: Figures

    var gauges: [Gauge] {
        let handshakes = [false, true].map { areResumed in
            Gauge(
                "drydock_tls_handshakes_total",
                "Handshakes with clients that were complete, by whether an earlier session went on.",
                isCounter: true,
                label: ("kind", "\(areResumed ? "resumed" : "full")"),
                read: { [counters] in counters.handshakes(areResumed: areResumed) }
            )
        }
        let failures = TLSFailure.Kind.allCases.map { kind in
            Gauge(
                "drydock_tls_failures_total",
                "Handshakes with clients that failed, by reason.",
                isCounter: true,
                label: ("reason", kind.rawValue),
                read: { [counters] in counters.failures(kind) }
            )
        }
        return handshakes + failures + authority.gauges + [
            Gauge(
                "drydock_tls_certificate_expiry_seconds",
                "The moment, in seconds since 1970, at which the first certificate of 'tls' expires; 0 if none is from a file.",
                read: { [self] in Int(clamping: inForce.withLock { $0?.expires } ?? 0) }
            )
        ]
    }
}

extension ListenerTLS {
    /// The demand for clients' certificates; nil for none. Blocks.
    fileprivate func demand() throws(CertificateError) -> TLSContext.ClientDemand? {
        guard let path = clientAuthorities else { return nil }
        return TLSContext.ClientDemand(authorities: try TLSFiles.certificates(path), isRequired: requiresClients)
    }
}

/// The certificate for each name.
private struct CertificateTable: Sendable {
    /// By name, in lower case; `*.` and a domain stands for one label below it.
    private let names: [String: TLSIdentity]
    private let first: TLSIdentity?
    private let leaves: LeafCache?
    private let admitted: AdmittedHosts

    init(_ identities: [TLSIdentity], leaves: LeafCache?, admitted: AdmittedHosts) {
        var names: [String: TLSIdentity] = [:]
        for identity in identities {
            for name in identity.certificate.names where names[name] == nil { names[name] = identity }
        }
        self.names = names
        (first, self.leaves, self.admitted) = (identities.first, leaves, admitted)
    }

    /// The certificate of a file that is for the host, else one of the local authority if the daemon answers for the
    /// host, else the first file's.
    func identity(for host: HostName?) -> TLSIdentity? {
        if let host {
            if let exact = names[host.text] { return exact }
            if case .name(let name) = host, let dot = name.firstIndex(of: "."), let below = names["*" + name[dot...]] {
                return below
            }
            if let leaves, admitted.contains(host) { return leaves.leaf(for: host) }
        } else if let leaves {
            return leaves.leaf(for: .name("localhost"))
        }
        return first
    }
}

/// The hosts that the daemon answers for, by the plan in force.
///
/// Sendable: the plan is under a lock, from which it is copied.
private final class AdmittedHosts: Sendable {
    private let state = Mutex<RoutePlan?>(nil)

    func use(_ plan: RoutePlan) { state.exchange(plan) }

    func contains(_ host: HostName) -> Bool {
        guard let plan = state.withLock({ $0 }) else { return false }
        let text = host.text.contains(":") ? "[\(host.text)]" : host.text
        guard let authority = Authority.parse(text) else { return false }
        return Router.answers(for: authority, by: plan)
    }
}
