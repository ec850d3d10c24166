// The faults of an answer: the wait and the other answer in its place before it is sent, and what it looks like on the
// wire.

import CacheStore
import DemoMode
import DownloadCore
import EventLoop
import HTTPCaching
import HTTPWire
import Policies
import ServiceCore

extension ProxyHandler {
    /// Draws the faults of one answer to one client, after its latency. The changes are neither stored nor seen by
    /// other requests for the same response. Answers that the daemon itself makes for failures have no faults.
    ///
    /// - Parameters:
    ///   - result: the answer; replaced if a fault has a status, and marked with the faults that act.
    ///   - early: the draws that were made before the origin was asked; nil for none.
    /// - Returns: nil if no fault acts.
    func drawFaults(
        _ result: inout ServiceAnswer,
        _ match: RouteMatch,
        _ exchange: Exchange,
        after early: FaultDraws?,
        on loop: isolated EventLoop
    ) -> FaultEffect? {
        guard let plan = match.endpoint.request.faults, result.answer.failure == nil else { return nil }
        let drawn: FaultEffect?
        if let draws = result.faultDraws {
            drawn = draws.effect
        } else if result.answer.isUnasked {
            drawn = early?.effect
        } else {
            let request = Array("\(exchange.request.method.name) \(match.rest)".utf8)
            drawn = plan.draw(at: FaultPoint(result), request: request, match.route.ordinals, after: early)
        }
        guard let effect = drawn else { return nil }
        result.faults = effect.fieldValue
        exchange.trace?.say("fault", [("faults", effect.fieldValue)])
        count(effect, exchange)
        if let substitute = effect.substitute {
            result.answer.reader?.close()
            result.answer = substitute.answer(
                to: exchange.request.method,
                cacheStatus: result.answer.cacheStatus,
                originTime: result.answer.originTime,
                budget: core.budget,
                on: loop
            )
        }
        return effect
    }

    /// Counts the faults of an answer; the log names the one that changes most.
    private func count(_ effect: FaultEffect, _ exchange: Exchange) {
        let counters = exchange.context.counters
        if effect.isDelayed {
            counters.add(.faultLatency)
            exchange.outcome.fault = "latency"
        }
        if effect.pace != nil {
            counters.add(.faultPace)
            exchange.outcome.fault = "pace"
        }
        if effect.substitute != nil {
            counters.add(.faultStatus)
            exchange.outcome.fault = "status"
        }
        if let wire = effect.wire {
            counters.add(.fault(wire.kind))
            exchange.outcome.fault = wire.kind.rawValue
        }
    }
}

extension FaultPoint {
    /// The source of an answer that is not a failure, by which faults are chosen.
    init(_ result: ServiceAnswer) {
        guard result.demo == nil, let status = result.answer.cacheStatus else {
            self = .demo
            return
        }
        self =
            switch CacheOutcome(status) {
            // A hit is stale if it is used while it is validated, or if the request accepts stale responses.
            case .hit: status.ttl.map { $0 < 0 } ?? false ? .stale : .hit
            case .revalidated: .revalidate
            case .stale, .placeholder, .fallback: .stale
            case .miss, .bypass, .collapsed, .demo, .recording, .error, .none: .miss
            }
    }
}

extension FaultEffect.Substitute {
    fileprivate func answer(
        to method: Method,
        cacheStatus: CacheStatus?,
        originTime: UInt64?,
        budget: BodyBudget,
        on loop: EventLoop
    ) -> Answer {
        var head = ResponseHead(status: status, reason: ReasonPhrase.reason(status))
        if let file { head.fields.append(.contentType, file.contentType) }
        if let retryAfter { head.fields.append(.retryAfter, String(retryAfter)) }
        let body = status == 204 || status == 304 ? nil : file?.body(budget) ?? .complete([])
        var answer = Answer(
            head: head,
            reader: method == .head ? nil : body?.makeReader(on: loop),
            length: body?.knownLength,
            cacheStatus: cacheStatus
        )
        answer.originTime = originTime
        return answer
    }
}

// MARK: - On the wire

extension Responder {
    /// Sends an answer as ``send(_:_:_:_:_:on:)`` does, with the faults applied to its bytes.
    func send(
        _ result: ServiceAnswer,
        _ rewriting: Rewriting,
        _ added: Fields,
        _ exchange: Exchange,
        _ bodies: BodyLog?,
        _ effect: FaultEffect,
        on loop: isolated EventLoop
    ) async {
        if let wire = effect.wire, await replaceHead(result, wire, exchange, on: loop) { return }
        var result = result
        let (reader, length) = (result.answer.reader, result.answer.length)
        switch effect.wire {
        // A broken chunk needs chunks, so the length is dropped.
        case .badChunk?: if reader != nil { result.answer.length = nil }
        case .wrongLength(let more)?: result.answer.length = length.map { max(0, $0 + Int64(more)) }
        default: break
        }
        begin(result, rewriting, added, exchange, hasBody: reader != nil)
        defer { reader?.close() }
        if let reader {
            let limit = effect.wire?.contentLimit(length)
            let passage = Passage(pace: effect.pace, length: length, limit: limit)
            guard await stream(reader, exchange, bodies, passage, on: loop) else { return }
        }
        guard let wire = effect.wire else { return exchange.finish(trailers: reader?.trailers ?? Fields()) }
        await end(wire, reader, exchange, isChunked: result.answer.length == nil, on: loop)
    }

    // MARK: - The head

