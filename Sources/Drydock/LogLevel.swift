// The daemon's own log: one line an event on standard error, at a level that a reload can change.

package import Configuration
internal import Glibc
package import Logging
internal import Synchronization

/// The level in force, shared by all loggers of a daemon.
///
/// Sendable: the level is atomic.
package final class LogLevel: Sendable {
    private let value: Atomic<Int>

    package init(_ level: LogConfiguration.Level) { value = Atomic(Self.index(level)) }

    package var current: Logger.Level { Logger.Level.allCases[value.load(ordering: .relaxed)] }

    package func set(_ level: LogConfiguration.Level) { value.store(Self.index(level), ordering: .relaxed) }

    private static func index(_ level: LogConfiguration.Level) -> Int {
        Logger.Level.allCases.firstIndex { $0.rawValue == level.rawValue } ?? 2
    }
}

/// Writes `2026-01-31T12:00:00Z info daemon: message key=value` to standard error.
package struct StandardErrorLog: LogHandler {
    private let label: String
    private let level: LogLevel
    package var metadata: Logger.Metadata = [:]

    package init(label: String, level: LogLevel) {
        self.label = label
        self.level = level
    }

    /// The shared level; it is set for all at once.
    package var logLevel: Logger.Level {
        get { level.current }
        set {}
    }

    package subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    package func log(event: LogEvent) {
        var fields = metadata
        fields.merge(event.metadata ?? [:]) { _, new in new }
        let pairs = fields.sorted { $0.key < $1.key }.map { " \($0.key)=\($0.value)" }.joined()
        // One write a line, so that lines of several threads do not mix.
        let line = "\(Timestamp.text(Int64(time(nil)))) \(event.level) \(label): \(event.message)\(pairs)\n"
        _ = line.utf8CString.withUnsafeBytes { write(STDERR_FILENO, $0.baseAddress, $0.count - 1) }
    }
}
