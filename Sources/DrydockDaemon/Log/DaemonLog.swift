// The daemon's own log: one line an event on standard error.

import Glibc
package import Logging
import Policies
import ProxyServer

/// Writes each line as text to standard error, `2026-01-31T12:00:00Z info daemon: message key=value`, or as JSON:
/// `{"time":"2026-01-31T12:00:00.123Z","level":"info","message":"message","key":"value"}`.
package struct StandardErrorLog: LogHandler {
    private let label: String
    private let settings: LogSettings
    /// The shift at which ``settings`` has the level of the module.
    private var shift = LogSettings.shift(of: .daemon)
    package var metadata: Logger.Metadata = [:]

    package init(label: String, settings: LogSettings) {
        self.label = label
        self.settings = settings
    }

    /// Whether standard error is the stream to the journal of systemd that `JOURNAL_STREAM` names by its device and its
    /// inode, and not one to which it was redirected since (systemd.exec(5)).
    package static func isRead(byJournalOf environment: [String: String]) -> Bool {
        var status = stat()
        guard let named = environment["JOURNAL_STREAM"], fstat(STDERR_FILENO, &status) == 0 else { return false }
        return named == "\(status.st_dev):\(status.st_ino)"
    }

    /// The text of a failure for standard error: in the journal each of its lines has the priority of an error.
    package static func failure(_ text: String, _ environment: [String: String]) -> String {
        guard isRead(byJournalOf: environment) else { return text }
        let lines = DaemonLine.prioritized(Array(text.utf8), Logger.Level.error.priority)
        return String(decoding: lines.dropLast(), as: UTF8.self)
    }

    /// The level that all loggers of the module share; setting it on one of them has no effect.
    package var logLevel: Logger.Level {
        get { settings.level(at: shift) }
        set {}
    }

    /// The metadata under a name; that of ``LogModule/field`` names the module whose level holds.
    package subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set {
            metadata[key] = newValue
            guard key == LogModule.field, case .string(let name)? = newValue, let module = LogModule(rawValue: name)
            else { return }
            shift = LogSettings.shift(of: module)
        }
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
        var bytes = settings.isJSON ? line.json : line.text(label)
        if settings.hasPriorities { bytes = DaemonLine.prioritized(bytes, event.level.priority) }
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

    /// The text with `<N>` before each of its lines: the journal reads a priority at the beginning of a line.
    static func prioritized(_ text: [UInt8], _ priority: Int) -> [UInt8] {
        let mark = Array("<\(priority)>".utf8)
        return text.split(separator: 0x0A).flatMap { mark + $0 + [0x0A] }
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

extension Logger.Level {
    /// The priority of syslog(3).
    fileprivate var priority: Int {
        switch self {
        case .trace, .debug: 7
        case .info: 6
        case .notice: 5
        case .warning: 4
        case .error: 3
        case .critical: 2
        }
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
