// The hot path of demo mode: an answer without latency, from bytes that were made with the plan.

import CacheStore
import DemoMode
import EventLoop
import HTTPWire
import ServiceCore

extension HotState {
    /// Draws and answers as the waiting path does.
    func send(_ found: HotDemo, route: HotRoute, through sender: any HotSender) -> HotAnswer {
        guard found.rest.count + 64 <= Self.keyCapacity else { return .notMine }
        var lines = longLines
        lines.append("GET ")
        lines.append(found.rest)
        let (outcome, name) = found.answer.draw(lines.bytes, found.ordinals)
        lines = longLines
        lines.append(hexadecimal: name.key.digest)
        lines.append(UInt8(ascii: "."))
        lines.append(Int64(truncatingIfNeeded: name.ordinal &+ 1))
        lines.append("\r\n")
        if !outcome.hasDate {
            lines.append("Date: ")
            lines.append(utf8: sender.dateText)
            lines.append("\r\n")
        }
        return outcome.head.withUnsafeBytes { head in
            sender.sendAtOnce(
                prepared: head,
                dynamic: lines.bytes,
                body: .memory(outcome.body.bytes),
                owner: .passUnretained(outcome.body),
                record: HotRecord(status: outcome.status, route: route, cache: .demo)
            )
        }
    }
}
