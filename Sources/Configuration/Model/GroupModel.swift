// Groups of calls that the daemon makes when it is told to, or on a schedule.

package import Policies

/// One call of a group; endpoints are resolved to their method and path.
package struct GroupCallConfiguration: Sendable, Equatable {
    /// The name of a service that there is.
    package var service: String
    package var method: String
    /// Below the service, with its slash.
    package var path: PlaceholderText
    package var query: [NamedText] = []
    package var headers: [NamedText] = []
    package var body: PlaceholderText?
    /// By name, what later calls may use.
    package var take: [String: TakenPath] = [:]
    package var condition: ValueCondition?

    /// A query item or a field.
    package struct NamedText: Sendable, Equatable {
        package var name: String
        package var value: PlaceholderText
    }
}

/// A group of calls.
package struct GroupConfiguration: Sendable, Equatable {
    /// No other group has it.
    package var name: String
    /// Default: serial.
    package var mode: GroupMode
    /// Default: stop.
    package var onError: GroupFailurePolicy
    /// Nil runs it when it is told to, and not otherwise.
    package var schedule: ScheduleConfiguration?
    /// In the order of the file; it may have none.
    package var calls: [GroupCallConfiguration] = []
}
