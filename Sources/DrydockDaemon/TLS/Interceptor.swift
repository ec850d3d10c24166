// The sessions in tunnels that are read: certificates of the local authority, and what becomes of clients that do not
// trust them.

import Configuration
import EventLoop
import Glibc
import HTTPWire
import Policies
import ProxyServer
import ServiceCore
import Synchronization
import TLS

/// Answers clients in their tunnels with leaves of the local authority, and remembers who does not trust it.
///
/// Sendable: what is in force, the table of clients and the tally of hosts are each under a lock; nothing is released or signed there.
final class Interceptor: DaemonFeature {
    /// The settings of new sessions.
    struct Settings: Sendable {
        fileprivate let context: TLSContext
        fileprivate let leaves: LeafCache
        fileprivate let policy: DistrustPolicy
        /// The authority's certificate, for advice.
        fileprivate let certificate: String
    }

    private let leaves: LocalLeaves
    private let tickets: TicketKeys
    private let rooms = LoopRooms()
    /// Of sessions in tunnels alone.
    private let own = TLSCounters()
    /// Of all handshakes with clients.
    private let counters: TLSCounters
    private let inForce = Mutex<Settings?>(nil)
    private let clients = Mutex(DistrustTable())
    private let hosts = Mutex(HostTally())

    /// - Parameters:
    ///   - leaves: those of the local authority.
    ///   - tickets: shared with the listeners; the sessions of either do not go on with the other.
    ///   - counters: of all handshakes with clients.
    init(leaves: LocalLeaves, tickets: TicketKeys, counters: TLSCounters) {
        self.leaves = leaves
        self.tickets = tickets
        self.counters = counters
    }

    // MARK: Settings

    /// Reads the authority of a configuration; blocks.
    /// - Returns: nil if no tunnel is read.
    /// - Throws: why none can be; what is in force stays.
    func prepare(_ configuration: Configuration) throws(DaemonError) -> Settings? {
        let interception = configuration.forward.interception
        guard interception.isOn else { return nil }
        let key = "'forward.intercept'"
        let path = try leaves.folder(configuration, for: key)
        let leaves = try leaves.prepare(configuration, for: key)
        do throws(CertificateError) {
            let realm = Array("tunnels".utf8) + leaves.authority.certificate.fingerprint
            let context = try TLSContext(tickets: tickets, realm: realm) { host in host.flatMap { leaves.leaf(for: $0) }
            }
            return Settings(
                context: context,
                leaves: leaves,
                policy: interception.onDistrust,
                certificate: AuthorityFolder(path).certificatePath
            )
        } catch {
            throw .configuration("\(key): \(error)")
        }
    }

    /// Puts settings in force for tunnels that begin from now on.
    func use(_ settings: Settings?) {
        if let settings { leaves.use(settings.leaves) }
        inForce.exchange(settings)
    }

    /// Forgets who does not trust the authority.
    func forget() { clients.exchange(DistrustTable()) }

    // MARK: Distrust

    private static func name(of client: SocketAddress) -> String { client.isUnix ? "unix" : client.host }

    /// The clients that have shown of late that they do not trust the authority, and whether their tunnels are left alone.
    var distrusted: (entries: [DistrustTable.Entry], areTunnelled: Bool) {
        let now = Monotonic.now()
        return (clients.withLock { $0.current(now) }, inForce.withLock { $0?.policy == .tunnel })
    }

    /// Remembers a client.
    /// - Returns: the facts for the log; none if it is known.
    private func remember(_ tunnel: ReadTunnel, _ reason: String, _ settings: Settings) -> [(String, String)] {
        let (client, target) = (Self.name(of: tunnel.client), "\(tunnel.target)")
        let isNew = clients.withLock { clients in
            clients.note(
                client: client,
                target: target,
                reason,
                wallTime: Int64(time(nil)),
                now: Monotonic.now()
            )
        }
        guard isNew else { return [] }
        return [
            ("client", client), ("host", target), ("error", reason),
            ("advice", DistrustAdvice.text(userAgent: tunnel.userAgent, certificate: settings.certificate)),
            (
                "from_now_on",
                settings.policy == .tunnel
                    ? "its tunnels to this host are left alone for an hour, or until a reload" : ""
            ),
        ]
    }

    /// What the end of a session says of its client's trust; nil if nothing.
    private static func distrust(_ session: TLSTransport) -> String? {
        guard session.handshake == nil else {
            switch session.failure?.kind {
            case .distrusted: return session.failure?.message
            case .abandoned: return "it closed the connection in the handshake"
            default: return nil
            }
        }
        // Some look at the certificate only when the handshake is done, as Node.js does, and then just let go.
        let isSilent = session.isTruncated && !session.hasReceived && session.agreement?.isResumed == false
        return isSilent ? "it closed the connection after the handshake, without a word" : nil
    }

