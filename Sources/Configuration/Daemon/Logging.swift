// The daemon's own log, the access log, and the journal of requests.

package import Policies

extension KeyTable {
    static let log = SectionDescriptor(
        name: "log",
        keys: [
            KeyDescriptor(
                "level",
                .choice(LogConfiguration.Level.allCases.map(\.rawValue)),
                default: "info",
                "The least severe message of the daemon's own log; debug tells what becomes of each request."
            ),
            KeyDescriptor(
                "modules",
                .map(.logModule, .choice(LogConfiguration.Level.allCases.map(\.rawValue))),
                "The levels of single modules of the daemon's own log, in place of level: \(LogModule.names)."
            ),
            KeyDescriptor(
                "access",
                .logTarget,
                default: "stdout",
                "Where the access log is written: stdout, stderr, off or a path."
            ),
            KeyDescriptor(
                "format",
                .choice(LogConfiguration.Format.allCases.map(\.rawValue)),
                default: "auto",
                "The format of the logs: auto is JSON for the access log and text for the daemon's own; json is JSON for both."
            ),
            KeyDescriptor(
                "request_id",
                .boolean,
                default: "true",
                "Whether the ids of requests that JSON and debug lines have go on to origins, in X-Request-Id."
            ),
        ]
    )
}

/// The settings of the daemon's own log and of the access log.
package struct LogConfiguration: Sendable, Equatable {
    /// The levels of swift-log, least severe first.
    package enum Level: String, Sendable, CaseIterable { case trace, debug, info, notice, warning, error, critical }
    /// The target of the access log.
    package enum Access: Sendable, Equatable {
        case stdout
        case stderr
        case off
        /// The absolute path of a file to which lines are appended.
        case file(path: String)
    }
    /// The format of log lines.
    package enum Format: String, Sendable, CaseIterable {
        /// JSON in the access log, which programs read, and text in the daemon's own log, which people read.
        case auto
        /// JSON in both logs.
        case json
        /// The format of Apache and nginx in the access log, and text in the daemon's own log.
        case combined
        case text

        /// The format of one line.
        package enum Line: Sendable { case json, combined, text }

        package var ofAccessLog: Line {
            switch self {
            case .auto, .json: .json
            case .combined: .combined
            case .text: .text
            }
        }
        package var ofDaemonLog: Line { self == .json ? .json : .text }
    }

    package var level: Level
    /// The levels of the modules that have one of their own. Default: none.
    package var modules: [LogModule: Level]
    package var access: Access
    package var format: Format
    /// Whether the request ids of log lines are sent to origins.
    package var requestID: Bool
}

extension LogConfiguration {
    /// The level of a module: its own, or else that of the whole log.
    package func level(of module: LogModule) -> Level { modules[module] ?? level }

    /// True if lines about single requests are written.
    package var tracesRequests: Bool { LogModule.ofRequests.contains { [.trace, .debug].contains(level(of: $0)) } }

    package init() { self.init(SectionReader(nothingOf: KeyTable.log)) }

    init(_ reader: SectionReader) {
        level = reader.choice(always: "level")
        modules = [:]
        for entry in reader.map("modules") {
            guard case .leaf(let leaf) = entry.value.content, case .text(let word) = leaf.scalar,
                let module = LogModule(rawValue: entry.key)
            else { continue }
            modules[module] = Level(rawValue: word)
        }
        format = reader.choice(always: "format")
        requestID = reader.bool("request_id")
        access =
            switch reader.text(always: "access") {
            case "stderr": .stderr
            case "off": .off
            case let path where path.hasPrefix("/"): .file(path: path)
            default: .stdout
            }
    }
}

extension Resolver {
    mutating func log(_ reader: SectionReader) -> LogConfiguration {
        let result = LogConfiguration(reader)
        if case .file(let path) = result.access, let problem = FileChecks.canBeFile(path) {
            fail(position(reader, "access"), file: "'log.access' \(problem)")
        }
        return result
    }
}

extension KeyTable {
    static let journal = SectionDescriptor(
        name: "journal",
        keys: [
            KeyDescriptor(
                "size",
                .word("off", or: .size),
                default: "off",
                "How large the journal may be: the oldest entries make room; off keeps none, and then no request pays for it."
            ),
            KeyDescriptor(
                "bodies",
                .word("off", or: .size),
                default: "4KiB",
                "How much of the body of each request it has; off: nothing."
            ),
            KeyDescriptor(
                "redact",
                .list(.text(.token)),
                default: "[Authorization, Proxy-Authorization, Cookie, Set-Cookie, X-Api-Key]",
                "The request fields whose values it does not have."
            ),
        ]
    )
}

/// The settings of the journal, for 'drydock journal' and 'drydock verify'.
package struct JournalConfiguration: Sendable, Equatable {
    /// The most bytes of all entries; nil for no journal. Default: nil.
    package var size: Int?
    /// The most bytes of each request's body that are kept, at most 64 KiB; nil for none. Default: 4 KiB.
    package var bodies: Int?
    /// The names of fields whose values are hidden.
    package var redact: [String]

    /// The most bytes of one body that a configuration may ask for.
    static let longestBody = 64 << 10
}

extension JournalConfiguration {
    package init() { self.init(SectionReader(nothingOf: KeyTable.journal)) }

    init(_ reader: SectionReader) {
        size = reader.bytes("size")
        bodies = reader.bytes("bodies")
        redact = reader.texts("redact")
    }
}

extension Resolver {
    mutating func journal(_ reader: SectionReader) -> JournalConfiguration {
        let result = JournalConfiguration(reader)
        if let bodies = result.bodies, bodies > JournalConfiguration.longestBody,
            let position = reader.position("bodies")
        {
            fail(position, "'journal.bodies' is more than the journal takes of one body; write 64KiB or less, or off")
        }
        return result
    }
}
