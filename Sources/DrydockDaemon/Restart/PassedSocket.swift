// The sockets that a service manager passes: those of its units, and those that a daemon before this one has left with it.

import Configuration
import EventLoop
import Glibc
import ProxyServer

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
    /// Whether a daemon before this one has listened there, so that the configuration says what it is for.
    var isKept = false
}

/// A socket on which the process before this one has listened. It is used where the configuration has its address for the same
/// role.
struct KeptSocket: Sendable {
    let role: ListenerRole
    let socket: ListeningSocket
    /// The name of the socket in the service manager's store; nil if it is not there.
    var name: String?

    /// The name of one of several sockets of a role, as the service manager stores it.
    static func name(_ role: ListenerRole, _ number: Int) -> String { "\(role.rawValue).\(number)" }

    /// The role of a socket of that name; nil if it is not one of a daemon before this one.
    static func role(of name: String) -> ListenerRole? {
        let parts = name.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 2, UInt16(parts[1]) != nil else { return nil }
        return ListenerRole(rawValue: String(parts[0]))
    }
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
        var all: [PassedSocket] = []
        for (descriptor, name) in try named(environment, process: process) where name != TicketKeyFile.name {
            if let role = KeptSocket.role(of: name) {
                all.append(PassedSocket(descriptor: descriptor, name: name, role: role, isKept: true))
                continue
            }
            guard let role = role(of: name) else {
                throw .start(
                    "systemd passed a socket under the name '\(name)' (descriptor \(descriptor)), and there are only 'proxy', 'proxy-tls' and 'proxy-any', where clients connect, 'admin', where commands are taken, and 'metrics', where monitors ask; write FileDescriptorName=proxy, FileDescriptorName=admin or FileDescriptorName=metrics into its socket unit"
                )
            }
            all.append(PassedSocket(descriptor: descriptor, name: name, role: role, scheme: scheme(of: name)))
        }
        return all
    }

    /// The descriptors that the service manager has passed to this process, with their names.
    /// - Throws: `DaemonError.start` for variables that contradict one another.
    static func named(
        _ environment: [String: String],
        process: pid_t = getpid()
    ) throws(DaemonError) -> [(descriptor: Int32, name: String)] {
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
        return (0..<count).map { (3 + $0, names?[Int($0)] ?? "unknown") }
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

    /// Takes over a socket that a daemon before this one has left; nil if it is of no use any more.
    func takeKept() -> KeptSocket? {
        guard isKept, let socket = try? take() else {
            close(descriptor)
            return nil
        }
        return KeptSocket(role: role, socket: socket, name: name)
    }

    private func take() throws(DaemonError) -> ListeningSocket {
        let me = "systemd passed a socket under the name '\(name)' (descriptor \(descriptor))"
        guard ListeningSocket.listens(descriptor) else {
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
}
