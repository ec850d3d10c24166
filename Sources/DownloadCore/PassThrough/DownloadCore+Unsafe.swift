// Requests that are not answered from the store, and the effects of their answers on it: invalidate, then store (RFC
// 9111 section 4.4, RFC 9110 section 9.3.3).

package import CacheStore
package import EventLoop
import HTTPCaching
package import HTTPWire
import Synchronization

/// A request that the origin has to answer. Loop-bound, because its body is.
package struct UncachedRequest {
    /// The request that is sent to the origin.
    package var request: FetchRequest
    /// The client's request, with the key and the policy of a GET of its target.
    package var ask: CacheRequest
    /// The absolute URL of the target on the origin; Content-Location is compared with it.
    package var url: String
    /// The keys of the other URLs on the same origin that an answer names, and of the targets of its redirects.
    package var related: (ResponseHead) -> [CacheKey]
    /// The keys under which other services of the same origin may have stored the target, and the URLs that its answer
    /// names.
    package var elsewhere: (ResponseHead) -> Elsewhere = { _ in Elsewhere() }

    /// Keys of the same URLs of the origin in other services.
    package struct Elsewhere {
        package var keys: [CacheKey]
        /// Keys that match with any host in place of their own.
        package var anyHost: [CacheKey]

        package init(keys: [CacheKey] = [], anyHost: [CacheKey] = []) {
            self.keys = keys
            self.anyHost = anyHost
        }
    }

    package init(
        _ request: FetchRequest,
        _ ask: CacheRequest,
        url: String,
        related: @escaping (ResponseHead) -> [CacheKey]
    ) {
        self.request = request
        self.ask = ask
        self.url = url
        self.related = related
    }

    /// Whether an origin has acted, as a redirect that was followed shows.
    fileprivate var hasChanged: Bool { request.trail?.changed.isEmpty == false }
}

extension DownloadCore {
    /// Forwards a request. A non-error response to an unsafe method invalidates the stored responses of its
    /// target and of the URLs that it names, before the client gets it (RFC 9111 section 4.4); a response to POST
    /// may then be stored for GET. Where redirects are followed, a redirect is such a response, whatever comes of it.
    /// - Parameter onInterim: called on the loop with each 1xx response.
    package func pass(
        _ pass: UncachedRequest,
        from source: any FetchSource,
        onInterim: ((ResponseHead) -> Void)? = nil,
        on loop: isolated EventLoop
    ) async -> Answer {
        let method = pass.request.method
        let forwardReason =
            method.isSafe && (method == .get || method == .head)
            ? ForwardReason(.bypass, "content") : ForwardReason(.method)
        if !method.isSafe { housekeeping.changing.add(1, ordering: .releasing) }
        defer { if !method.isSafe { housekeeping.changing.subtract(1, ordering: .releasing) } }
        let began = Monotonic.now()
        let requestTime = clock.now()
        let sent = invalidations.token(for: pass.ask.key)
        let stream = FetchStream()
        stream.onInterim = onInterim
        let head: FetchStream.Head
        do throws(FetchError) {
            head = try await context.start(stream, pass.request, from: source, on: loop)
        } catch {
            // The origin has acted, although its answer is refused, or another origin gave none.
            if error.isOfSuccess && Caching.invalidates(method: method, status: 200) || pass.hasChanged {
                await invalidate(after: pass, ResponseHead(status: 200), on: loop)
            }
            return answers.failure(error, forwardReason)
        }
        stream.onInterim = nil
        // If another request invalidated the key after this one was sent, this answer may be older than that change, so
        // it is not stored.
        let rules = InvalidationRule.concerning(head.response.fields, pass.ask.key)
        let isCurrent = invalidations.isUnchanged(sent.concerned(by: rules))
        if Caching.invalidates(method: method, status: head.response.status) {
            await invalidate(after: pass, head.response, on: loop)
        } else if pass.hasChanged {
            await invalidate(after: pass, ResponseHead(status: 200), on: loop)
        }
        var answer: Answer
        if isCurrent, let stored = await store(pass, head, stream, requestTime, source, forwardReason, on: loop) {
            answer = stored
        } else {
            answer = forwarder.forwarded(head, stream, isHead: method == .head, forwardReason, on: loop)
        }
        answer.originTime = Monotonic.now() &- began
        return answer
    }

    private func invalidate(after pass: UncachedRequest, _ answer: ResponseHead, on loop: isolated EventLoop) async {
        let key = pass.ask.key
        var rules = Set<InvalidationRule>()
        // RFC 9875 section 2.2.1: the responses that share a group with an invalidated one are invalidated with it, but
        // not those that share a group with them.
        for head in await context.store.heads(pass.ask, on: loop) {
            rules.formUnion(InvalidationRule.concerning(head, key).filter(\.isGroup))
        }
        for partial in context.partials.peek(key) { rules.formUnion(InvalidationRule.groups(partial.head.fields, key)) }
        for group in Caching.invalidatedGroups(method: pass.request.method, response: answer) {
            rules.insert(.group(group, of: key))
        }
        let elsewhere = pass.elsewhere(answer)
        let keys = Set([key] + pass.related(answer) + elsewhere.keys)
        await housekeeping.invalidate(Array(keys), rules, anyHost: elsewhere.anyHost)
    }

    /// Stores the answer; nil if it does not represent the target as for GET, or may not be stored.
    private func store(
        _ pass: UncachedRequest,
        _ head: FetchStream.Head,
        _ stream: FetchStream,
        _ requestTime: Int64,
        _ source: any FetchSource,
        _ forwardReason: ForwardReason,
        on loop: isolated EventLoop
    ) async -> Answer? {
        guard pass.request.method == .post else { return nil }
        let times = clock.times(since: requestTime)
        let decision = Caching.decideStore(
            request: pass.ask.request,
            response: head.response,
            policy: pass.ask.policy,
            times: times,
            url: pass.url
        )
        guard case .store = decision else { return nil }
        // The fetch begins after the invalidation, because the answer itself is not older than it.
        let fetch = context.inFlight.beginAlone(pass.ask)
        let runner = SharedFetchRunner(context: context, fetch: fetch, ask: pass.ask, source: source, stale: nil)
        let incoming = IncomingResponse(
            runner: runner,
            head: head,
            stream: stream,
            times: times,
            replaces: false,
            url: pass.url
        )
        let miss = MissContext(ask: pass.ask, source: source, stale: nil, newest: nil, forwardReason: forwardReason)
        do throws(FetchError) {
            try await incoming.begin(on: loop)
        } catch {
            context.inFlight.end(fetch)
            return answers.failure(error, forwardReason)
        }
        guard let outcome = fetch.outcome.value else { return nil }
        context.inFlight.send(.leaderAnswered, to: fetch)
        return sharedFetches.settled(miss, outcome, runner.takeLeaderReader(), isCollapsed: false, on: loop)
    }
}
