// The four ways in which every scenario runs.

import TestSupport

/// How the client reaches the daemon, and how the daemon asks whether a stored response still holds.
struct Way: Sendable, Hashable, CustomStringConvertible {
    enum Mode: String, Sendable, CaseIterable {
        case reverse, forward
    }

    enum Check: String, Sendable, CaseIterable {
        case head, conditional
    }

    var mode: Mode
    var check: Check

    static let all = Mode.allCases.flatMap { mode in Check.allCases.map { Way(mode: mode, check: $0) } }

    var description: String { "\(mode.rawValue) \(check.rawValue)" }

    /// The configuration of the daemon that stands in front of `origin`.
    func settings(origin: String) -> DaemonSettings {
        var settings = DaemonSettings("clock: { movable: true }\n")
        // On one loop whatever was sent before is seen before: the engine need not wait to know that it was.
        settings.loops = "1"
        switch mode {
        case .reverse:
            settings.rest += "services:\n" + service("s", origin, "cache: { revalidate: \(check.rawValue) }")
        case .forward:
            settings.rest += "forward: { enabled: true, allow: [\"127.0.0.1\", \"localhost\"], "
            settings.rest += "cache: { revalidate: \(check.rawValue) } }\n"
        }
        return settings
    }

    /// What the client asks for, for a path that the origin sees as `path`.
    func target(_ path: String, origin: String) -> String {
        if path == "*" { return path }
        return mode == .reverse ? "/s\(path)" : "http://\(origin)\(path)"
    }
}
