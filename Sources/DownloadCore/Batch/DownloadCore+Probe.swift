// Finds out how much a request would download, from the store and by a HEAD to the origin; the store stays unchanged.

import CacheStore
package import EventLoop
import HTTPCaching
import HTTPWire

/// The amount that a request would download.
package enum Probe: Sendable, Equatable {
    /// Nothing, because the stored response is fresh or was validated by the origin; with the length of its body in
    /// bytes.
    case valid(length: Int64?)
    /// A body of this many bytes.
    case sized(Int64)
    /// A body of unknown length, for the reason given.
    case unknownSize(String)
    /// The request would fail, for the reason given.
    case failed(String, status: Int?)
}

extension DownloadCore {
    /// Finds out how much a request would download. Stored responses, lifetimes and the known capabilities of the
    /// origin stay as they are. A request with `only-if-cached` is not sent to the origin.
    /// - Parameter accepted: the statuses of a success.
    package func probe(
        _ ask: CacheRequest,
        from source: any FetchSource,
        accepted: Range<Int>,
        on loop: isolated EventLoop
    ) async -> Probe {
        let stale: StoredResponse?
        switch await look(ask, accepted, on: loop) {
        case .known(let probe): return probe
        case .stale(let response): stale = response
        }
        // The decision is the same as for the answer itself. With mode `none`, `only-if-cached` is ignored and the
        // request is forwarded.
        if ask.policy.mode != .none, Caching.onlyIfCached(ask.request) {
            let what = stale == nil ? "nothing is stored for this request" : "the stored response needs a check"
            return .failed("\(what), and the origin is not to be asked", status: nil)
        }
        guard ask.content == nil, ask.request.method == .get else {
            return .unknownSize("HEAD says nothing about \(ask.content == nil ? ask.request.method.name : "POST")")
        }
        var fields = ask.originFields
        fields.removeConditions()
        var request = FetchRequest(
            method: .head,
            path: ask.path,
            fields: fields,
            clientHost: ask.request.fields.first(.host)
        )
        request.urgency = ask.urgency
        let answer = await forwarder.forward(request, from: source, ForwardReason(.method), on: loop)
        if let failure = answer.failure { return .failed(failure.description, status: nil) }
        let status = answer.head.status
        switch status {
        case 403, 405, 501: return .unknownSize("the origin does not answer HEAD (\(status))")
        case accepted: break
        default: return .failed(answer.head.refusal(ask.shown), status: status)
        }
        // A reload downloads the response even if it has not changed.
        if 200..<300 ~= status, let stale, !Caching.isReload(ask.request), ask.policy.revalidate != .never,
            case .unchanged = Caching.judgeHead(
                stored: stale.head,
                headAnswer: answer.head,
                times: clock.times(),
                policy: ask.policy
            )
        {
            return .valid(length: stale.body.knownLength)
        }
        return answer.length.map { .sized($0) } ?? .unknownSize("the origin says no length")
    }

    private enum Look {
        case known(Probe)
        case stale(StoredResponse?)
    }

    private func look(_ ask: CacheRequest, _ accepted: Range<Int>, on loop: isolated EventLoop) async -> Look {
        if let seed = ask.seed, let seeded = await seeds.pinned(ask, seed) {
            return .known(.valid(length: seeded.body.knownLength))
        }
        guard ask.policy.mode != .none else { return .stale(nil) }
        let variants = await context.store.variants(ask, on: loop)
        guard let chosen = Caching.select(from: variants.map(\.head), request: ask.request, policy: ask.policy) else {
            return .stale(nil)
        }
        let found = variants[chosen]
        let decision = Caching.lookup(
            request: ask.request,
            stored: found.head,
            policy: ask.policy,
            now: clock.now()
        )
        switch decision {
        // The validation in the background may download the response, so a stale response counts as one to download.
        case .stale, .staleAllowed(_, _, .whileRevalidate), .onlyIfCachedMiss: return .stale(found)
        case .fresh, .staleAllowed:
            guard accepted.contains(found.head.status) else {
                let head = ResponseHead(status: found.head.status, reason: found.head.reason, fields: found.head.fields)
                return .known(.failed(head.refusal(ask.shown), status: head.status))
            }
            return .known(.valid(length: found.body.knownLength))
        case .mismatch: return .stale(nil)
        }
    }
}

extension ResponseHead {
    /// The reason why an answer with this status fails the item.
    /// - Parameter shown: replaces the secrets in an origin's URL; if nil, the URL stays as it is.
    func refusal(_ shown: ((String) -> String)?) -> String {
        let name = reason.isEmpty ? "" : " \(reason)"
        guard 300..<400 ~= status, let location = fields.first(.location) else {
            return "the origin answered \(status)\(name)"
        }
        return "the origin answered \(status)\(name) and names \(shown?(location) ?? location); list that instead"
    }
}
