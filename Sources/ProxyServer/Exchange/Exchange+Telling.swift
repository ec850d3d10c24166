// What an exchange tells besides its answer: problem documents, the daemon's log, its trace, and its id to the origin.

import EventLoop
internal import HTTPWire
import ServiceCore

extension Exchange {
    /// Answers with a problem document; cuts the answer where a head has already been sent.
    package func problem(_ problem: Problem) {
        guard !isHeadSent else { return fail() }
        let body = problem.body
        var head = problem.head(name: context.settings.name)
        if outcome.error.isEmpty { outcome.error = problem.detail }
        // Whoever tells of the error can name its line.
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
        // Addresses that name servers gave are not told to clients, and stand here.
        facts.append(("error", outcome.error.isEmpty ? reason : outcome.error))
        context.daemonLog.tell(trouble, facts)
    }

    /// Says the id in the fields that go to an origin, where it is passed on: in the place of one of the client's that is not taken.
    func identify(_ fields: inout Fields) {
        guard context.passesIDs else { return }
        if case .taken = requestID, fields.contains(RequestID.fieldName) { return }
        fields.set(RequestID.fieldName, requestID.text)
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
