// What becomes of one request, line by line, in the daemon's log at debug level: the first line and the last.

import EventLoop
import HTTPWire
import ServiceCore

extension Exchange {
    /// Begins the lines about this request.
    func beginTrace() {
        let (log, id) = (context.daemonLog, requestID.text)
        let trace = RequestTrace { log.debug($0, id, $1) }
        self.trace = trace
        trace.say(
            "request",
            [
                ("client", peer.isUnix ? "unix" : peer.host), ("method", request.method.name),
                ("target", LoggedReferer.text(request.target, context.secrets)),
                ("host", request.fields.first(.host) ?? ""),
            ]
        )
    }
}

extension RequestTrace {
    /// Says how an answer ended; the last line about a request.
    func tellEnd(_ entry: AccessEntry) {
        say(
            "answered",
            [
                ("status", "\(entry.status)"), ("bytes", "\(entry.bytes)"), ("service", entry.route),
                ("upstream_status", entry.upstreamStatus.map { "\($0)" } ?? ""),
                ("aborted", entry.isAborted ? "true" : ""), ("error", entry.error),
            ]
        )
    }
}
