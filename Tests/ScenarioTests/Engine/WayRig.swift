// One way's daemon, origin and client, and the running of scenarios on them, one after the other.

import Foundation
import TestSupport

/// A line of a script that did not hold.
struct ScenarioFailure: Error, CustomStringConvertible {
    var position: ScriptPosition
    var way: Way
    var message: String

    var description: String { "\(position) [\(way)] \(message)" }
}

/// Used by one thread at a time.
final class WayRig {
    /// Where the clock begins, in seconds ahead of the system's: a Date of the scripts is never so old that it could be
    /// of the system's time, by which a response of an origin that was not moved along is as old as it is there.
    private static let begin: Int64 = 10 * 86_400
    /// The clock is put back when it is so far ahead, in seconds: its limit is 25000 days.
    private static let farAhead: Int64 = 100 * 86_400

    let way: Way
    let origin: OriginSide
    private let clock: StillClock
    private var running: (daemon: Daemon, client: ClientSide, admin: AdminSide)?
    private var count = 0
    /// The daemon's clock is so many seconds ahead.
    private(set) var ahead: Int64 = 0

    init(_ way: Way, _ clock: StillClock) throws {
        self.way = way
        self.clock = clock
        origin = try OriginSide(clock)
    }

    /// Seconds since 1970, as the daemon counts them.
    var now: Int64 { clock.second + ahead }

    /// Runs a scenario; what did not hold, up to the end of the first step that did not.
    func run(_ scenario: Scenario) -> [ScenarioFailure] {
        do {
            if scenario.hasOwnDaemon { running = nil }
            defer { if scenario.hasOwnDaemon { running = nil } }
            let (daemon, client, admin) = try started()
            if ahead > Self.farAhead {
                try admin.resetClock()
                ahead = 0
            }
            if ahead == 0 { try advance(Self.begin, admin) }
            count += 1
            origin.begin("/c\(count)", ahead: ahead)
            let run = ScenarioRun(rig: self, daemon: daemon, client: client, admin: admin, base: "/c\(count)")
            defer { origin.begin("/", ahead: ahead) }
            return run.run(scenario)
        } catch {
            // A daemon that does not answer its admin socket is started anew for the next scenario.
            running = nil
            return [ScenarioFailure(position: scenario.position, way: way, message: "\(error)")]
        }
    }

    private func started() throws -> (daemon: Daemon, client: ClientSide, admin: AdminSide) {
        if let running, running.daemon.process.isRunning { return running }
        let daemon = try clock.daemon(way.settings(origin: origin.url))
        ahead = 0
        let parts = (daemon, ClientSide(port: daemon.port), try AdminSide(daemon))
        running = parts
        return parts
    }

    func advance(_ seconds: Int64, _ admin: AdminSide) throws {
        try admin.advanceClock(seconds)
        ahead += seconds
        let ahead = ahead
        origin.state.update { $0.ahead = ahead }
    }
}

/// The admin API of a daemon under test, over one connection.
final class AdminSide {
    private let daemon: Daemon
    private let client: RawClient

    init(_ daemon: Daemon) throws {
        self.daemon = daemon
        client = try RawClient(unix: daemon.home.adminSocket)
    }

    func advanceClock(_ seconds: Int64) throws { try post("/v1/clock?advance=\(seconds)s") }

    func resetClock() throws { try post("/v1/clock?reset") }

    func setOffline(_ isOffline: Bool) throws { try post("/v1/offline?\(isOffline ? "on" : "off")") }

    /// Returns when the daemon's loop has seen everything that was sent before: the loop takes what is ready in
    /// turns, and each answer here is a turn.
    func waitUntilSeen() throws {
        for _ in 0..<5 { _ = try client.exchange("/healthz") }
    }

    /// Waits until no fetch and no check is under way.
    func waitUntilSettled() throws -> Bool {
        try eventually(ScriptFiles.patience) {
            try waitUntilSeen()
            let metrics = try client.exchange("/metrics").text
            guard metrics.contains("\ndrydock_fills ") else {
                throw TestSupportError.missing("the metric drydock_fills, by which a script settles")
            }
            return metrics.contains("\ndrydock_fills 0\n")
        }
    }

    /// What `drydock explain` prints.
    func explain(_ url: String, fields: [(String, String)]) throws -> ShellResult {
        try Shell.run(
            Daemon.binary(),
            ["explain", url] + fields.flatMap { ["-H", "\($0.0): \($0.1)"] },
            environment: ["DRYDOCK_ADMIN": "unix:\(daemon.home.adminSocket)"]
        )
    }

    private func post(_ target: String) throws {
        let answer = try client.exchange("POST", target, body: [])
        guard answer.status == 200 else {
            throw TestSupportError.failed("the admin API answered \(answer.status) to \(target): \(answer.text)")
        }
    }
}
