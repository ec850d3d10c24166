// Forwards heads unchanged: the origin's lines as they are, followed by two lines of this proxy.

import DownloadCore
import HTTPCaching
import HTTPWire
import ServiceCore

extension Responder {
    /// Sends the head of an answer whose lines need no change, as ``begin(_:_:_:_:hasBody:)`` would. False, with
    /// nothing sent, if a line has to be changed.
    func forwardHead(
        _ head: ResponseHead,
        _ framing: BodyFraming,
        _ forwardReason: ForwardReason,
        originTime: UInt64,
        hasContent: Bool,
        _ exchange: Exchange
    ) -> Bool {
        let isSecure = exchange.client.connection.security == .secure
        guard case .length(let length) = framing, head.passesUnchanged(length, isSecure: isSecure) else { return false }
        let lines = forwardedLines(forwardReason, head)
        exchange.outcome.cacheStatus = lines.cacheStatus
        exchange.outcome.upstreamStatus = head.status
        exchange.outcome.upstreamTime = originTime
        exchange.outcome.cache = lines.cache
        return exchange.forwardHead(head, length: length, lines, hasContent: hasContent)
    }

    private func forwardedLines(_ forwardReason: ForwardReason, _ head: ResponseHead) -> ForwardedLines {
        if let lastPassed, lastPassed.status == head.status, lastPassed.reason == head.reason,
            lastPassed.forwardReason == forwardReason
        {
            return lastPassed
        }
        let said = core.answers.status(of: forwardReason, forwardStatus: head.status)
        let value = said.value
        var fields = Fields()
        fields.append(.via, plan.via)
        fields.append(.cacheStatus, value)
        var bytes: [UInt8] = []
        Serializer.write(fields, into: &bytes)
        let lines = ForwardedLines(
            forwardReason: forwardReason,
            head,
            cacheStatus: value,
            cache: CacheOutcome(said),
            bytes: bytes
        )
        lastPassed = lines
        return lines
    }
}

extension ResponseHead {
    /// Fields that must be changed when a head is forwarded, and hop-by-hop fields other than Connection and
    /// Keep-Alive, which the waiting path handles.
    private static let changed = HopByHop.always.subtracting(FieldSet(.connection, .keepAlive))
        .union(FieldSet(.via, .location, .contentLocation, .setCookie, .clearSiteData, .serviceWorkerAllowed))

    /// Whether the answer to a GET with a body of `length` bytes can go on as its origin sent it, but for
    /// Connection and Keep-Alive.
    /// - Parameter isSecure: whether the client speaks TLS; over plain HTTP, Strict-Transport-Security means nothing
    ///   (RFC 6797 section 8.1).
    fileprivate func passesUnchanged(_ length: UInt64, isSecure: Bool) -> Bool {
        guard version == .http11, 200...599 ~= status, status != 204, status != 304, !reason.isEmpty,
            fields.present.isDisjoint(with: Self.changed), fields.contains(.date), HopByHop.saysKeepAliveOnly(fields),
            !HopByHop.hasAuthenticationInfo(fields, or: "Refresh"),
            !isSecure || !fields.contains(.strictTransportSecurity)
        else { return false }
        return fields.hasOnly(.contentLength, equalTo: length)
    }
}
