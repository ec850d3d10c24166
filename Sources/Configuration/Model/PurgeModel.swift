// What the daemon purges by itself, again and again.

/// A purge on a schedule.
package struct PurgeConfiguration: Sendable, Equatable {
    /// Seconds; nil purges nothing for its age.
    package var olderThan: Int64?
    package var tag: String?
    /// The beginning of URLs.
    package var prefix: String?
    /// The form of whole URLs.
    package var glob: String?
    /// Limits the purge to the stored responses of this service; nil purges all.
    package var service: String?
    /// It becomes stale. Default: false, it is removed.
    package var isSoft: Bool
    package var schedule: ScheduleConfiguration
}