    /// Sends the fault that replaces a head.
    /// - Returns: false if the fault leaves the head as it is; nothing is sent then.
    private func replaceHead(
        _ result: ServiceAnswer,
        _ wire: WireFault,
        _ exchange: Exchange,
        on loop: isolated EventLoop
    ) async -> Bool {
        let head = result.answer.head
        switch wire {
        case .reset(after: nil), .empty, .stalledHead, .garbage: break
        case .reset, .close, .badChunk, .stalledBody, .slowClose, .wrongLength: return false
        }
        result.answer.reader?.close()
        note(result, exchange)
        // The access log shows the status of the answer that does not arrive.
        exchange.status = head.status
        switch wire {
        case .stalledHead(let time):
            _ = try? exchange.send(.beginning(of: head))
            await exchange.hold(time, on: loop)
        case .garbage(let afterStatusLine):
            _ = try? exchange.send(.garbage(after: afterStatusLine ? head : nil))
        default: break
        }
        exchange.abort(wire == .reset(after: nil) ? .reset : .close)
        return true
    }

    // MARK: - The content

    /// The part of a body that is sent, and its pace.
    private struct Passage {
        let pace: Pace?
        /// The length of the whole body in bytes; nil if it is unknown.
        let length: Int64?
        /// The number of bytes that are sent; nil for all.
        let limit: Int64?
    }

    /// Sends the content at its pace.
    /// - Returns: false if the body is incomplete, or if the client has left; the exchange is over then.
    private func stream(
        _ reader: BodyReader,
        _ exchange: Exchange,
        _ bodies: BodyLog?,
        _ passage: Passage,
        on loop: isolated EventLoop
    ) async -> Bool {
        let began = Monotonic.now()
        var sent: Int64 = 0
        do {
            while sent < passage.limit ?? .max {
                let step = passage.pace?.step(after: sent, length: passage.length)
                let left = Int(clamping: (passage.limit ?? .max) - sent)
                let most = min(step?.count ?? Self.longestPiece, left, Self.longestPiece)
                guard let piece = try await reader.next(maxBytes: most, on: loop) else { break }
                if let step {
                    let (due, now) = (began + step.due(piece.count), Monotonic.now())
                    if due > now { try await loop.sleep(nanoseconds: due - now) }
                }
                await bodies?.see(piece, on: loop)
                if let most = try queue(piece, of: reader, exchange) { try await exchange.waitForRoom(atMost: most) }
                sent += Int64(piece.count)
            }
            return true
        } catch {
            exchange.outcome.error = (error as? BodyError)?.description ?? "the client left"
            exchange.fail()
            return false
        }
    }

    // MARK: - The end

    /// - Parameter isChunked: whether the content is sent in chunks to a client that knows them.
    private func end(
        _ wire: WireFault,
        _ reader: BodyReader?,
        _ exchange: Exchange,
        isChunked: Bool,
        on loop: isolated EventLoop
    ) async {
        switch wire {
        case .reset:
            // A reset discards bytes that are still queued, so they are sent first.
            try? await exchange.waitForRoom(atMost: 0)
            return exchange.abort(.reset)
        case .badChunk where reader != nil:
            // To an HTTP/1.0 client the body has no chunks, and ends with the connection.
            if exchange.request.version == .http10 { return exchange.abort(.reset) }
            _ = try? exchange.send(.badChunk)
        case .stalledBody(_, let time): await exchange.hold(time, on: loop)
        case .slowClose(let time):
            if reader != nil, isChunked, exchange.request.version != .http10 { _ = try? exchange.send(.lastChunk) }
            await exchange.hold(time, on: loop)
        case .wrongLength(let more) where more < 0:
            if let reader { await sendSurplus(reader, exchange, on: loop) }
        default: break
        }
        exchange.abort(.close)
    }

    /// Sends the content beyond a Content-Length that is too small.
    private func sendSurplus(_ reader: BodyReader, _ exchange: Exchange, on loop: isolated EventLoop) async {
        do {
            while let piece = try await reader.next(maxBytes: Self.longestPiece, on: loop) {
                if try !exchange.send(.surplus(piece)) { try await exchange.waitForRoom() }
            }
        } catch {
            exchange.outcome.error = (error as? BodyError)?.description ?? "the client left"
        }
    }
}

extension WireFault {
    /// The number of content bytes that are sent before the fault; nil for all.
    /// - Parameter length: the length of the content in bytes; nil if it is unknown.
    fileprivate func contentLimit(_ length: Int64?) -> Int64? {
        switch self {
        case .reset(let count): count.map { Int64($0) }
        case .close(let count), .badChunk(let count), .stalledBody(let count, _): Int64(count)
        case .wrongLength(let more): more < 0 ? length.map { max(0, $0 + Int64(more)) } : nil
        case .empty, .stalledHead, .slowClose, .garbage: nil
        }
    }
}

extension Exchange {
    /// Queues what no proper answer has: in place of a head, or after content. The exchange ends by ``abort(_:)`` then.
    /// - Returns: false if the queue is full.
    /// - Throws: `ClientGone` if nothing can be sent any more.
    func send(_ part: BrokenPart) throws(ClientGone) -> Bool {
        guard state == .open || state == .body, let carrier else { throw ClientGone() }
        state = .body
        carrier.send(part)
        guard let carrier = self.carrier else { throw ClientGone() }
        return carrier.queuedBytes <= OutputQueue.highWatermark
    }

    /// Waits for `nanoseconds`, or forever if it is nil; the wait ends when the client ends its side, or when the
    /// daemon begins to end.
    func hold(_ nanoseconds: UInt64?, on loop: isolated EventLoop) async {
        endWithClient()
        atDrain { [weak self] in self?.task?.cancel() }
        repeat {
            do { try await loop.sleep(nanoseconds: nanoseconds ?? Self.day) } catch { return }
        } while nanoseconds == nil
    }

    private static let day: UInt64 = 86_400_000_000_000
}
