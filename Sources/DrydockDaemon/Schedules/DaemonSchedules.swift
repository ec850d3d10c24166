// The schedules of a daemon: purges, prefetches, groups and saves that a configuration asks for.

import Configuration
import EventLoop
import Plans
import ProxyServer
import Synchronization

/// Begins and ends schedules as configurations come into force.
///
/// Sendable: the running schedules protect themselves; the flag of the end is under a mutex.
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

    /// The schedules of a configuration. Purges are first, so that a prefetch of the same moment fills what a purge has
    /// removed.
    func plans(_ configuration: Configuration) -> [Schedules.Plan] {
        purges.schedules(configuration) + jobs.schedules(configuration) + groups.schedules(configuration)
            + latencies.schedules(!configuration.learnedLabels.isEmpty)
    }

    /// Ends the schedules that a configuration does not have, and begins those that it adds. After ``stop()`` none
    /// begins: a reload may finish while the daemon ends.
    func update(_ configuration: Configuration) {
        let plans = plans(configuration)
        if !isOver.withLock({ $0 }) { schedules.update(plans) }
    }

    /// Ends all schedules for good.
    func stop() {
        isOver.withLock { $0 = true }
        schedules.update([])
    }
}
