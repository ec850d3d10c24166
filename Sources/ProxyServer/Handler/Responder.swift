// Sends an answer: what the proxy adds to its fields, then its bytes at the client's pace.

import CacheStore
import DownloadCore
import EventLoop
import HTTPCaching
import HTTPWire
import ServiceCore
import Upstream

/// Sends the answers of one plan's services to clients; loop-bound, and replaced with the plan.
final class Responder {
    let plan: RoutePlan
    let core: DownloadCore
    private let context: LoopContext
    /// The value of Cache-Status that was written last: many answers in a row have the same.
    private var lastStatus: (status: CacheStatus, value: String)?
    /// This proxy's own lines of the last head that was forwarded unchanged.
    var lastPassed: ForwardedLines?

    init(plan: RoutePlan, core: DownloadCore, context: LoopContext) {
        self.plan = plan
        self.core = core
        self.context = context
    }

    private func value(of status: CacheStatus) -> String {
        if let lastStatus, lastStatus.status == status { return lastStatus.value }
        let value = status.value
        lastStatus = (status, value)
        return value
    }

    // MARK: - Whole answers

    /// - Parameters:
    ///   - added: fields of cross-origin rules.
    ///   - bodies: sees the pieces; nil where nobody wants to.
    func send(
        _ result: ServiceAnswer,
        _ rewriting: Rewriting,
        _ added: Fields,
        _ exchange: Exchange,
        _ bodies: BodyLog? = nil,
        on loop: isolated EventLoop
    ) async {
        let answer = result.answer
        begin(result, rewriting, added, exchange, hasBody: answer.reader != nil)
        guard let reader = answer.reader else { return exchange.finish() }
        await stream(reader, exchange, bodies, on: loop)
    }

    /// Sends the head of an answer. If the answer is a failure, it sends the document of one, which ends the exchange.
    /// - Parameter hasBody: a body follows.
    func begin(
        _ result: ServiceAnswer,
        _ rewriting: Rewriting,
        _ added: Fields,
        _ exchange: Exchange,
        hasBody: Bool
    ) {
        let answer = result.answer
        exchange.trace?.tell(result)
        note(result, exchange)
        if let failure = answer.failure { return fail(result, failure, added, exchange) }
        var head = answer.head
        rewriting.apply(to: &head.fields)
        if let age = answer.age { head.fields.set(.age, String(age)) }
        if result.demo == nil { head.fields.appendMember(.via, plan.via(head.version)) }
        if let draws = result.draws { head.fields.set("Drydock-Demo", draws) }
        if let status = result.cacheStatus { head.fields.append(.cacheStatus, value(of: status)) }
        CrossOrigin.apply(added, to: &head.fields)
        // Made here, from what is stored.
        if head.reason.isEmpty, head.status == 304 || head.status == 412 || answer.isStandIn {
            head.reason = ReasonPhrase.reason(head.status)
        }
        exchange.sendHead(head, body: answer.length.map { .known($0) } ?? (hasBody ? .unknown : .none))
    }

    /// Forwards an interim response, with its URLs rewritten as in a final one.
    static func forward(interim head: ResponseHead, _ rewriting: Rewriting, via: String, _ exchange: Exchange) {
        var head = head
        // The client's 100 is this proxy's own to give (RFC 9110 section 10.1.1).
        if head.status == 100 { return }
        head.fields = HopByHop.forwardable(head.fields, isRequest: false)
        rewriting.apply(to: &head.fields)
        head.fields.appendMember(.via, via)
        exchange.sendInterim(head)
    }

    /// The most bytes that are sent in one piece.
    static let longestPiece = 1 << 20

