// The sockets that systemd passes to the daemon (socket activation, sd_listen_fds(3)), told apart by their names.

import EventLoop
import Glibc
import ProxyServer

/// A descriptor that the service manager has passed, and what it is for.
struct PassedSocket: Sendable, Equatable {
    /// 3 or above.
    let descriptor: Int32
    /// `FileDescriptorName=` of its socket unit; without one the unit's own name, and `unknown` where
    /// there are no names at all.
    let name: String
    let role: ListenerRole
}

extension PassedSocket {
    /// The kernel's default limit of open files of a process.
    private static let most: Int32 = 1024

    /// The sockets that the service manager has passed to this process, in the order of the descriptors; none if the
    /// variables name another process. Reads variables only.
    /// - Parameter environment: `LISTEN_PID`, `LISTEN_FDS` and, with names between colons, `LISTEN_FDNAMES`.
    /// - Throws: `DaemonError.start` for a name that is neither's, or that looks like one for commands; no socket was
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
                    "systemd passed a socket under the name '\(name)' (descriptor \(descriptor)), and there are only 'proxy', where clients connect, and 'admin', where commands are taken; write FileDescriptorName=proxy or FileDescriptorName=admin into its socket unit"
                )
            }
            all.append(PassedSocket(descriptor: descriptor, name: name, role: role))
        }
        return all
    }

    /// nil for a name that is neither's. Without `FileDescriptorName=`, systemd takes the name of the socket unit.
    private static func role(of name: String) -> ListenerRole? {
        switch name {
        case "admin": .admin
        case "proxy", "unknown", "": .proxy
        // A unit whose name has 'admin' in it is meant for commands; without FileDescriptorName=admin it would serve
        // clients.
        default: name.hasSuffix(".socket") && !name.contains("admin") ? .proxy : nil
        }
    }

    /// Takes the sockets over, in the same order; they no longer reach programs that this process becomes.
    /// - Throws: `DaemonError.start` for one that does not listen, or that the admin API must not
    ///   be on; all are closed then.
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

    /// Nil where the descriptor is no socket.
    private func option(_ name: Int32) -> Int32? {
        var value: Int32 = 0
        var length = socklen_t(MemoryLayout<Int32>.size)
        return getsockopt(descriptor, SOL_SOCKET, name, &value, &length) == 0 ? value : nil
    }
}
