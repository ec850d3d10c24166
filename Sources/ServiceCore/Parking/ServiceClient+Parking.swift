// A call that waits while its origin is away, if nothing stored and no fallback may answer it.

import CacheStore
import DownloadCore
import EventLoop
import HTTPCaching
import HTTPWire
import Policies
import Upstream

extension ServiceClient {
    /// Answers a call; while its origin is away, the call waits, and is made again when the origin is back.
    ///
    /// A call waits only if nothing of it reached the origin, or if its method is idempotent, and only with all of its
    /// content in memory.
    @inline(never) func answerOrPark(
        _ call: ServiceCall,
        _ policy: ParkPolicy,
        on loop: isolated EventLoop
    ) async throws(RouteRefusal) -> ServiceAnswer {
        let waiting = WaitingCall(call, policy, calls)
        do throws(RouteRefusal) {
            let result = try await answer(waiting, on: loop)
            waiting.settle(result.answer)
            return result
        } catch {
            waiting.settle(nil)
            throw error
        }
    }

    private func answer(
        _ waiting: WaitingCall,
        on loop: isolated EventLoop
    ) async throws(RouteRefusal) -> ServiceAnswer {
        if waiting.mayBeStored, let failure = await waiting.readContent(on: loop) {
            return ServiceAnswer(answer: core.answers.failure(failure, ForwardReason(.method)))
        }
        waiting.watch()
        defer { waiting.giveUp() }
        while true {
            let result = try await answerOnce(waiting.attempt(), on: loop)
            switch waiting.judge(result, isOffline: core.isOffline) {
            case .over(let result): return result
            case .parked: break
            case .mayBePark: guard await waiting.park(on: loop) else { return result }
            }
            waiting.begin(result)
            guard let slot = waiting.slot else { return result }
            let verdict = await waiting.parked.wait(for: slot, on: loop)
            guard verdict == .replay else { return waiting.end(result, verdict) }
        }
    }
}

/// A call that waits for its origin if that is away: its content, and its entry among the parked calls. One object,
/// which each function that waits for the call has in its frame. Loop-bound.
private final class WaitingCall {
    enum Judgement {
        /// The answer is final, or the call has waited in vain.
        case over(ServiceAnswer)
        /// The call was parked before, and waits again.
        case parked
        /// The call is to be parked for the first time.
        case mayBePark
    }

    private var call: ServiceCall
    private let policy: ParkPolicy
    private let parkable: ParkableCall
    private var body: WatchedBody?
    /// The reason why the call was not answered.
    private var absence: Absence?
    /// Where it is parked.
    private(set) var slot: ParkedCall?
    let parked: ParkedCalls

    init(_ call: ServiceCall, _ policy: ParkPolicy, _ calls: CallsUnderWay) {
        var call = call
        parkable = ParkableCall(CallDestination(call.match.route, call.match.endpoint, asks: call.asked), calls)
        call.parkable = parkable
        parked = call.match.route.runtime.parked
        self.call = call
        self.policy = policy
    }

    /// Whether the content is read in any case, so that a failure must not lose it.
    @inline(never) var mayBeStored: Bool {
        PostedContent.mayBeStored(call.head, call.framing, call.match.endpoint.request)
    }

    /// Reads the content of the call.
    /// - Returns: the reason why it could not be read.
    @inline(never) func readContent(on loop: isolated EventLoop) async -> FetchError? {
        do throws(FetchError) {
            let content = try await PostedContent.read(call.body, bind: call.bindBody, on: loop)
            call.body = ContentSource(content.bytes, then: content.isWhole ? nil : call.body)
            return nil
        } catch {
            return error
        }
    }

    @inline(never) func watch() { body = call.body.map { WatchedBody($0) } }

    @inline(never) func attempt() -> ServiceCall {
        call.body = body?.forAttempt()
        return call
    }

    @inline(never) func settle(_ answer: Answer?) { parkable.settle(answer?.head.status, answer?.failure) }

    @inline(never) func giveUp() { if let held = slot.take() { parked.giveUp(held) } }

    @inline(never) func judge(_ result: ServiceAnswer, isOffline: Bool) -> Judgement {
        guard let absence = Absence(result.answer, isReplay: slot != nil, isOffline: isOffline),
            !absence.wasSent || call.head.method.isIdempotent, body?.canBeRepeated ?? true, !Task.isCancelled
        else {
            if let held = slot.take() { Task.isCancelled ? parked.giveUp(held) : parked.answered(held) }
            return .over(result)
        }
        self.absence = absence
        guard let held = slot else { return .mayBePark }
        guard let verdict = parked.returned(held, isAway: absence.isAway, reason: absence.reason) else {
            return .parked
        }
        return .over(end(result, verdict))
    }

    /// Begins the wait; the last answer is not used.
    @inline(never) func begin(_ result: ServiceAnswer) {
        call.tellParked(why: absence?.reason ?? "")
        result.answer.reader?.close()
    }

