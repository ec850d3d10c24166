// The limits of client connections: the settings of the server, and how many connections there may be, in all and
// from one client address, counted over all loops.

package import EventLoop
package import HTTPWire
import Synchronization

/// Sendable: the counts are under a mutex that is taken once at accept and once at close.
package final class ConnectionLimits: Sendable {
    /// Why a connection was not admitted.
    package enum Refusal: Sendable, Equatable {
        case total(limit: Int)
        /// The process may not have descriptors for more.
        case files(limit: Int)
        case perClient(limit: Int)
    }

    private struct State {
        var total: Int
        var perClient: Int
        var open = 0
        var refused = 0
        var monitors = 0
        var byClient: [[UInt8]: Int] = [:]
    }

    private let files: DescriptorLimit
    private let state: Mutex<State>

    /// - Parameter files: open files of the process, which bound connections as well.
    package init(total: Int, perClient: Int, files: DescriptorLimit) {
        self.files = files
        state = Mutex(State(total: total, perClient: perClient))
    }

    /// The most connections of clients, as configured or as open files allow.
    package var most: Int { min(state.withLock { $0.total }, files.connections) }

    /// Applies to new connections; open ones stay open.
    package func update(total: Int, perClient: Int) {
        state.withLock { state in
            state.total = total
            state.perClient = perClient
        }
    }

    /// Counts a connection in; nil when it may stay. Each admitted one is ended by ``leave(_:)``.
    package func enter(_ peer: SocketAddress) -> Refusal? {
        let client = Self.key(peer)
        return state.withLock { state in
            if state.open >= state.total { return .total(limit: state.total) }
            if state.open >= files.connections { return .files(limit: files.connections) }
            state.open += 1
            guard let client else { return nil }
            let count = state.byClient[client, default: 0]
            guard count < state.perClient else {
                state.open -= 1
                return .perClient(limit: state.perClient)
            }
            state.byClient[client] = count + 1
            return nil
        }
    }

    /// Counts in a connection that is only told why it is refused. Each one that may be is ended by ``leaveRefused()``.
    /// - Returns: false where so many are told now that there is no descriptor for one more.
    func enterRefused() -> Bool {
        state.withLock { state in
            guard state.refused < files.refusals else { return false }
            state.refused += 1
            return true
        }
    }

    func leaveRefused() { state.withLock { $0.refused -= 1 } }

    /// The most connections of monitors at the same time. A Prometheus has one, and a probe one for as long as it asks.
    static let mostMonitors = 64

    /// Counts in a connection at a listener for metrics, which anybody may reach. Each one that may be is ended by
    /// ``leaveMonitors()``.
    func enterMonitors() -> Bool {
        state.withLock { state in
            guard state.monitors < Self.mostMonitors else { return false }
            state.monitors += 1
            return true
        }
    }

    func leaveMonitors() { state.withLock { $0.monitors -= 1 } }

    package func leave(_ peer: SocketAddress) {
        let client = Self.key(peer)
        state.withLock { state in
            state.open -= 1
            guard let client else { return }
            let count = state.byClient[client, default: 1] - 1
            state.byClient[client] = count > 0 ? count : nil
        }
    }

    package var open: Int { state.withLock { $0.open } }

    /// An IPv6 client owns at least its /64: one host must not count as many. Clients of unix sockets have no address
    /// and count in all only.
    private static func key(_ peer: SocketAddress) -> [UInt8]? {
        let address = peer.ipBytes
        if address.isEmpty { return nil }
        return address.count == 16 && !peer.isLoopback ? Array(address[..<8]) : address
    }
}

extension ConnectionLimits.Refusal {
    /// The answer: 503, try again soon.
    package var problem: Problem {
        let detail =
            switch self {
            case .total(let limit):
                "all \(limit) connections are taken; try again, or raise limits.connections"
            case .files(let limit):
                "all \(limit) connections are taken that the process may have files for; try again, or raise the limit of "
                    + "open files (ulimit -n, LimitNOFILE)"
            case .perClient(let limit):
                "this client has \(limit) connections open; reuse them, or raise limits.per_client"
            }
        return Problem(
            status: 503,
            title: "Too many connections",
            detail: detail,
            proxyError: "connection_limit_reached",
            fields: Fields([("Retry-After", "1")])
        )
    }
}

// MARK: - The limits of client connections

/// The settings of the server; all times are in nanoseconds.
package struct ServerSettings: Sendable {
    /// The daemon's name, which is its pseudonym in Via, Cache-Status and Proxy-Status.
    package var name: String
    package var head: HeadLimits
    /// The time for a whole head from its first byte; a slower client gets a 408.
    package var headTimeout: UInt64
    /// The time that a connection may be idle between two requests, or that a write may make no progress.
    package var idle: UInt64
    /// The least bytes per second of a request body while the daemon waits for the client.
    package var bodyRate: Int
    /// The time of waiting for a request body before its least rate applies.
    package var bodyGrace: UInt64 = 10_000_000_000
    /// The time that a client has to take the last answer before the connection is closed.
    package var linger: UInt64 = 2_000_000_000
    /// The largest number of connections.
    package var connections: Int
    /// The largest number of connections of one client address.
    package var perClient: Int
    /// The clients that may connect over IP.
    package var clients: [ClientRule]

    package init(
        name: String,
        head: HeadLimits,
        headTimeout: UInt64,
        idle: UInt64,
        bodyRate: Int,
        connections: Int,
        perClient: Int,
        clients: [ClientRule]
    ) {
        self.name = name
        self.head = head
        self.headTimeout = headTimeout
        self.idle = idle
        self.bodyRate = bodyRate
        self.connections = connections
        self.perClient = perClient
        self.clients = clients
    }

    /// The time between two looks at deadlines: a quarter of the shortest of them, between 10 ms and 1 s.
    var sweepInterval: UInt64 {
        let shortest = min(min(headTimeout, idle), min(linger, bodyGrace))
        return min(max(shortest / 4, 10_000_000), 1_000_000_000)
    }
}
