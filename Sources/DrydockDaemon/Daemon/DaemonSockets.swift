// The sockets of a daemon: where clients connect, where commands are taken, and where monitors ask.

import Configuration
import EventLoop
import Glibc
import Logging
import ProxyServer
import Synchronization

/// The sockets of a daemon, bound and listening.
struct DaemonSockets: Sendable {
    var proxy: [ListeningSocket] = []
    /// How clients speak at those of ``proxy``, by descriptor; plain where there is nothing.
    var schemes: [Int32: ListenScheme] = [:]
    var admin: [ListeningSocket] = []
    /// The permissions of unix sockets in ``admin``; ``adminGroup`` is the group that owns them, nil for the process's
    /// own.
    var adminMode: UInt32 = 0o660
    var adminGroup: String?
    /// Where metrics and the daemon's state are told.
    var metrics: [ListeningSocket] = []
    /// Lines for the log, one for each socket that systemd has passed.
    var passed: [String] = []
    /// The sockets of units: they are the service manager's.
    var ofUnits: Set<Int32> = []
    /// Sockets of the process before this one, by their descriptors: those that are used, and then the others.
    private(set) var kept: [Int32: KeptSocket] = [:]
    private(set) var unused: [KeptSocket] = []
    /// Names of sockets in the service manager's store that are of no use any more.
    private(set) var useless: [String] = []
    /// The reason why no commands are taken although the configuration does not forbid them; nil if they are taken or
    /// forbidden.
    var noAdmin: String?

    /// Closes all. The files of those of the process before this one stay.
    func discard() {
        for socket in proxy + admin + metrics + unused.map(\.socket) { socket.discard() }
    }

    /// The same sockets, when this process goes on with all of them: the files of those of the process before this one are its
    /// own from now on, and the sockets that no address is for are closed.
    func succeeding() -> DaemonSockets {
        var result = self
        let own = { [kept] (socket: ListeningSocket) in kept[socket.descriptor] == nil ? socket : socket.withFile }
        (result.proxy, result.admin, result.metrics) = (proxy.map(own), admin.map(own), metrics.map(own))
        let addresses = Set((proxy + admin + metrics).map(\.address))
        for one in unused {
            // Another socket may have been bound in its stead, after somebody had removed its file.
            one.socket.withFile.discard(keepsFile: addresses.contains(one.socket.address))
        }
        return result
    }
}

extension DaemonSockets {
    /// Takes over the sockets that systemd has passed to this process.
    /// - Throws: `DaemonError.start`; sockets that were taken over are closed then.
    init(passed environment: [String: String]) throws(DaemonError) {
        let all = try PassedSocket.all(environment)
        for one in all where one.isKept {
            if let kept = one.takeKept() { unused.append(kept) } else { useless.append(one.name) }
        }
        let units = all.filter { !$0.isKept }
        let taken: [ListeningSocket]
        do throws(DaemonError) { taken = try PassedSocket.take(units) } catch {
            discard()
            throw error
        }
        for (one, socket) in zip(units, taken) {
            ofUnits.insert(socket.descriptor)
            let what: String
            switch one.role {
            case .proxy:
                proxy.append(socket)
                schemes[socket.descriptor] = one.scheme
                what = "clients connect there, and not to the addresses of 'listen'"
            case .admin:
                admin.append(socket)
                what = "commands are taken there, and not at the address of 'admin'"
            case .metrics:
                metrics.append(socket)
                what = "metrics are told there, and not at the addresses of 'metrics'"
            }
            passed.append(
                "systemd passed \(socket.address) (descriptor \(one.descriptor), name '\(one.name)'): \(what)"
            )
        }
    }
}

extension DaemonSockets {
    /// Binds the addresses of the configuration; sockets that systemd has passed for the same purpose are used instead.
    /// - Parameters:
    ///   - ownsProcess: true if the process exists for this daemon only; it takes commands for its user then, unless the
    ///     configuration says otherwise.
    ///   - inherited: sockets of the process before this one, which are taken over.
    /// - Throws: `DaemonError.start` if an address that an operator has named cannot be bound; nothing is bound then.
    static func bind(
        _ configuration: Configuration,
        environment: [String: String],
        ownsProcess: Bool,
        inherited: [KeptSocket] = []
    ) throws(DaemonError) -> DaemonSockets {
        var sockets: DaemonSockets
        do throws(DaemonError) { sockets = try DaemonSockets(passed: environment) } catch {
            for one in inherited { one.socket.discard() }
            throw error
        }
        sockets.unused += inherited
        do throws(DaemonError) {
            if sockets.proxy.isEmpty {
                for point in configuration.listen {
                    let bound = try sockets.listen([point.address], .proxy, key: "listen")
                    sockets.proxy += bound
                    for socket in bound { sockets.schemes[socket.descriptor] = point.scheme }
                }
            }
            if sockets.metrics.isEmpty {
                sockets.metrics = try sockets.listen(configuration.metrics, .metrics, key: "metrics")
            }
            if let address = sockets.admin.first?.address {
                guard configuration.admin?.listen.isEmpty != true else {
                    throw .start(
                        "'admin' is none, and systemd passed \(address) for the admin API; remove 'admin' from the configuration, or the socket unit"
                    )
                }
            } else if let admin = configuration.admin {
                sockets.admin = try sockets.listen(
                    admin.listen,
                    .admin,
                    key: "admin",
                    mode: admin.mode,
                    group: admin.group
                )
                (sockets.adminMode, sockets.adminGroup) = (admin.mode, admin.group)
            } else if ownsProcess {
                try bindDefaultAdmin(&sockets, environment)
            }
        } catch {
            sockets.discard()
            throw error
        }
        return sockets
    }

