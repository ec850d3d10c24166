// The resolved configuration of one daemon: every default applied, every inheritance done, every path absolute.

package import Policies

/// What `drydock.yaml` says, ready to be compiled into a plan.
///
/// Durations are nanoseconds (`UInt64`) except the lifetimes of `cache`, which are whole seconds (`Int64`) as in RFC
/// 9111; sizes are bytes; shares lie in 0...1. Two configurations are equal when they ask for the same thing, wherever
/// in their files they say it.
package struct Configuration: Sendable, Equatable {
    /// Where clients connect. Default: `localhost:8080`, on 127.0.0.1 and ::1. A change needs a restart.
    package var listen: [ListenAddress]
    /// The admin socket; nil where the daemon uses its user's own (``DefaultAdmin``), without addresses where there is
    /// to be none. A change of its addresses needs a restart.
    package var admin: AdminConfiguration?
    /// The number of event loops; nil means one per core. A change needs a restart.
    package var loops: Int?
    /// The name that the file gives the daemon; nil for the one that is made of the machine and of ``listen``.
    /// A change needs a restart.
    package var givenName: String?
    /// Who may connect. Default: loopback only.
    package var clients: [ClientRule]
    /// Host patterns under which services that are matched by their prefix alone answer, unless they name
    /// their own. Default: none.
    package var hosts: [String]
    /// Names whose values logs, the journal and recordings have, although they look like secrets. Default: none.
    package var notSecret: [String]
    /// The memory tier and the disk tier.
    package var cache = TierConfiguration()
    /// Forward mode: absolute-form requests and CONNECT.
    package var forward = ForwardConfiguration()
    /// Bounds on what one client may cost.
    package var limits = LimitsConfiguration()
    /// How long requests under way may take to finish after SIGTERM. Default: 30 s.
    package var shutdown: UInt64
    /// The services in the order of the file, included files after it.
    package var services: [ServiceConfiguration] = []
    /// Whether no origin is contacted, and stored responses answer whatever their age. Default: false.
    package var offline: Bool
    /// Whether the daemon's clock may be moved.
    package var clock: ClockConfiguration
    /// The daemon's own log and the access log.
    package var log = LogConfiguration()
    /// What is remembered of requests.
    package var journal = JournalConfiguration()
    /// What is downloaded on a schedule.
    package var prefetch: [PrefetchConfiguration] = []
    /// What is purged on a schedule.
    package var purge: [PurgeConfiguration] = []
    /// Groups of calls.
    package var groups: [GroupConfiguration] = []
    /// The absolute path of the file of learned latencies; nil: they are gone when the daemon ends.
    package var learnedLatencies: String?
    /// The rules of each fault profile by its name, presets too; what uses one has its rules already.
    package var faultProfiles: [String: [FaultPolicy]]
    /// Every file that was read, demo files included; `--watch` watches them. Absolute paths.
    package var files: [String] = []
    /// Those of them that answers are made of, such as demo files: a changed one is served without a reload.
    package var answerFiles: [String] = []
    /// Warnings about settings that are valid but probably not intended, each with its place; not compared by `==`.
    package var warnings: [ConfigurationError] = []
    /// The place of each key in the files; not compared by `==`.
    var origin = ConfigurationOrigin()

    /// The pseudonym in Via, Cache-Status and Proxy-Status, which no other daemon in a chain may have.
    package var name: String { givenName ?? DefaultName.made(listen: listen) }

    /// What learned latencies call forward mode.
    package static let forwardName = "forward"

    /// What latencies may be learned of: services, `SERVICE/ENDPOINT`, and forward mode.
    package var learnablePlaces: [String] {
        [Self.forwardName]
            + services.flatMap { service in
                [service.name] + service.endpoints.map { "\(service.name)/\($0.name)" }
            }
    }

    /// The number of endpoints over all services.
    package var endpointCount: Int { services.reduce(0) { $0 + $1.endpoints.count } }

    /// The one line that `drydock check` prints: `ok (3 services, 12 endpoints)`.
    package var summary: String {
        let endpoints = endpointCount
        return
            "ok (\(services.count) service\(services.count == 1 ? "" : "s"), \(endpoints) endpoint\(endpoints == 1 ? "" : "s"))"
    }

    /// The service of that name.
    package func service(named name: String) -> ServiceConfiguration? {
        services.first { $0.name == name }
    }

    package static func == (left: Configuration, right: Configuration) -> Bool {
        left.listen == right.listen && left.admin == right.admin && left.loops == right.loops && left.name == right.name
            && left.clients == right.clients && left.hosts == right.hosts && left.cache == right.cache
            && left.notSecret == right.notSecret
            && left.forward == right.forward
            && left.limits == right.limits && left.shutdown == right.shutdown && left.services == right.services
            && left.offline == right.offline && left.clock == right.clock && left.log == right.log
            && left.journal == right.journal && left.learnedLatencies == right.learnedLatencies
            && left.faultProfiles == right.faultProfiles
            && left.prefetch == right.prefetch && left.purge == right.purge && left.groups == right.groups
    }
}
