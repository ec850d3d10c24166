// What the daemon does by itself, again and again: batches that it downloads ahead of the clients.

package import Policies

/// When something is done.
package struct ScheduleConfiguration: Sendable, Equatable {
    /// Nanoseconds from turn to turn; at least 1 s.
    package var every: UInt64
    /// The first turn comes as soon as the configuration is in force. Default: false, after `every`.
    package var atStart: Bool
}

/// A batch that is downloaded on a schedule.
package struct PrefetchConfiguration: Sendable, Equatable {
    /// What logs and `drydock jobs` call it; no other has it.
    package var name: String
    /// As clients would ask: paths, or absolute URLs.
    package var urls: [String]
    /// The absolute path of a list that is read at every turn; its items come after `urls`. Nil is none.
    package var file: String?
    package var schedule: ScheduleConfiguration
    /// Items under way at a time. Default: 10.
    package var concurrency: Int
    /// What a failure means for the other items. Default: they continue.
    package var onError: BatchFailurePolicy
    /// Fetches from the origin even if a stored response is fresh. Default: false.
    package var force: Bool
}
