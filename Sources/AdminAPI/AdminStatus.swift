// What a daemon says of itself: its state, its clock, and what became of a reload.

/// `GET /v1/status`. Sizes are bytes, times whole seconds.
package struct AdminStatus: Codable, Sendable, Equatable {
    /// What tells one daemon from another, and any version's status has.
    package struct Identity: Codable, Sendable, Equatable {
        package var pid: Int
        /// The absolute path of the configuration file; nil where there is none.
        package var configuration: String?

        package init(pid: Int, configuration: String?) {
            self.pid = pid
            self.configuration = configuration
        }
    }

    package struct Tier: Codable, Sendable, Equatable {
        package var entries: Int
        package var bytes: Int
        package var limit: Int

        package init(entries: Int, bytes: Int, limit: Int) {
            self.entries = entries
            self.bytes = bytes
            self.limit = limit
        }
    }

    package struct Service: Codable, Sendable, Equatable {
        package var name: String
        /// Where requests go.
        package var target: String
        /// As the configuration says it, such as `/github` or `api.localhost`.
        package var match: String
        /// Some requests, or all, get demo answers.
        package var isDemo: Bool
        /// Some get demo answers, and the others go to `target`; nil from an older daemon.
        package var isPartlyDemo: Bool?
        /// Fetches under way; nil from an older daemon, like what follows.
        package var fetches: Int?
        /// Fetches that wait for `max_concurrent`.
        package var waiting: Int?
        /// `closed`, `open` or `half-open`, in forward mode `open for 2 origins`; nil, too, where the service has no circuit breaker.
        package var breaker: String?
        /// Calls that wait for the origin, which is away; nil, too, where the service parks none.
        package var parked: Int?
        /// Requests that came before the Retry-After of a quota had passed; nil, too, where there were none.
        package var early: Int?

        package init(name: String, target: String, match: String, isDemo: Bool, isPartlyDemo: Bool) {
            self.name = name
            self.target = target
            self.match = match
            self.isDemo = isDemo
            self.isPartlyDemo = isPartlyDemo
        }
    }

    package var version: String
    package var pid: Int
    package var uptime: Int
    /// The absolute path of the configuration file; nil where there is none.
    package var configuration: String?
    package var loops: Int
    package var listen: [String]
    package var services: [Service]
    package var connections = 0
    package var tunnels = 0
    package var answers = 0
    package var hits = 0
    package var misses = 0
    /// No origin is asked.
    package var isOffline: Bool
    package var clock: AdminClock
    package var memory: Tier
    /// Nil where there is no disk tier.
    package var disk: Tier?
    /// What was changed about demo answers; nil from an older daemon.
    package var demo: [AdminDemo.Override]?

    /// A status whose counts are all 0.
    package init(
        version: String,
        pid: Int,
        uptime: Int,
        configuration: String?,
        loops: Int,
        listen: [String],
        services: [Service],
        isOffline: Bool,
        clock: AdminClock,
        memory: Tier,
        disk: Tier?
    ) {
        self.version = version
        self.pid = pid
        self.uptime = uptime
        self.configuration = configuration
        self.loops = loops
        self.listen = listen
        self.services = services
        self.isOffline = isOffline
        self.clock = clock
        self.memory = memory
        self.disk = disk
    }
}

/// The answer of `POST /v1/clock`, and `clock` in `GET /v1/status`.
package struct AdminClock: Codable, Sendable, Equatable {
    /// The configuration allows to move it.
    package var isMovable: Bool
    /// Seconds ahead of the system's clock.
    package var ahead: Int64
    /// The daemon's time, such as `2026-01-31T12:00:00Z`.
    package var time: String
    /// The same in seconds since 1970; nil from a daemon that leaves it out.
    package var unixTime: Int64?

    package init(isMovable: Bool, ahead: Int64, time: String, unixTime: Int64) {
        self.isMovable = isMovable
        self.ahead = ahead
        self.time = time
        self.unixTime = unixTime
    }
}

/// `POST /v1/reload`.
package struct ReloadResult: Codable, Sendable, Equatable {
    /// The new configuration is in force.
    package var isReloaded: Bool
    /// One line for the log, such as `ok (3 services, 12 endpoints)`.
    package var summary: String
    /// Every error with its place, where the old configuration stays.
    package var errors: [String]

    package init(isReloaded: Bool, summary: String, errors: [String] = []) {
        self.isReloaded = isReloaded
        self.summary = summary
        self.errors = errors
    }
}
