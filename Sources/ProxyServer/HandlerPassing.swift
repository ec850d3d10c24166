// Heads that are passed on as they came: the origin's lines as they are, and two lines of this proxy's behind them.

import DownloadCore
import HTTPCaching
import HTTPWire

/// The lines that this proxy adds to a head; many answers in a row have the same.
///
/// An object, since it is copied with each of them.
final class PassedLines: Sendable {
    let way: Way
    let status: Int
    /// The value of Cache-Status.
    let cacheStatus: String
    /// The same for the counters.
    let cache: CacheOutcome
    /// Via and Cache-Status as they go on the wire.
    let bytes: [UInt8]

    init(way: Way, status: Int, cacheStatus: String, cache: CacheOutcome, bytes: [UInt8]) {
        self.way = way
        self.status = status
        self.cacheStatus = cacheStatus
        self.cache = cache
        self.bytes = bytes
    }
}

extension ProxyHandler {
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
        let lines = passedLines(way, head.status)
        exchange.outcome.cacheStatus = lines.cacheStatus
        exchange.outcome.upstreamStatus = head.status
        exchange.outcome.upstreamTime = originTime
        exchange.outcome.cache = lines.cache
        return exchange.passHead(head, length: length, adding: lines.bytes, hasContent: hasContent)
    }

    private func passedLines(_ way: Way, _ status: Int) -> PassedLines {
        if let lastPassed, lastPassed.status == status, lastPassed.way == way { return lastPassed }
        let said = core.status(of: way, forwardStatus: status)
        let value = said.value
        var fields = Fields()
        fields.append(.via, plan.via)
        fields.append(.cacheStatus, value)
        var bytes: [UInt8] = []
        Serializer.write(fields, into: &bytes)
        let lines = PassedLines(way: way, status: status, cacheStatus: value, cache: CacheOutcome(said), bytes: bytes)
        lastPassed = lines
        return lines
    }
}

extension ResponseHead {
    /// Fields that are changed on the way, or that Connection and its kin need a closer look at.
    private static let changed = HopByHop.always.subtracting(FieldSet(.connection, .keepAlive))
        .union(FieldSet(.via, .location, .contentLocation, .setCookie))

    /// Whether the answer to a GET with a body of `length` bytes can go on as its origin sent it, but for Connection and Keep-Alive.
    fileprivate func passesUnchanged(_ length: UInt64) -> Bool {
        guard version == .http11, 200...599 ~= status, status != 204, status != 304, !reason.isEmpty,
            fields.present.isDisjoint(with: Self.changed), fields.contains(.date), HopByHop.saysKeepAliveOnly(fields)
        else { return false }
        var lengths = 0
        var isPlain = true
        fields.forEachLine { name, value, known in
            switch known {
            case .contentLength:
                lengths += 1
                // Both as they would be written here.
                isPlain = isPlain && value.spells(length) && name.holdsSame(as: known.nameBytes)
            case .other where name.equalsIgnoringCase("Proxy-Authentication-Info"): isPlain = false
            default: break
            }
        }
        return isPlain && lengths == 1
    }
}

extension UnsafeRawBufferPointer {
    /// Whether these are the digits of a number, as they are written here.
    fileprivate func spells(_ number: UInt64) -> Bool {
        var rest = number
        for byte in reversed() {
            guard byte == 0x30 + UInt8(truncatingIfNeeded: rest % 10) else { return false }
            rest /= 10
        }
        // A number of fewer digits would have a zero in front.
        return rest == 0 && !isEmpty && (count == 1 || first != 0x30)
    }
}