    // MARK: Figures

    var gauges: [Gauge] {
        let hosts = self.hosts.withLock { $0.counts }
        let byHost = hosts.map { host, count in
            Gauge(
                "drydock_intercepted_tunnels_total",
                "Tunnels in which a session was begun, by host; from the 21st host on, under other.",
                isCounter: true,
                label: ("host", host),
                read: { count }
            )
        }
        return byHost + [
            Gauge(
                "drydock_intercepted_connections_total",
                "Connections inside of tunnels that are read, whose handshakes were complete.",
                isCounter: true,
                read: { [own] in own.handshakes(areResumed: false) + own.handshakes(areResumed: true) }
            ),
            Gauge(
                "drydock_intercept_distrusted",
                "Pairs of a client and a host that has shown in the last hour that it does not trust the local authority.",
                read: { [self] in distrusted.entries.count }
            ),
        ]
    }
}

extension Interceptor: Interception {
    func decide(on target: Authority, for client: SocketAddress) -> InterceptionDecision {
        guard let policy = inForce.withLock({ $0?.policy }) else {
            return .refuse("there is no local authority in force")
        }
        guard HostName(target.host) != nil else { return .refuse("no certificate can be made for \(target.host)") }
        guard policy == .tunnel else { return .read }
        let (key, now) = (Self.name(of: client), Monotonic.now())
        let isDistrusting = clients.withLock { $0.contains(client: key, target: "\(target)", now: now) }
        return isDistrusting ? .leave("the client does not trust the local authority") : .read
    }

    func session(
        in tunnel: ReadTunnel,
        hello: ClientHello?,
        received: [UInt8],
        over transport: any ByteTransport,
        on loop: isolated EventLoop
    ) -> InnerSession? {
        guard let settings = inForce.withLock({ $0 }),
            let session = try? TLSTransport(
                serving: settings.context,
                over: transport,
                in: rooms.room(of: loop),
                at: HostName(tunnel.target.host),
                received: received,
                counters: [counters, own]
            )
        else { return nil }
        hosts.withLock { $0.add(tunnel.target.name) }
        return InnerSession(session) { [self] in
            Self.distrust(session).map { remember(tunnel, $0, settings) }
        }
    }
}

/// Counts by host, with a name for each of the first hosts alone: clients choose hosts, and must not fill a database of
/// metrics.
private struct HostTally {
    private static let capacity = 20
    private var named: [String: Int] = [:]
    private var others = 0

    mutating func add(_ host: String) {
        if named[host] != nil || named.count < Self.capacity { named[host, default: 0] += 1 } else { others += 1 }
    }

    /// By name, and at the end those of all other hosts.
    var counts: [(host: String, count: Int)] {
        named.sorted { $0.key < $1.key }.map { ($0.key, $0.value) } + (others > 0 ? [("other", others)] : [])
    }
}

/// What whoever runs a client that does not trust the authority can do about it.
enum DistrustAdvice {
    /// By what clients call themselves, in lower case, and in this order: the name of a program for `drydock ca lines`.
    private static let programs = [
        ("curl/", "curl"), ("libcurl", "curl"), ("git/", "git"), ("pip/", "python"), ("python", "python"),
        ("urllib", "python"), ("aiohttp", "python"), ("httpx", "python"), ("node", "node"), ("undici", "node"),
        ("axios", "node"), ("npm/", "node"), ("okhttp", "java"), ("java", "java"), ("apache-httpclient", "java"),
        ("ruby", "ruby"), ("go-http-client", "go"), ("go-resty", "go"), ("docker", "docker"), ("containers/", "docker"),
        ("dalvik", "android"), ("cfnetwork", "ios"), ("darwin", "ios"),
    ]

    /// - Parameters:
    ///   - userAgent: what the client calls itself; empty if it does not say.
    ///   - certificate: the path of the authority's certificate.
    static func text(userAgent: String, certificate: String) -> String {
        let agent = userAgent.lowercased()
        if agent.hasPrefix("mozilla/") {
            return "have its machine trust the authority: drydock ca trust, then start the browser again"
        }
        let all = ClientLines.all(certificate: certificate)
        if let program = programs.first(where: { agent.contains($0.0) })?.1,
            let lines = all.first(where: { $0.name == program })?.lines.filter({ !$0.hasPrefix("#") })
        {
            return "have it trust the authority: \(lines.joined(separator: "; "))"
        }
        return
            "have it trust the authority: 'drydock ca lines' has the line for each program; or name the host under 'forward.intercept.except'"
    }
}
