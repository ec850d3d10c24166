// What an exchange tells besides its answer: problem documents, the daemon's log, its trace, and its id to the origin.

import EventLoop
import HTTPWire
import ServiceCore

extension Exchange {
    /// Answers with a problem document; cuts the answer where a head has already been sent.
    package func problem(_ problem: Problem) {
        guard !isHeadSent else { return fail() }
        let body = problem.body
        var head = problem.head(name: context.settings.name)
        if outcome.error.isEmpty { outcome.error = problem.detail }
        // A client that reports the problem can then name the request's line in the log.
        if listener.role == .proxy, trace != nil || context.log?.needsID == true {
            head.fields.set(RequestID.fieldName, requestID.text)
        }
        sendHead(head, body: .known(Int64(body.count)))
        queue(body)
        finish()
    }

    /// Tells the daemon's log of something that was refused, or has failed, and why.
    func tell(_ trouble: ClientTrouble, _ reason: String) {
        var facts = [
            ("client", peer.isUnix ? "unix" : peer.host),
            ("target", LoggedReferer.text(request.target, context.secrets)),
        ]
        facts.append(("service", outcome.route))
        // The log has the addresses that name servers gave; problem documents leave them out.
        facts.append(("error", outcome.error.isEmpty ? reason : outcome.error))
        context.daemonLog.tell(trouble, facts)
    }

    /// Puts the request id into the fields for an origin, if ids are forwarded; it replaces an id of the
    /// client that may not be used.
    func identify(_ fields: inout Fields) {
        guard context.passesIDs else { return }
        if case .taken = requestID, fields.contains(RequestID.fieldName) { return }
        fields.set(RequestID.fieldName, requestID.text)
    }

    /// Logs the bodies of the request and of its answer.
    /// - Parameter head: of the answer; nil where a problem document has answered.
    func tell(_ bodies: BodyLog, _ match: RouteMatch, _ head: ResponseHead?) {
        let names = [("service", match.route.label), ("endpoint", match.endpoint.name)]
        let target = [("target", LoggedReferer.text(request.target, context.secrets))]
        let status = [("status", status.map { "\($0)" } ?? "")]
        context.daemonLog.tellBodies(
            requestID.text,
            names + target + status + bodies.facts(request, head, context.contents)
        )
    }

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
