// What a configuration wants done again and again, begun and ended as configurations come and go.

import Configuration
import EventLoop

/// Sendable: the running schedules protect themselves.
final class DaemonSchedules: Sendable {
    private let schedules: Schedules
    private let purges: PurgeService
    private let jobs: JobCenter

    init(on loop: EventLoop, purges: PurgeService, jobs: JobCenter) {
        schedules = Schedules(on: loop)
        self.purges = purges
        self.jobs = jobs
    }

    /// Purges first: a prefetch that begins at the same moment then fills what a purge has emptied.
    func plans(_ configuration: Configuration) -> [Schedules.Plan] {
        purges.schedules(configuration) + jobs.schedules(configuration)
    }

    /// Ends the schedules that a configuration does not have, and begins those that it adds.
    func update(_ configuration: Configuration) { schedules.update(plans(configuration)) }

    /// Ends all of them.
    func stop() { schedules.update([]) }
}
