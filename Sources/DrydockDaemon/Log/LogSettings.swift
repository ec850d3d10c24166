// The levels and the form of the daemon's own log: those of the configuration, and those that an operator sets for a time.

package import Configuration
package import Logging
package import Policies
import ProxyServer
import Synchronization

/// The levels and the form in force, shared by all loggers of a daemon.
///
/// The configuration sets a level for each module; an operator's change replaces it until its time is over.
///
/// Sendable: the settings are under a mutex; what each line asks for is atomic, and is stored under the mutex.
package final class LogSettings: Sendable {
    /// A level that an operator has set, in place of the configuration's.
    struct Change: Sendable, Equatable {
        let level: LogConfiguration.Level
        /// The monotonic time in nanoseconds at which the change ends.
        let end: UInt64
    }

    private struct State {
        var configured: LogConfiguration
        var changes: [LogModule: Change] = [:]

        /// The configuration's settings with the operator's levels.
        var inForce: LogConfiguration {
            var log = configured
            log.modules.merge(changes.mapValues(\.level)) { _, new in new }
            return log
        }

        /// The levels in force, as ``levels`` has them.
        var levels: UInt64 {
            let log = inForce
            return LogModule.allCases.reduce(0) { levels, module in
                let level = Logger.Level(log.level(of: module))
                let index = Logger.Level.allCases.firstIndex(of: level) ?? 0
                return levels | UInt64(index) << LogSettings.shift(of: module)
            }
        }
    }

    private let state: Mutex<State>
    /// The position of each module's level among all levels, in four bits for each module.
    private let levels: Atomic<UInt64>
    private let json: Atomic<Bool>
    /// True if each line begins with its syslog priority, which the journal takes off.
    package let hasPriorities: Bool

    package init(_ log: LogConfiguration, hasPriorities: Bool = false) {
        let first = State(configured: log)
        state = Mutex(first)
        levels = Atomic(first.levels)
        json = Atomic(log.format.ofDaemonLog == .json)
        self.hasPriorities = hasPriorities
    }

    /// True if each line is a JSON object.
    package var isJSON: Bool { json.load(ordering: .relaxed) }

    package func level(of module: LogModule) -> Logger.Level { level(at: Self.shift(of: module)) }

    func level(at shift: UInt64) -> Logger.Level {
        Logger.Level.allCases[Int(levels.load(ordering: .relaxed) >> shift & 0xF)]
    }

    static func shift(of module: LogModule) -> UInt64 { UInt64(module.index) * 4 }

    /// The settings in force: the configuration's, with the levels that an operator has set.
    package var inForce: LogConfiguration { state.withLock { $0.inForce } }

    /// The operator's changes that hold.
    var changes: [LogModule: Change] { state.withLock { $0.changes } }

    /// The configuration's level of a module.
    func configured(_ module: LogModule) -> LogConfiguration.Level {
        state.withLock { $0.configured.level(of: module) }
    }

    /// The settings of another configuration as they would be in force, with the levels that an operator has set.
    func changed(_ log: LogConfiguration) -> LogConfiguration {
        var other = state.withLock { $0 }
        other.configured = log
        return other.inForce
    }

    /// Puts the settings of a configuration in force; the operator's changes go on until their time is over.
    package func set(_ log: LogConfiguration) { update { $0.configured = log } }

    /// Replaces the operator's changes of these modules.
    func change(_ changes: [LogModule: Change]) { update { $0.changes.merge(changes) { _, new in new } } }

    /// Ends the operator's changes whose time is over at `now`, and returns their modules in order.
    func endChanges(at now: UInt64) -> [LogModule] {
        update { state in
            let ended = LogModule.allCases.filter { module in state.changes[module].map { $0.end <= now } ?? false }
            for module in ended { state.changes[module] = nil }
            return ended
        }
    }

    private func update<Result: Sendable>(_ change: (inout State) -> Result) -> Result {
        state.withLock { state in
            let result = change(&state)
            levels.store(state.levels, ordering: .relaxed)
            json.store(state.configured.format.ofDaemonLog == .json, ordering: .relaxed)
            return result
        }
    }
}

extension Logger.Level {
    fileprivate init(_ level: LogConfiguration.Level) {
        self =
            switch level {
            case .trace: .trace
            case .debug: .debug
            case .info: .info
            case .notice: .notice
            case .warning: .warning
            case .error: .error
            case .critical: .critical
            }
    }
}
