// The leaves of the local authority, for all that a daemon shows them to.

package import Configuration
import EventLoop
import Glibc
import Logging
import ProxyServer
import Synchronization
import TLS

/// The leaves that are in force, which listeners and tunnels have in common.
///
/// Sendable: they are under a lock, from which they are copied.
final class LocalLeaves: Sendable {
    private let environment: [String: String]
    /// Told of an authority that was made; nil if none is made.
    private let made: Logger?
    private let inForce = Mutex<LeafCache?>(nil)

    /// - Parameters:
    ///   - environment: says where the authority is, if the configuration does not.
    ///   - made: told of the local authority that is made where there is none; nil if none is made.
    init(environment: [String: String], made: Logger? = nil) { (self.environment, self.made) = (environment, made) }

    /// The folder of the authority.
    /// - Parameter key: what needs it, for the error.
    func folder(_ configuration: Configuration, for key: String) throws(DaemonError) -> String {
        guard let path = configuration.authorityFolder ?? DefaultAuthority.folder(environment: environment) else {
            let advice = made == nil ? "name one with 'ca'" : "set HOME, or XDG_STATE_HOME"
            throw .configuration("\(key) has no folder for the local authority; \(advice)")
        }
        return path
    }

    /// The leaves of a configuration's authority; those in force if it is the same. Blocks.
    /// - Parameter key: what needs them, for the error.
    func prepare(_ configuration: Configuration, for key: String) throws(DaemonError) -> LeafCache {
        let path = try folder(configuration, for: key)
        do throws(AuthorityError) {
            let authority = try authority(AuthorityFolder(path))
            let old = inForce.withLock { $0 }
            if let old, old.authority.certificate.fingerprint == authority.certificate.fingerprint { return old }
            do throws(CertificateError) { return try LeafCache(authority) { Int64(time(nil)) } } catch {
                throw .unusable(path: path, reason: "\(error)")
            }
        } catch {
            throw .configuration("\(key): \(error)")
        }
    }

    private func authority(_ folder: AuthorityFolder) throws(AuthorityError) -> LocalAuthority {
        do throws(AuthorityError) { return try folder.load() } catch {
            guard let made, case .absent = error else { throw error }
            let authority = try folder.create(now: Int64(time(nil)))
            made.notice(
                "made a local authority in \(folder.path), which no program trusts yet; 'drydock ca trust' changes that, and 'drydock ca lines' says what programs with a store of their own need"
            )
            return authority
        }
    }

    /// Puts leaves in force.
    func use(_ leaves: LeafCache) { inForce.exchange(leaves) }

    var gauges: [Gauge] {
        [
            Gauge(
                "drydock_tls_leaves_total",
                "Certificates that the local authority has made.",
                isCounter: true,
                read: { [self] in inForce.withLock { $0 }?.counts.made ?? 0 }
            ),
            Gauge(
                "drydock_tls_leaves",
                "Certificates of the local authority that are kept, 1,000 at most.",
                read: { [self] in inForce.withLock { $0 }?.counts.kept ?? 0 }
            ),
        ]
    }
}

/// The room of each loop for what its TLS transports encrypt. Transports of which one is inside of another have different
/// ones.
///
/// Sendable: the table is under a lock; each room is used on its loop only.
final class LoopRooms: Sendable {
    private let rooms = Mutex<[ObjectIdentifier: LoopBox<TLSRoom>]>([:])

    func room(of loop: isolated EventLoop) -> TLSRoom {
        let key = ObjectIdentifier(loop)
        if let known = rooms.withLock({ $0[key] })?.value(on: loop) { return known }
        let room = TLSRoom()
        let made = LoopBox(room, on: loop)
        let old = rooms.withLock { $0.updateValue(made, forKey: key) }
        withExtendedLifetime(old) {}
        return room
    }
}

/// All that speaks TLS with clients.
package struct DaemonSecurity: Sendable {
    let listeners: ListenerSecurity
    let tunnels: Interceptor

    /// What a configuration makes of both.
    struct Settings: Sendable {
        fileprivate let listeners: ListenerSecurity.Settings?
        fileprivate let tunnels: Interceptor.Settings?
    }

    /// - Parameter made: told of the local authority that is made where there is none; nil if none is made.
    init(environment: [String: String], made: Logger? = nil) {
        let leaves = LocalLeaves(environment: environment, made: made)
        listeners = ListenerSecurity(environment: environment, leaves: leaves)
        tunnels = Interceptor(leaves: leaves, tickets: listeners.tickets, counters: listeners.counters)
    }

    /// Finds what a start would find wrong with the certificates of a configuration; blocks.
    package static func check(_ configuration: Configuration, environment: [String: String]) throws(DaemonError) {
        _ = try DaemonSecurity(environment: environment).prepare(configuration)
    }

    /// Reads the certificates of a configuration; blocks.
    /// - Throws: what cannot be used; what is in force stays.
    func prepare(_ configuration: Configuration) throws(DaemonError) -> Settings {
        Settings(
            listeners: try listeners.prepare(configuration),
            tunnels: try tunnels.prepare(configuration)
        )
    }

    /// Puts settings in force for sessions that begin from now on.
    func use(_ settings: Settings) {
        listeners.use(settings.listeners)
        tunnels.use(settings.tunnels)
    }
}