    private func stream(
        _ reader: BodyReader,
        _ exchange: Exchange,
        _ bodies: BodyLog?,
        on loop: isolated EventLoop
    ) async {
        defer { reader.close() }
        do {
            while true {
                // Bytes that have arrived are sent without a wait.
                if case .piece(let piece) = reader.nextIfReady(maxBytes: Self.longestPiece) {
                    await bodies?.see(piece, on: loop)
                    if let most = try queue(piece, of: reader, exchange) {
                        try await exchange.waitForRoom(atMost: most)
                    }
                } else if let piece = try await reader.next(maxBytes: Self.longestPiece, on: loop) {
                    await bodies?.see(piece, on: loop)
                    if let most = try queue(piece, of: reader, exchange) {
                        try await exchange.waitForRoom(atMost: most)
                    }
                } else {
                    break
                }
            }
            exchange.finish(trailers: reader.trailers)
        } catch {
            // Cut short: what the client has must not pass as complete.
            exchange.outcome.error = (error as? BodyError)?.description ?? "the client left"
            exchange.fail()
        }
    }

    /// - Returns: the count of queued bytes at which the next piece may be sent; nil if it may be sent now. The fuller
    ///   the memory for bodies is, the less is queued for a client that does not read.
    func queue(_ piece: BodyPiece, of reader: BodyReader, _ exchange: Exchange) throws(ClientGone) -> Int? {
        let hasRoom = try exchange.queue(piece)
        if core.budget.isTight || reader.isAtHand { return OutputQueue.tightWatermark }
        return hasRoom ? nil : OutputQueue.highWatermark
    }

    private func fail(_ result: ServiceAnswer, _ failure: FetchError, _ added: Fields, _ exchange: Exchange) {
        var fields = added
        result.answer.cacheStatus?.append(to: &fields)
        // The origin's part failed because the client's did: say what the client can mend.
        if case .upstream(let error) = failure, error.kind == .requestBody,
            var problem = exchange.knownBody?.failure?.problem
        {
            fields.forEachLine { name, value, _ in problem.fields.append(nameBytes: name, valueBytes: value) }
            return exchange.problem(problem)
        }
        context.counters.add(.errorUpstream)
        exchange.outcome.error = failure.description
        if let seconds = failure.retryAfter { fields.set(.retryAfter, "\(seconds)") }
        exchange.problem(
            Problem(
                status: failure.status,
                title: failure.title ?? ReasonPhrase.reason(failure.status),
                detail: failure.told,
                proxyError: failure.proxyStatus,
                fields: fields,
                document: result.errorDocument
            )
        )
    }

    /// What the access log and the counters will say.
    func note(_ result: ServiceAnswer, _ exchange: Exchange) {
        exchange.draft?.demo = result.draws ?? ""
        guard result.demo == nil, let status = result.answer.cacheStatus else {
            exchange.outcome.cache = result.demo == nil ? .none : .demo
            return
        }
        if let cause = result.answer.cause {
            context.counters.add(.errorUpstream)
            exchange.outcome.error = cause
        }
        exchange.outcome.cacheStatus = value(of: result.cacheStatus ?? status)
        exchange.outcome.upstreamStatus = status.forwardStatus
        exchange.outcome.upstreamTime = result.answer.originTime
        exchange.outcome.cache = CacheOutcome(status)
        exchange.outcome.tier = AnswerTier(status)
    }
}

@available(*, unavailable) extension Responder: Sendable {}

extension AnswerTier {
    /// What Cache-Status says of a hit.
    init(_ status: CacheStatus) {
        self =
            switch status.detail.flatMap(CacheStatus.Detail.init) {
            case .memory: .memory
            case .disk: .disk
            case .seed: .seed
            default: .none
            }
    }
}

extension CacheOutcome {
    /// What Cache-Status says, as it is counted.
    init(_ status: CacheStatus) {
        self =
            if status.hit {
                .hit
            } else if status.detail == CacheStatus.Detail.placeholder.rawValue {
                .placeholder
            } else if status.detail == CacheStatus.Detail.fallback.rawValue {
                .fallback
            } else if status.detail == CacheStatus.Detail.recording.rawValue {
                .recording
            } else if status.collapsed {
                .collapsed
            } else if status.detail == CacheStatus.Detail.revalidated.rawValue {
                .revalidated
            } else if status.detail == CacheStatus.Detail.staleIfError.rawValue
                || status.detail == CacheStatus.Detail.otherVariant.rawValue
            {
                .stale
            } else if status.forward == .bypass || status.forward == .method {
                .bypass
            } else {
                .miss
            }
    }
}
