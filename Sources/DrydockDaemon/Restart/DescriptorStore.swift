// The descriptors that systemd keeps from one process of the service to the next (FileDescriptorStoreMax=, sd_pid_notify_with_fds(3)).

import EventLoop
import Glibc
import ProxyServer
import Synchronization
import TLS

/// Keeps the daemon's sockets and ticket keys with the service manager, so that a restart refuses no connection: whoever
/// connects meanwhile waits for the next process.
///
/// Sendable: the names are under a mutex.
final class DescriptorStore: Sendable {
    private struct State {
        /// By descriptor.
        var names: [Int32: String] = [:]
        var keys: TicketKeyFile?
    }

    private let notifier: ServiceManagerNotifier
    private let tickets: TicketKeys
    private let state = Mutex(State())
    /// Whether the service manager stores anything for this service: systemd says so with `FDSTORE`, since version 254 by
    /// itself.
    let isThere: Bool

    /// - Parameter environment: has `FDSTORE`, the most descriptors that are stored.
    init(environment: [String: String], notifier: ServiceManagerNotifier, tickets: TicketKeys) {
        self.notifier = notifier
        self.tickets = tickets
        isThere =
            environment["NOTIFY_SOCKET"]?.isEmpty == false && (environment["FDSTORE"].flatMap { Int($0) } ?? 0) > 0
    }

    /// Takes over the ticket keys that the process before this one has stored, if the variables that say so are right.
    func takeKeys(_ environment: [String: String]) {
        for (descriptor, name) in (try? PassedSocket.named(environment)) ?? [] where name == TicketKeyFile.name {
            let file = TicketKeyFile(descriptor)
            tickets.adopt(file.read())
            state.withLock { $0.keys = file }
        }
    }

    /// Stores the sockets that are not there yet, and forgets those that are not used any more. Sockets of units are the
    /// service manager's anyway.
    func keep(_ sockets: DaemonSockets) {
        guard isThere else { return }
        for name in sockets.useless + sockets.unused.compactMap(\.name) { notifier.forget(name) }
        let roles: [(ListenerRole, [ListeningSocket])] = [
            (.proxy, sockets.proxy), (.admin, sockets.admin), (.metrics, sockets.metrics),
        ]
        state.withLock { $0.names = sockets.kept.compactMapValues(\.name) }
        for (role, all) in roles {
            for socket in all where sockets.kept[socket.descriptor]?.name == nil {
                if !sockets.ofUnits.contains(socket.descriptor) { keep(socket, role) }
            }
        }
        guard state.withLock({ $0.keys == nil }), let file = TicketKeyFile() else { return }
        state.withLock { $0.keys = file }
        notifier.store(file.descriptor, as: TicketKeyFile.name)
    }

    /// Stores a socket in place of one whose file was removed.
    func keep(_ new: ListeningSocket, insteadOf lost: ListeningSocket, _ role: ListenerRole) {
        guard isThere else { return }
        if let name = state.withLock({ $0.names.removeValue(forKey: lost.descriptor) }) { notifier.forget(name) }
        keep(new, role)
    }

    private func keep(_ socket: ListeningSocket, _ role: ListenerRole) {
        let name = state.withLock { state in
            let taken = Set(state.names.values)
            let name = (1...).lazy.map { KeptSocket.name(role, $0) }.first { !taken.contains($0) } ?? ""
            state.names[socket.descriptor] = name
            return name
        }
        notifier.store(socket.descriptor, as: name)
    }

    /// Leaves the ticket keys of this moment to the next process.
    func leaveKeys() { state.withLock { $0.keys }?.write(tickets.exported) }
}

/// Ticket keys in a file that is nowhere but in memory; whoever has its descriptor has the keys.
struct TicketKeyFile: Sendable {
    /// The name under which it is passed from process to process.
    static let name = "ticket-keys"
    /// More bytes are never read.
    private static let most = 4096

    let descriptor: Int32

    /// Takes over a file; programs that this process executes do not inherit it.
    init(_ descriptor: Int32) {
        self.descriptor = descriptor
        _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
    }

    /// Makes an empty file; nil if there is no room for one.
    init?() {
        guard let made = PassedFiles.memoryFile() else { return nil }
        descriptor = made
    }

    func write(_ bytes: [UInt8]) {
        guard ftruncate(descriptor, 0) == 0 else { return }
        _ = pwrite(descriptor, bytes, bytes.count, 0)
    }

    func read() -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: Self.most)
        let count = pread(descriptor, &bytes, bytes.count, 0)
        return Array(bytes.prefix(max(0, count)))
    }
}
