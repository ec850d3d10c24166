// The last line of what becomes of one request, in the daemon's log at debug level.

import ServiceCore

extension RequestTrace {
    /// Says how an answer ended; the last line about a request.
    func tellEnd(_ entry: AccessEntry) {
        say(
            "answered",
            [
                ("status", "\(entry.status)"), ("bytes", "\(entry.bytes)"), ("service", entry.route),
                ("endpoint", entry.endpoint), ("upstream_status", entry.upstreamStatus.map { "\($0)" } ?? ""),
                ("aborted", entry.isAborted ? "true" : ""), ("error", entry.error),
            ]
        )
    }
}
