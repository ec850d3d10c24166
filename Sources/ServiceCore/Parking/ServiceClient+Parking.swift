// A call that waits while its origin is away, where nothing stored and no fallback may serve.

import CacheStore
import DownloadCore
import EventLoop
import HTTPCaching
import HTTPWire
import Policies
import Upstream

extension ServiceClient {
    /// Answers a call; while its origin is away, the call is held and made again when the origin is back.
    ///
    /// It is held only if nothing of it reached the origin, or if its method is idempotent, and only with all of its
    /// content in memory.
    func answerOrPark(
        _ call: ServiceCall,
        _ policy: ParkPolicy,
        on loop: isolated EventLoop
    ) async throws(RouteRefusal) -> ServiceAnswer {
        var call = call
        let parkable = ParkableCall(CallPlace(call.match.route, call.match.endpoint, asks: call.asked), calls)
        call.parkable = parkable
        do throws(RouteRefusal) {
            let result = try await answer(parking: call, policy, on: loop)
            parkable.settle(result.answer.head.status, result.answer.failure)
            return result
        } catch {
            parkable.settle(nil, nil)
            throw error
        }
    }

    private func answer(
        parking call: ServiceCall,
        _ policy: ParkPolicy,
        on loop: isolated EventLoop
    ) async throws(RouteRefusal) -> ServiceAnswer {
        var call = call
        if PostedContent.mayBeStored(call.head, call.framing, call.match.endpoint.request) {
            // Its content is read in any case, and is not to be lost with a failure.
            do throws(FetchError) {
                let content = try await PostedContent.read(call.body, bind: call.bindBody, on: loop)
                call.body = ContentSource(content.bytes, then: content.isWhole ? nil : call.body)
            } catch {
                return ServiceAnswer(answer: core.failure(error, ForwardReason(.method)))
            }
        }
        var body = call.body.map { WatchedBody($0) }
        let parked = call.match.route.runtime.parked
        var place: ParkedCall?
        defer { if let place { parked.giveUp(place) } }
        while true {
            call.body = body?.forAttempt()
            let result = try await answerOnce(call, on: loop)
            let isReplay = place != nil
            guard let absence = Absence(result.answer, isReplay: isReplay, isOffline: core.isOffline),
                !absence.wasSent || call.head.method.isIdempotent, body?.canBeRepeated ?? true, !Task.isCancelled
            else {
                if let held = place.take() { Task.isCancelled ? parked.giveUp(held) : parked.answered(held) }
                return result
            }
            if let held = place {
                if let verdict = parked.returned(held, isAway: absence.isAway, reason: absence.reason) {
                    place = nil
                    return end(result, held, verdict, absence.reason)
                }
            } else {
                guard let (held, content) = await park(call, body, absence, policy, on: loop) else { return result }
                place = held
                if let content { body = WatchedBody(content) }
            }
            guard let held = place else { return result }
            call.tellParked(why: absence.reason)
            result.answer.reader?.close()
            let verdict = await parked.wait(for: held, on: loop)
            guard verdict == .replay else {
                place = nil
                return end(result, held, verdict, absence.reason)
            }
        }
    }

    /// Holds a call for the first time, with all of its content.
    /// - Returns: nil where it may not be held; the content where it had to be read.
    private func park(
        _ call: ServiceCall,
        _ body: WatchedBody?,
        _ absence: Absence,
        _ policy: ParkPolicy,
        on loop: isolated EventLoop
    ) async -> (ParkedCall, ContentSource?)? {
        guard let origin = call.match.route.plan.origin else { return nil }
        let parked = call.match.route.runtime.parked
        let most = body?.length ?? call.framing.contentBound
        let result = parked.park(
            method: call.head.method.name,
            path: String(call.head.target.prefix { $0 != "?" }),
            origin: origin.root,
            size: call.head.size + most,
            reason: absence.reason,
            policy,
            on: loop
        )
        guard case .success(let held) = result else { return nil }
        // Who ends its side of the connection does not wait for what comes in some minutes.
        call.endWithClient?()
        guard let body, body.length == nil else { return (held, nil) }
        do throws(FetchError) {
            let content = try await PostedContent.read(body, bind: call.bindBody, atMost: most, on: loop)
            if content.isWhole { return (held, ContentSource(content.bytes)) }
        } catch {
            // Its client did not send all of it.
        }
        parked.giveUp(held)
        return nil
    }

    /// The answer to a call that waited in vain.
    private func end(_ last: ServiceAnswer, _ call: ParkedCall, _ verdict: ParkVerdict, _ reason: String)
        -> ServiceAnswer
    {
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

extension ServiceCall {
    /// Tells that it waits for its origin.
    fileprivate func tellParked(why: String) {
        let rest = (try? target()) ?? match.rest
        parkable?.park(head.method, match.route.path(rest, match.endpoint, behind: hidden), why: why)
    }
}

/// Why an answer says that the origin is away.
private struct Absence {
    let reason: String
    /// Something of the request may have reached the origin.
    let wasSent: Bool
    /// The origin was asked in vain, or is left alone; otherwise there was no slot to ask it.
    let isAway: Bool

    /// Nil where the answer stands.
    /// - Parameter isReplay: the call was parked before, and would rather wait again.
    init?(_ answer: Answer, isReplay: Bool, isOffline: Bool) {
        guard let failure = answer.failure else {
            // As the breaker sees it: a gateway says that the origin is not there (RFC 9110 section 15.6).
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
            // Otherwise a retry was not made, since the breaker is open: then the policy has judged what was sent.
            guard isReplay || !isOffline else { return nil }
            (wasSent, isAway) = (false, true)
        case .notAdmitted:
            guard isReplay else { return nil }
            (wasSent, isAway) = (false, false)
        case .onlyIfCached, .inner, .redirect, .mapping, .type, .unrecorded, .unanswered, .cancelled, .stopped,
            .parkExpired:
            return nil
        }
    }
}

extension RequestHead {
    /// About as many bytes as it has on the wire.
    var size: Int {
        var size = method.name.utf8.count + target.utf8.count + 16
        fields.forEachLine { name, value, _ in size += name.count + value.count + 4 }
        return size
    }
}

extension BodyFraming {
    /// Bytes of content that are held at most.
    var contentBound: Int {
        switch self {
        case .none: 0
        case .length(let length): Int(clamping: length)
        case .chunked, .untilClose: PostedContent.longest
        }
    }
}
