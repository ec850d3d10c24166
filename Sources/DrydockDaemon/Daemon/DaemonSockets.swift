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
    /// The reason why no commands are taken although the configuration does not forbid them; nil if they are taken or
    /// forbidden.
    var noAdmin: String?

    func discard() {
        for socket in proxy + admin + metrics { socket.discard() }
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
    /// - Parameter ownsProcess: true if the process exists for this daemon only; it takes commands for its user then,
    ///   unless the configuration says otherwise.
    /// - Throws: `DaemonError.start` if an address that an operator has named cannot be bound; nothing is bound then.
    static func bind(
        _ configuration: Configuration,
        environment: [String: String],
        ownsProcess: Bool
    ) throws(DaemonError) -> DaemonSockets {
        var sockets = try DaemonSockets(passed: environment)
        do throws(DaemonError) {
            if sockets.proxy.isEmpty {
                for point in configuration.listen {
                    let bound = try listen([point.address], key: "listen")
                    sockets.proxy += bound
                    for socket in bound { sockets.schemes[socket.descriptor] = point.scheme }
                }
            }
            if sockets.metrics.isEmpty { sockets.metrics = try listen(configuration.metrics, key: "metrics") }
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
        // If the default address cannot be bound, the daemon serves its clients all the same: no operator has named it.
        sockets.noAdmin = problem.map {
            "no commands are taken: \($0); name an address for this daemon with 'admin: unix:/PATH' in its configuration, or with DRYDOCK_ADMIN=unix:/PATH for it and its commands"
        }
    }

    /// Binds `addresses`, or explains why one of them cannot be bound.
    /// - Parameter key: the configuration key, or the variable, that names the addresses.
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

/// A descriptor that the service manager has passed, and what it is for.
struct PassedSocket: Sendable, Equatable {
    /// The number of the descriptor, 3 or above.
    let descriptor: Int32
    /// `FileDescriptorName=` of the socket unit; the unit's own name without it, and `unknown` if systemd passed no
    /// names.
    let name: String
    let role: ListenerRole
    /// How clients speak there.
    var scheme = ListenScheme.http
}

extension PassedSocket {
    /// The kernel's default limit of open files in a process, as the most sockets that are believed to be passed.
    private static let most: Int32 = 1024

    /// The sockets that the service manager has passed to this process, in the order of the descriptors; none if the
    /// variables name another process. Reads variables only.
    /// - Parameter environment: `LISTEN_PID`, `LISTEN_FDS` and, with names between colons, `LISTEN_FDNAMES`.
    /// - Throws: `DaemonError.start` for a name that is not known, or that looks like one for commands; no socket is
    ///   taken over then.
    static func all(
        _ environment: [String: String],
        process: pid_t = getpid()
    ) throws(DaemonError) -> [PassedSocket] {
        guard environment["LISTEN_PID"].flatMap({ pid_t($0) }) == process, let text = environment["LISTEN_FDS"] else {
            return []
        }
        guard let count = Int32(text), 0...most ~= count else {
            throw .start("LISTEN_FDS is '\(text)', and not a number of sockets from 0 to \(most)")
        }
        guard count > 0 else { return [] }
        let names = environment["LISTEN_FDNAMES"].map {
            $0.split(separator: ":", omittingEmptySubsequences: false).map(String.init)
        }
        if let names, names.count != Int(count) {
            throw .start("LISTEN_FDS is \(count), and LISTEN_FDNAMES has \(names.count) names: each socket needs one")
        }
        var all: [PassedSocket] = []
        for index in 0..<count {
            let (descriptor, name) = (3 + index, names?[Int(index)] ?? "unknown")
            guard let role = role(of: name) else {
                throw .start(
                    "systemd passed a socket under the name '\(name)' (descriptor \(descriptor)), and there are only 'proxy', 'proxy-tls' and 'proxy-any', where clients connect, 'admin', where commands are taken, and 'metrics', where monitors ask; write FileDescriptorName=proxy, FileDescriptorName=admin or FileDescriptorName=metrics into its socket unit"
                )
            }
            all.append(PassedSocket(descriptor: descriptor, name: name, role: role, scheme: scheme(of: name)))
        }
        return all
    }

    /// The role that a socket's name stands for; nil for an unknown name. Without `FileDescriptorName=`, systemd passes
    /// the name of the socket unit.
    private static func role(of name: String) -> ListenerRole? {
        switch name {
        case "admin": .admin
        case "metrics": .metrics
        case "proxy", "proxy-tls", "proxy-any", "unknown", "": .proxy
        // A unit with 'admin' or 'metrics' in its name is meant for those; without FileDescriptorName it would serve clients.
        default: name.hasSuffix(".socket") && !name.contains("admin") && !name.contains("metrics") ? .proxy : nil
        }
    }

    private static func scheme(of name: String) -> ListenScheme {
        switch name {
        case "proxy-tls": .https
        case "proxy-any": .any
        default: .http
        }
    }

    /// Takes the sockets over, in the same order; programs that this process executes do not inherit them.
    /// - Throws: `DaemonError.start` for a socket that does not listen, or that the admin API must not use; all are
    ///   closed then.
    static func take(_ passed: [PassedSocket]) throws(DaemonError) -> [ListeningSocket] {
        do throws(DaemonError) {
            var sockets: [ListeningSocket] = []
            for one in passed { sockets.append(try one.take()) }
            return sockets
        } catch {
            for one in passed { close(one.descriptor) }
            throw error
        }
    }

    private func take() throws(DaemonError) -> ListeningSocket {
        let me = "systemd passed a socket under the name '\(name)' (descriptor \(descriptor))"
        guard option(SO_TYPE) == Int32(SOCK_STREAM.rawValue), option(SO_ACCEPTCONN) == 1 else {
            throw .start("\(me) that takes no connections; write ListenStream= and Accept=no into its socket unit")
        }
        let socket: ListeningSocket
        do throws(SystemError) { socket = try .adopt(descriptor) } catch { throw .start("\(me): \(error)") }
        guard role != .admin || socket.address.isLoopback else {
            throw .start(
                "\(me) that listens on \(socket.address); the admin API has no password, so it listens on a unix socket or on loopback only: write ListenStream=/run/drydock-admin.sock into its socket unit"
            )
        }
        guard fcntl(descriptor, F_SETFD, FD_CLOEXEC) == 0 else {
            throw .start("\(me): \(SystemError("fcntl of descriptor \(descriptor)"))")
        }
        return socket
    }

    /// The value of a socket option; nil if the descriptor is not a socket.
    private func option(_ name: Int32) -> Int32? {
        var value: Int32 = 0
        var length = socklen_t(MemoryLayout<Int32>.size)
        return getsockopt(descriptor, SOL_SOCKET, name, &value, &length) == 0 ? value : nil
    }
}
