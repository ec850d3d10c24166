// How much the connections to origins of one loop may take.

/// What one client may hold open.
package struct UpstreamLimits: Sendable, Equatable {
    /// Connections to one host and port at once; more transfers wait within their connect deadline;
    /// 0 (the default): no limit.
    package var connectionsPerHost: Int
    /// The limit of idle connections; default 256.
    package var idleConnections: Int
    /// Bytes that are read at once, 1 KiB to 512 KiB; default 256 KiB.
    package var bufferSize: Int

    package init(connectionsPerHost: Int = 0, idleConnections: Int = 256, bufferSize: Int = 262_144) {
        self.connectionsPerHost = connectionsPerHost
        self.idleConnections = idleConnections
        self.bufferSize = min(max(bufferSize, 1024), 524_288)
    }
}