    /// Parks the call for the first time, with all of its content.
    /// - Returns: whether it is parked.
    @inline(never) func park(on loop: isolated EventLoop) async -> Bool {
        guard let held = hold(on: loop) else { return false }
        guard let body, body.length == nil else {
            slot = held
            return true
        }
        do throws(FetchError) {
            let most = call.framing.contentBound
            let content = try await PostedContent.read(body, bind: call.bindBody, atMost: most, on: loop)
            if content.isWhole {
                (slot, self.body) = (held, WatchedBody(ContentSource(content.bytes)))
                return true
            }
        } catch {
            // The client did not send all of the content.
        }
        parked.giveUp(held)
        return false
    }

    @inline(never) private func hold(on loop: isolated EventLoop) -> ParkedCall? {
        guard let origin = call.match.route.plan.origin, let absence else { return nil }
        let result = parked.park(
            method: call.head.method.name,
            path: String(call.head.target.prefix { $0 != "?" }),
            origin: origin.root,
            size: call.parkedSize(content: body?.length ?? call.framing.contentBound),
            reason: absence.reason,
            policy,
            on: loop
        )
        guard case .success(let held) = result else { return nil }
        // A client that ends its side of the connection does not wait for an answer in some minutes.
        call.endWithClient?()
        return held
    }

    /// The answer to a call that waited in vain.
    @inline(never) func end(_ last: ServiceAnswer, _ verdict: ParkVerdict) -> ServiceAnswer {
        guard let call = slot.take() else { return last }
        let reason = absence?.reason ?? ""
        let error: FetchError =
            switch verdict {
            case .left: .cancelled
            case .cancelled:
                .stopped("the request waited for its origin, and was ended by 'drydock parked cancel'; ask again")
            case .ended(let why): .unavailable("the request waited for its origin, and \(why): \(reason)", seconds: 1)
            case .replay, .expired:
                .parkExpired(
                    "the origin was away for \((call.until - call.since) / 1_000_000_000) s, as long as a request waits "
                        + "for it (park): \(reason)"
                )
            }
        var answer = Answer(head: ResponseHead(status: error.status), cacheStatus: last.answer.cacheStatus)
        answer.failure = error
        answer.originTime = last.answer.originTime
        return ServiceAnswer(answer: answer)
    }
}

@available(*, unavailable) extension WaitingCall: Sendable {}

extension ServiceCall {
    /// The bytes that a waiting request takes in addition to its head and its content: the connection, the exchange,
    /// the call, the question and its answer, and the frames of the functions that wait. It is the most that a request
    /// with a fetch of its own takes, which a parked call has had; a scenario measures both.
    static let waitingMemory = 36 << 10

    /// The bytes that the call is counted with while it is parked.
    func parkedSize(content: Int) -> Int { Self.waitingMemory + head.size + content }

    /// Reports that the call waits for its origin.
    fileprivate func tellParked(why: String) {
        let rest = (try? target()) ?? match.rest
        parkable?.park(head.method, match.route.path(rest, match.endpoint, behind: hidden), why: why)
    }
}

/// The reason why an answer means that the origin is away.
private struct Absence {
    let reason: String
    /// Whether something of the request may have reached the origin.
    let wasSent: Bool
    /// Whether the origin was asked in vain, or is left alone; otherwise there was no slot for the request.
    let isAway: Bool

    /// Interprets an answer; nil if it is final.
    /// - Parameter isReplay: whether the call was parked before, and would rather wait again.
    init?(_ answer: Answer, isReplay: Bool, isOffline: Bool) {
        guard let failure = answer.failure else {
            // As for the breaker, the statuses of a gateway mean that the origin is away (RFC 9110 section 15.6).
            guard 502...504 ~= answer.head.status, !answer.isStandIn, answer.cacheStatus?.hit != true else {
                return nil
            }
            (reason, wasSent, isAway) = ("the status was \(answer.head.status)", true, true)
            return
        }
        reason = failure.description
        switch failure {
        case .upstream:
            let end = AttemptEnd.failed(failure)
            guard end.cause == .connect || end.cause == .timeout else { return nil }
            (wasSent, isAway) = (!end.isUnsent, true)
        case .unavailable: (wasSent, isAway) = (false, true)
        case .offline:
            // Otherwise a retry was not made because the breaker is open, and the policy has judged the request
            // already.
            guard isReplay || !isOffline else { return nil }
            (wasSent, isAway) = (false, true)
        case .notAdmitted:
            guard isReplay else { return nil }
            (wasSent, isAway) = (false, false)
        case .onlyIfCached, .inner, .redirect, .mapping, .type, .unrecorded, .unanswered, .misdirected,
            .targetRefused, .cancelled, .stopped, .parkExpired:
            return nil
        }
    }
}

extension RequestHead {
    /// The approximate bytes of the head on the wire.
    var size: Int {
        var size = method.name.utf8.count + target.utf8.count + 16
        fields.forEachLine { name, value, _ in size += name.count + value.count + 4 }
        return size
    }
}

extension BodyFraming {
    /// The most bytes of content that are held.
    var contentBound: Int {
        switch self {
        case .none: 0
        case .length(let length): Int(clamping: length)
        case .chunked, .untilClose: PostedContent.longest
        }
    }
}
