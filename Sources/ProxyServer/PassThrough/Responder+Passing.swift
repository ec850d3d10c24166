// Heads that are passed on as they came: the origin's lines as they are, and two lines of this proxy's behind them.

import DownloadCore
import HTTPCaching
import HTTPWire
import ServiceCore

extension Responder {
    /// Sends the head of an answer whose lines need no change, as ``begin(_:_:_:_:hasBody:)`` would. False where something in it has to
    /// be changed: nothing was sent then.
    func passHead(
        _ head: ResponseHead,
        _ framing: BodyFraming,
        _ way: Way,
        originTime: UInt64,
        hasContent: Bool,
        _ exchange: Exchange
    ) -> Bool {
        guard case .length(let length) = framing, head.passesUnchanged(length) else { return false }
        let lines = passedLines(way, head)
        exchange.outcome.cacheStatus = lines.cacheStatus
        exchange.outcome.upstreamStatus = head.status
        exchange.outcome.upstreamTime = originTime
        exchange.outcome.cache = lines.cache
        return exchange.passHead(head, length: length, lines, hasContent: hasContent)
    }

    private func passedLines(_ way: Way, _ head: ResponseHead) -> PassedLines {
        if let lastPassed, lastPassed.status == head.status, lastPassed.reason == head.reason, lastPassed.way == way {
            return lastPassed
        }
        let said = core.status(of: way, forwardStatus: head.status)
        let value = said.value
        var fields = Fields()
        fields.append(.via, plan.via)
        fields.append(.cacheStatus, value)
        var bytes: [UInt8] = []
        Serializer.write(fields, into: &bytes)
        let lines = PassedLines(way: way, head, cacheStatus: value, cache: CacheOutcome(said), bytes: bytes)
        lastPassed = lines
        return lines
    }
}

extension ResponseHead {
    /// Fields that are changed on the way, or that Connection and its kin need a closer look at.
    private static let changed = HopByHop.always.subtracting(FieldSet(.connection, .keepAlive))
        .union(FieldSet(.via, .location, .contentLocation, .setCookie, .clearSiteData, .serviceWorkerAllowed))

    /// Whether the answer to a GET with a body of `length` bytes can go on as its origin sent it, but for Connection and Keep-Alive.
    fileprivate func passesUnchanged(_ length: UInt64) -> Bool {
        guard version == .http11, 200...599 ~= status, status != 204, status != 304, !reason.isEmpty,
            fields.present.isDisjoint(with: Self.changed), fields.contains(.date), HopByHop.saysKeepAliveOnly(fields),
            !HopByHop.hasAuthenticationInfo(fields, or: "Refresh")
        else { return false }
        return fields.spells(.contentLength, length)
    }
}
