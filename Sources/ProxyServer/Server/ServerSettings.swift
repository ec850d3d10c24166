// The limits of client connections, as one immutable value for each configuration.

package import Configuration
package import HTTPWire

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

    package init(_ configuration: Configuration) {
        let limits = configuration.limits
        name = configuration.name
        head = HeadLimits(head: limits.head, fields: limits.fields, field: limits.field, target: limits.target)
        headTimeout = limits.headTimeout
        idle = limits.idle
        bodyRate = limits.bodyRate
        connections = limits.connections
        perClient = limits.perClient
        clients = configuration.clients
    }

    /// The time between two looks at deadlines: a quarter of the shortest of them, between 10 ms and 1 s.
    var sweepInterval: UInt64 {
        let shortest = min(min(headTimeout, idle), min(linger, bodyGrace))
        return min(max(shortest / 4, 10_000_000), 1_000_000_000)
    }
}
