// What the admin API can ask of the daemon, and the documents it answers with; the command line decodes the same types.

/// Implemented where the daemon is put together.
package protocol AdminActions: Sendable {
    func status() async -> AdminStatus
    /// - Throws: where the daemon is ending.
    func entries(_ query: AdminEntryQuery) async throws(Problem) -> AdminEntries
    /// Reads the configuration anew, and takes it over where it has no error.
    func reload() async -> ReloadResult
    /// What would become of a request; nothing changes by it.
    /// - Throws: the refusal of the question, or the one that the request would be answered with.
    func explain(_ question: ExplainQuestion) async throws(Problem) -> AdminExplanation
    /// Leaves origins alone from now on, or asks them again; a reload puts the configuration's word in force.
    func setOffline(_ isOffline: Bool) async -> AdminOffline
    /// Moves the clock that lifetimes are counted by.
    /// - Throws: ``ClockMove/refused`` unless the configuration allows it, or that it would go too far.
    func moveClock(_ move: ClockMove) async throws(Problem) -> AdminClock
    /// The daemon serves: its sockets listen and its tiers are open.
    var isReady: Bool { get }
    /// In the Prometheus text format.
    func metricsText() async -> String
}

/// `GET /v1/status`. Sizes are bytes, times whole seconds.
package struct AdminStatus: Codable, Sendable, Equatable {
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
        /// Some get demo answers, and the others go to `target`.
        package var isPartlyDemo: Bool

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
    package var connections: Int
    package var tunnels: Int
    package var answers: Int
    package var hits: Int
    package var misses: Int
    /// Nobody is asked.
    package var isOffline: Bool
    package var clock: AdminClock
    package var memory: Tier
    /// Nil where there is no disk tier.
    package var disk: Tier?

    package init(
        version: String,
        pid: Int,
        uptime: Int,
        configuration: String?,
        loops: Int,
        listen: [String],
        services: [Service],
        counters: CounterValues,
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
        connections = Int(clamping: counters.connections)
        tunnels = Int(clamping: counters[.tunnelsOpened] &- counters[.tunnelsClosed])
        answers = Int(clamping: counters.answers)
        hits = Int(clamping: counters[.cacheHit])
        misses = Int(clamping: counters[.cacheMiss])
        self.isOffline = isOffline
        self.clock = clock
        self.memory = memory
        self.disk = disk
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

/// `POST /v1/offline`.
package struct AdminOffline: Codable, Sendable, Equatable {
    /// Nobody is asked.
    package var isOffline: Bool

    package init(isOffline: Bool) { self.isOffline = isOffline }
}
