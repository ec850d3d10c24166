// The daemon's own log: one line an event on standard error, at a level and in a form that a reload can change.

package import Configuration
import Glibc
package import Logging
import ProxyServer
import Synchronization

/// The level and the form in force, shared by all loggers of a daemon.
///
/// Sendable: both are atomic.
package final class LogSettings: Sendable {
    private let level: Atomic<Int>
    private let json: Atomic<Bool>

    package init(_ log: LogConfiguration) {
        level = Atomic(Self.index(log.level))
        json = Atomic(log.format.ofDaemonLog == .json)
    }

    package var current: Logger.Level { Logger.Level.allCases[level.load(ordering: .relaxed)] }

    /// True if each line is a JSON object.
    package var isJSON: Bool { json.load(ordering: .relaxed) }

    package func set(_ log: LogConfiguration) {
        level.store(Self.index(log.level), ordering: .relaxed)
        json.store(log.format.ofDaemonLog == .json, ordering: .relaxed)
    }

    private static func index(_ level: LogConfiguration.Level) -> Int {
        Logger.Level.allCases.firstIndex { $0.rawValue == level.rawValue } ?? 2
    }
}

/// Writes each line as text to standard error, `2026-01-31T12:00:00Z info daemon: message key=value`, or as JSON:
/// `{"time":"2026-01-31T12:00:00.123Z","level":"info","message":"message","key":"value"}`.
package struct StandardErrorLog: LogHandler {
    private let label: String
    private let settings: LogSettings
    package var metadata: Logger.Metadata = [:]

    package init(label: String, settings: LogSettings) {
        self.label = label
        self.settings = settings
    }

    /// The level that all loggers of the daemon share; setting it on one of them has no effect.
    package var logLevel: Logger.Level {
        get { settings.current }
        set {}
    }

    package subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    package func log(event: LogEvent) {
        var fields = metadata
        fields.merge(event.metadata ?? [:]) { _, new in new }
        var now = timespec()
        clock_gettime(CLOCK_REALTIME, &now)
        let line = DaemonLine(
            time: (Int64(now.tv_sec), Int64(now.tv_nsec) / 1_000_000),
            level: "\(event.level)",
            message: "\(event.message)",
            fields: fields.map { ($0.key, "\($0.value)") }.sorted { $0.0 < $1.0 }
        )
        // Requests of clients can cause many lines: a line below warning is dropped if the reader of standard error is
        // behind, since a loop would wait for it.
        var readiness = pollfd(fd: STDERR_FILENO, events: Int16(POLLOUT), revents: 0)
        if event.level < .warning, poll(&readiness, 1, 0) == 0 { return }
        let bytes = settings.isJSON ? line.json : line.text(label)
        // Each line is written with one call, so that lines of several threads do not mix.
        _ = bytes.withUnsafeBytes { write(STDERR_FILENO, $0.baseAddress, $0.count) }
    }
}

/// One line of the daemon's own log, in both of its forms.
struct DaemonLine {
    /// The time of the line in seconds since 1970, with milliseconds.
    let time: (seconds: Int64, milliseconds: Int64)
    let level: String
    let message: String
    let fields: [(name: String, value: String)]

    /// The line as text, with its LF.
    func text(_ label: String) -> [UInt8] {
        let pairs = fields.map { " \($0.name)=\(Self.escaped($0.value))" }.joined()
        return Array("\(Timestamp.text(time.seconds)) \(level) \(label): \(message)\(pairs)\n".utf8)
    }

    /// The line as a JSON object, with its LF. A field whose name is that of a fixed member gets a `_` appended.
    var json: [UInt8] {
        let digits = String(1000 + time.milliseconds).dropFirst()
        var json = JSONText()
        json.beginObject()
        json.member("time", "\(Timestamp.text(time.seconds).dropLast()).\(digits)Z")
        json.member("level", level)
        json.member("message", message)
        for (name, value) in fields {
            json.name(text: ["time", "level", "message"].contains(name) ? name + "_" : name)
            json.value(value)
        }
        json.endObject()
        return json.bytes + [0x0A]
    }

    /// True for a control character, also beyond ASCII: a terminal would obey it.
    private static func isControl(_ scalar: Unicode.Scalar) -> Bool { scalar.properties.generalCategory == .control }

    /// Writes control characters as `\xHH`: otherwise a line break from a client would begin a line of its own.
    private static func escaped(_ text: String) -> String {
        guard text.unicodeScalars.contains(where: isControl) else { return text }
        return text.unicodeScalars.map { scalar in
            guard isControl(scalar) else { return String(scalar) }
            return "\\x" + String(256 + scalar.value, radix: 16, uppercase: true).dropFirst()
        }.joined()
    }
}

enum Timestamp {
    /// A time as `2026-01-31T12:00:00Z`, from seconds since 1970.
    static func text(_ seconds: Int64) -> String {
        var time = time_t(seconds)
        var parts = tm()
        gmtime_r(&time, &parts)
        var text = [CChar](repeating: 0, count: 32)
        let length = strftime(&text, text.count, "%Y-%m-%dT%H:%M:%SZ", &parts)
        return String(decoding: text.prefix(length).map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
}
