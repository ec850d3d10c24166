// The sockets of a daemon: where clients connect, and where commands are taken.

import Configuration
import EventLoop
import Glibc
import Logging
import ProxyServer
import Synchronization

/// The sockets of a daemon, bound and listening.
struct DaemonSockets: Sendable {
    var proxy: [ListeningSocket] = []
    var admin: [ListeningSocket] = []
    /// Of the files of `admin`: their permissions, and the group that owns them.
    var adminMode: UInt32 = 0o660
    var adminGroup: String?
    /// Lines for the log, one for each socket that systemd has passed.
    var passed: [String] = []
    /// Why no commands are taken although the configuration does not forbid them; nil if they are taken, or forbidden.
    var noAdmin: String?

    func discard() {
        for socket in proxy + admin { socket.discard() }
    }
}

extension DaemonSockets {
    /// Takes over the sockets that systemd has passed to this process.
    /// - Throws: `DaemonError.start`; sockets that were taken over are closed then.
    init(passed environment: [String: String]) throws(DaemonError) {
        let all = try PassedSocket.all(environment)
        for (one, socket) in zip(all, try PassedSocket.take(all)) {
            let what: String
            switch one.role {
            case .proxy:
                proxy.append(socket)
                what = "clients connect there, and not to the addresses of 'listen'"
            case .admin:
                admin.append(socket)
                what = "commands are taken there, and not at the address of 'admin'"
            }
            passed.append(
                "systemd passed \(socket.address) (descriptor \(one.descriptor), name '\(one.name)'): \(what)"
            )
        }
    }
}

extension DaemonSockets {
    /// Binds the addresses of the configuration. Sockets that systemd has passed for the same purpose are used instead.
    /// - Parameter ownsProcess: the process is the daemon, which takes commands for its user unless the configuration
    ///   says otherwise.
    /// - Throws: `DaemonError.start` if an address that an operator has named cannot be had; nothing is bound then.
    static func bind(
        _ configuration: Configuration,
        environment: [String: String],
        ownsProcess: Bool
    ) throws(DaemonError) -> DaemonSockets {
        var sockets = try DaemonSockets(passed: environment)
        do throws(DaemonError) {
            if sockets.proxy.isEmpty { sockets.proxy = try listen(configuration.listen, key: "listen") }
            if let address = sockets.admin.first?.address {
                guard configuration.admin?.listen.isEmpty != true else {
                    throw .start(
                        "'admin' is none, and systemd passed \(address) for the admin API; remove 'admin' from the configuration, or the socket unit"
                    )
                }
            } else if let admin = configuration.admin {
                sockets.admin = try listen(admin.listen, key: "admin", mode: admin.mode, group: admin.group)
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

    private static func bindDefaultAdmin(
        _ sockets: inout DaemonSockets,
        _ environment: [String: String]
    ) throws(DaemonError) {
        // Only the daemon's user may connect, even if the folder lets others reach the socket.
        let mode: UInt32 = 0o600
        sockets.adminMode = mode
        if let named = environment["DRYDOCK_ADMIN"], !named.isEmpty {
            let address: ListenAddress
            do { address = try .admin(named) } catch {
                throw .start("DRYDOCK_ADMIN: \(error.errors.map(\.message).joined(separator: ", "))")
            }
            sockets.admin = try listen([address], key: "DRYDOCK_ADMIN", mode: mode)
            return
        }
        let folder = DefaultAdmin.folder(environment: environment)
        let path = DefaultAdmin.socket(in: folder)
        var problem = DefaultAdmin.make(folder)
        if problem == nil {
            do throws(ListeningError) {
                sockets.admin = try ListeningSet.bind([.unix(path: path)], mode: mode)
            } catch {
                problem = error.reason.code == EADDRINUSE ? "unix:\(path) is the socket of another daemon" : "\(error)"
            }
        }
        // No operator has named this address: a daemon that cannot have it serves its clients all the same.
        sockets.noAdmin = problem.map {
            "no commands are taken: \($0); name an address for this daemon with 'admin: unix:/PATH' in its configuration, or with DRYDOCK_ADMIN=unix:/PATH for it and its commands"
        }
    }

    /// - Parameter key: what names the addresses in the configuration.
    private static func listen(
        _ addresses: [ListenAddress],
        key: String,
        mode: UInt32 = 0o660,
        group: String? = nil
    ) throws(DaemonError) -> [ListeningSocket] {
        do throws(ListeningError) {
            return try ListeningSet.bind(addresses, mode: mode, group: group)
        } catch {
            throw .start(Remedies.listening(error.reason, error.address, key: key, group: group))
        }
    }

    /// Logs at the start where responses are stored, and where commands are taken.
    func log(for configuration: Configuration, to logger: Logger) {
        for line in passed { logger.info("\(line)") }
        if let tier = configuration.cache.disk {
            logger.info("stored responses are kept in \(tier.path), at most \(BatchProgress.size(Int64(tier.size)))")
        } else {
            let size = BatchProgress.size(Int64(configuration.cache.memory.size))
            logger.info("stored responses are kept in memory alone, at most \(size), and are gone after a restart")
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
