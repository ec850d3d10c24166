// The daemon's own part of the configuration: admin socket, tiers, forward mode, limits and logs.

package import Policies
package import Upstream

/// The admin socket.
package struct AdminConfiguration: Sendable, Equatable {
    /// At least one address; on TCP only loopback makes sense, since the admin API has no password.
    package var listen: [ListenAddress]
    /// The permissions of a unix socket. Default: 0660.
    package var mode: UInt32
    /// The group that owns a unix socket; nil leaves the process's own.
    package var group: String?
}

/// The two tiers of the store.
package struct TierConfiguration: Sendable, Equatable {
    package var memory = MemoryTierConfiguration()
    /// Nil where no disk tier is configured.
    package var disk: DiskTierConfiguration?

    package init() {}
}

/// The memory tier.
package struct MemoryTierConfiguration: Sendable, Equatable {
    /// Bytes over all entries, everything counted that an entry holds. Default: 256 MiB.
    package var size: Int
    /// Entries. Default: 100,000.
    package var objects: Int
    /// Bytes of one entry. Default: 8 MiB.
    package var maxObject: Int
    /// What happens while the machine, or the daemon's control group, is short of memory. Default: shed.
    package var pressure: Pressure

    package enum Pressure: String, Sendable, CaseIterable {
        /// Entries are evicted, and their memory goes back.
        case shed
        case ignore
    }
}

/// The disk tier.
package struct DiskTierConfiguration: Sendable, Equatable {
    /// The absolute path of its folder. A change needs a restart.
    package var path: String
    /// Bytes over all files. Default: 10 GiB.
    package var size: Int
    /// Bytes of one stored response. Default: 2 GiB.
    package var maxObject: Int
    /// Bytes that stay free on the file system. Default: 512 MiB.
    package var minFree: Int
}

/// Forward mode.
package struct ForwardConfiguration: Sendable, Equatable {
    package var enabled: Bool
    /// Host patterns (`*`, `*.example.com`, `example.com`, an address) in lower case. Loopback, private and link-local
    /// targets only when named. Default: `*`.
    package var allow: [String]
    /// `HOST:PORT` patterns for CONNECT and for `https` URLs in absolute form, either side may
    /// be `*`. Default: `*:443`.
    package var connectAllow: [String]
    /// Whether responses that break a rule of HTTP/1.1, but can be read in one way only, are taken. Default: true.
    package var lenient: Bool
    /// The absolute path of a PEM bundle that replaces the system's for `https` URLs in
    /// absolute form; nil: the system's.
    package var ca: String?
    /// Nanoseconds without a byte in either direction of a tunnel. Default: 60 minutes; nil: no limit.
    package var tunnelTimeout: UInt64?
    /// The proxies that targets are reached through. Default: none.
    package var upstreamProxy: UpstreamProxies
    /// How a fetch that failed is made again.
    package var retry: RetryPolicy
    /// When an origin is left alone; nil: never.
    package var breaker: BreakerPolicy?
    /// Fetches at once, of all origins together; nil: no limit.
    package var maxConcurrent: Int?
    package var maxQueue: QueueConfiguration
    package var cache = CacheConfiguration()
    /// What goes wrong on purpose, in order.
    package var faults: [FaultPolicy] = []
}

/// Bounds on what one client, or the head of one response, may cost.
package struct LimitsConfiguration: Sendable, Equatable {
    /// Bytes of a head. Default: 64 KiB.
    package var head: Int
    /// Field lines of a head. Default: 100.
    package var fields: Int
    /// Bytes of one field line. Default: 8 KiB.
    package var field: Int
    /// Bytes of a request target. Default: 8 KiB.
    package var target: Int
    /// Bytes of a response head. Default: 256 KiB.
    package var responseHead: Int
    /// Field lines of a response head. Default: 1000.
    package var responseFields: Int
    /// Bytes of one field line of a response. Default: 64 KiB.
    package var responseLine: Int
    /// Nanoseconds for a whole head. Default: 10 s.
    package var headTimeout: UInt64
    /// Nanoseconds between two requests of a connection. Default: 60 s.
    package var idle: UInt64
    /// The least rate of a request body in bytes per second, after a grace of 10 s. Default: 1 KiB.
    package var bodyRate: Int
    /// Connections in all. Default: 10,000.
    package var connections: Int
    /// Connections of one client address. Default: 1000.
    package var perClient: Int
}

/// The clock of lifetimes.
package struct ClockConfiguration: Sendable, Equatable {
    /// Whether `drydock clock` may move it, for tests. Default: false.
    package var movable: Bool
}

/// The daemon's own log and the access log.
package struct LogConfiguration: Sendable, Equatable {
    /// The levels of swift-log, least severe first.
    package enum Level: String, Sendable, CaseIterable { case trace, debug, info, notice, warning, error, critical }
    /// Where access log lines go.
    package enum Access: Sendable, Equatable {
        case stdout
        case stderr
        case off
        /// An absolute path; lines are appended.
        case file(path: String)
    }
    /// The format of log lines.
    package enum Format: String, Sendable, CaseIterable {
        /// JSON in the access log, which programs read, and text in the daemon's own log, which people read.
        case auto
        /// JSON in both.
        case json
        /// As Apache and nginx write it; the daemon's own log is text.
        case combined
        case text

        /// The format of one line.
        package enum Line: Sendable { case json, combined, text }

        package var ofAccessLog: Line {
            switch self {
            case .auto, .json: .json
            case .combined: .combined
            case .text: .text
            }
        }
        package var ofDaemonLog: Line { self == .json ? .json : .text }
    }

    package var level: Level
    package var access: Access
    package var format: Format
    /// The ids of requests that log lines have go on to origins.
    package var requestID: Bool
}
