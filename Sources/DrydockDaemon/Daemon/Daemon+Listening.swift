// The sockets of a daemon: where clients connect, and where commands are taken.

internal import Configuration
internal import EventLoop
internal import Glibc
internal import Logging
internal import ProxyServer
internal import Synchronization

/// The sockets of a daemon, bound and listening.
struct DaemonSockets: Sendable {
    var proxy: [ListeningSocket] = []
    var admin: [ListeningSocket] = []
    /// What systemd has passed, in words, one line for each.
    var passed: [String] = []
    /// Why no commands are taken though nothing in the configuration says so; nil where they are, or are not to be.
    var noAdmin: String?

    func discard() {
        for socket in proxy + admin { socket.discard() }
    }
}

extension DaemonSockets {
    /// Takes over what systemd has passed to this process.
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

extension Daemon {
    /// Binds what the configuration names, except where systemd has passed sockets for the same purpose: those are used instead.
    /// - Parameter ownsProcess: the process is the daemon, which takes commands for its user unless the configuration says otherwise.
    /// - Throws: `DaemonError.start` where an address that somebody has named cannot be had; nothing is bound then.
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
        // For nobody but the user, whatever the folder lets through.
        let mode: UInt32 = 0o600
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
        // Nobody has named this address: a daemon that cannot have it does the rest of its work.
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

    /// What a start says beside ``statusLine``: where stored responses are, and where commands go.
    func tellPlaces(_ sockets: DaemonSockets) {
        let configuration = state.withLock { $0.configuration }
        let logger = parts.logger
        for line in sockets.passed { logger.info("\(line)") }
        if let tier = configuration.cache.disk {
            logger.info("stored responses are kept in \(tier.path), at most \(BatchProgress.size(Int64(tier.size)))")
        } else {
            let size = BatchProgress.size(Int64(configuration.cache.memory.size))
            logger.info("stored responses are kept in memory alone, at most \(size), and are gone after a restart")
        }
        if let reason = sockets.noAdmin {
            logger.warning("\(reason)")
        } else if sockets.admin.isEmpty {
            logger.info("no commands are taken")
        } else {
            logger.info("commands are taken at \(sockets.admin.map(\.address.description).joined(separator: ", "))")
        }
        tellWarnings(configuration)
    }

    func tellWarnings(_ configuration: Configuration) {
        for warning in parts.source.warnings(configuration) { parts.logger.warning("\(warning)") }
    }
}
