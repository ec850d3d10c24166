// What happens to a connection that waits too long: checked by one sweep per loop, nothing per request.

import EventLoop
import HTTPWire

extension Connection {
    func sweep(now: UInt64, elapsed: UInt64) {
        // The coarse clock, which `waitingSince` is read from, may be ahead by nothing and behind by a tick.
        let waited = now > waitingSince ? now - waitingSince : 0
        let settings = context.settings
        switch phase {
        case .waiting:
            // A lone empty line, which some clients send after a body, begins no head.
            if input.count > 2, hasHeadBegun {
                if waited > settings.headTimeout { headIsLate() }
            } else if waited > settings.idle {
                close()
            }
        case .answering:
            // Nothing is watched for then.
            if sawEnd, transport.isHungUp {
                clientLeft()
            } else if isBlocked, waited > settings.idle {
                writeIsStuck()
            } else if let body = current?.knownBody, body.isLate(elapsed: elapsed, settings) {
                bodyIsLate()
            }
        case .flushing:
            if waited > settings.idle { writeIsStuck() }
        case .draining:
            if waited > settings.bodyGrace { linger() }
        case .lingering:
            if waited > settings.linger { close() }
        case .taken, .closed: break
        }
    }

    private func headIsLate() {
        context.counters.add(.errorTimeout)
        refuse(
            Problem(
                status: 408,
                title: "Request timeout",
                detail: "the head did not come within \(context.settings.headTimeout / 1_000_000) ms; send it at once",
                proxyError: "http_request_error"
            )
        )
    }

    /// The body comes too slowly: the handler learns of it as a failed body and may still answer.
    private func bodyIsLate() {
        context.counters.add(.errorTimeout)
        keepAlive = false
        current?.knownBody?.fail(.tooSlow)
    }

    private func writeIsStuck() {
        context.counters.add(.errorTimeout)
        cutAnswer(resets: true)
    }
}
