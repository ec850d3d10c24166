// What a configuration wants done again and again, begun and ended as configurations come and go.

import Configuration
import EventLoop
import ProxyServer
import Synchronization

/// Sendable: the running schedules protect themselves; whether they have ended is under a mutex.
final class DaemonSchedules: Sendable {
    private let schedules: Schedules
    private let purges: PurgeService
    private let jobs: JobCenter
    private let groups: GroupService
    private let latencies: LatencyKeeper
    private let isOver = Mutex(false)

    init(on loop: EventLoop, purges: PurgeService, jobs: JobCenter, groups: GroupService, latencies: LatencyKeeper) {
        schedules = Schedules(on: loop)
        self.purges = purges
        self.jobs = jobs
        self.groups = groups
        self.latencies = latencies
    }

    /// Purges first: a prefetch that begins at the same moment then fills what a purge has emptied.
    func plans(_ configuration: Configuration) -> [Schedules.Plan] {
        purges.schedules(configuration) + jobs.schedules(configuration) + groups.schedules(configuration)
            + latencies.schedules(!configuration.learnedPlaces.isEmpty)
    }

    /// Ends the schedules that a configuration does not have, and begins those that it adds.
    /// After ``stop()``, none begins any more: a reload may come to its end while the daemon does.
    func update(_ configuration: Configuration) {
        let plans = plans(configuration)
        if !isOver.withLock({ $0 }) { schedules.update(plans) }
    }

    /// Ends all of them, for good.
    func stop() {
        isOver.withLock { $0 = true }
        schedules.update([])
    }
}