    /// The address of `DRYDOCK_ADMIN`, where a daemon takes commands whose configuration does not say where; nil without it.
    /// - Throws: `DaemonError.start` if it is no address for commands.
    static func namedAdmin(_ environment: [String: String]) throws(DaemonError) -> ListenAddress? {
        guard let named = environment["DRYDOCK_ADMIN"], !named.isEmpty else { return nil }
        do { return try .admin(named) } catch {
            throw .start("DRYDOCK_ADMIN: \(error.errors.map(\.message).joined(separator: ", "))")
        }
    }

    private static func bindDefaultAdmin(
        _ sockets: inout DaemonSockets,
        _ environment: [String: String]
    ) throws(DaemonError) {
        // Only the daemon's user may connect, even if the folder lets others reach the socket.
        let mode: UInt32 = 0o600
        sockets.adminMode = mode
        if let address = try namedAdmin(environment) {
            sockets.admin = try sockets.listen([address], .admin, key: "DRYDOCK_ADMIN", mode: mode)
            return
        }
        let folder = DefaultAdmin.folder(environment: environment)
        let path = DefaultAdmin.socket(in: folder)
        var problem = DefaultAdmin.make(folder)
        if problem == nil {
            do throws(ListeningError) {
                sockets.admin = try sockets.bind([.unix(path: path)], .admin, mode: mode)
            } catch {
                problem = error.reason.code == EADDRINUSE ? "unix:\(path) is the socket of another daemon" : "\(error)"
            }
        }
        // If the default address cannot be bound, the daemon serves its clients all the same: no operator has named it.
        sockets.noAdmin = problem.map {
            "no commands are taken: \($0); name an address for this daemon with 'admin: unix:/PATH' in its configuration, or with DRYDOCK_ADMIN=unix:/PATH for it and its commands"
        }
    }

    /// Binds `addresses`, or explains why one of them cannot be bound.
    /// - Parameter key: the configuration key, or the variable, that names the addresses.
    private mutating func listen(
        _ addresses: [ListenAddress],
        _ role: ListenerRole,
        key: String,
        mode: UInt32 = 0o660,
        group: String? = nil
    ) throws(DaemonError) -> [ListeningSocket] {
        do throws(ListeningError) {
            return try bind(addresses, role, mode: mode, group: group)
        } catch {
            throw .start(Remedies.listening(error.reason, error.address, key: key, group: group))
        }
    }

    /// Binds `addresses`, or takes the sockets of the process before this one that have the same role and address.
    private mutating func bind(
        _ addresses: [ListenAddress],
        _ role: ListenerRole,
        mode: UInt32,
        group: String? = nil
    ) throws(ListeningError) -> [ListeningSocket] {
        do throws(ListeningError) {
            return try bindOrTake(addresses, role, mode: mode, group: group)
        } catch {
            guard error.reason.code == EADDRINUSE, endThose(inTheWayOf: error.address) else { throw error }
            return try bindOrTake(addresses, role, mode: mode, group: group)
        }
    }

    /// Ends the sockets from the service manager's store that have an address for another role, or a part of it, as
    /// `127.0.0.1:3142` is of `*:3142`. Their process has ended, so that they serve nobody.
    /// - Returns: whether there was any.
    private mutating func endThose(inTheWayOf address: ListenAddress) -> Bool {
        func isInTheWay(_ one: KeptSocket) -> Bool {
            guard one.name != nil else { return false }
            return switch address {
            case .tcp(_, let port): !one.socket.address.isUnix && one.socket.address.port == port
            case .unix(let path): one.socket.address.isUnix && one.socket.address.host == path
            }
        }
        let ended = unused.filter(isInTheWay)
        unused.removeAll(where: isInTheWay)
        for one in ended {
            one.socket.end()
            if let name = one.name { useless.append(name) }
        }
        return !ended.isEmpty
    }

    private mutating func bindOrTake(
        _ addresses: [ListenAddress],
        _ role: ListenerRole,
        mode: UInt32,
        group: String?
    ) throws(ListeningError) -> [ListeningSocket] {
        var candidates = unused.filter { $0.role == role }.map(\.socket)
        let bound = try ListeningSet.bind(addresses, mode: mode, group: group, using: &candidates)
        let taken = Set(bound.map(\.descriptor))
        for one in unused where taken.contains(one.socket.descriptor) { kept[one.socket.descriptor] = one }
        unused.removeAll { taken.contains($0.socket.descriptor) }
        return bound
    }

    /// Logs at the start where responses are stored, and where commands are taken.
    func log(for configuration: Configuration, to logger: Logger) {
        for line in passed { logger.info("\(line)") }
        let taken = (proxy + admin + metrics).filter { kept[$0.descriptor] != nil }.map(\.address.description)
        if !taken.isEmpty {
            logger.info("taken over from the process before, with who waited there: \(taken.joined(separator: ", "))")
        }
        if let tier = configuration.cache.disk {
            logger.info("stored responses are kept in \(tier.path), at most \(BatchProgress.size(Int64(tier.size)))")
        } else {
            let size = BatchProgress.size(Int64(configuration.cache.memory.size))
            logger.info("stored responses are kept in memory alone, at most \(size), and are gone after a restart")
        }
        if !metrics.isEmpty {
            logger.info("metrics are told at \(metrics.map(\.address.description).joined(separator: ", "))")
        }
        if let reason = noAdmin {
            logger.warning("\(reason)")
        } else if admin.isEmpty {
            logger.info("no commands are taken")
        } else {
            logger.info("commands are taken at \(admin.map(\.address.description).joined(separator: ", "))")
        }
    }
}
