// Requests that only their origin answers, as whoever passes them on without a task needs them: may I, and what is the
// answer?

package import CacheStore
package import EventLoop
package import HTTPCaching
package import HTTPWire

/// The policy by which answers are judged, held by one reference where the policy itself would be copied with every
/// request.
///
/// Sendable: nothing in it changes.
package final class DirectRules: Sendable {
    package let policy: CachePolicy

    package init(_ policy: CachePolicy) { self.policy = policy }
}

/// A request that goes to its origin as it is; an object, since it is long and passed around.
///
/// `@unchecked Sendable`: constant, as its superclass asks for.
package final class DirectAsk: FetchEntry, @unchecked Sendable {  // protected as the comment above says
    package let method: Method
    /// Path and query on the origin.
    let path: String
    /// As they go out, but for what the source adds.
    let fields: Fields
    /// The client's Host, where its service passes that on.
    private let clientHost: String?
    /// The client's end-to-end fields.
    let asked: Fields
    /// By which an answer is judged; nil where nothing is stored or looked up.
    let rules: DirectRules?

    /// - Parameters:
    ///   - fields: as they go out, but for what the source adds.
    ///   - asked: the client's end-to-end fields.
    ///   - key: of a GET of its target.
    ///   - rules: by which an answer is judged; nil where nothing is stored or looked up.
    ///   - loop: of the fetch.
    package init(
        _ method: Method,
        path: String,
        fields: Fields,
        clientHost: String?,
        asked: Fields,
        key: CacheKey,
        rules: DirectRules?,
        on loop: EventLoop
    ) {
        self.method = method
        self.path = path
        self.fields = fields
        self.clientHost = clientHost
        self.asked = asked
        self.rules = rules
        super.init(key, on: loop)
    }

    /// What the origin is asked.
    package var request: FetchRequest {
        FetchRequest(method: method, path: path, fields: fields, clientHost: clientHost)
    }

    /// Why it goes to the origin, as far as that is known before an answer.
    var way: Way { rules == nil ? Way(.bypass, StoreRefusal.cacheOff.rawValue) : Way(.uriMiss) }
}

extension Forwarder {
    /// ``DownloadCore/isKnownUncacheable(_:_:)``
    func isKnownUncacheable(_ key: CacheKey, _ rules: DirectRules) -> Bool {
        context.notes.uncacheable.contains(key, now: context.clock.now())
            && !context.store.mayHold(key, rules.policy)
            && context.partials.peek(key).isEmpty
    }

    /// ``DownloadCore/listing(of:_:)``
    func listing(of fetch: any ListedFetch, _ ask: DirectAsk) -> FetchListing {
        FetchListing(in: context.fetches, ask, fetch)
    }

    /// ``DownloadCore/way(of:_:)``
    func way(of ask: DirectAsk, _ head: ResponseHead) -> Way {
        var way = ask.way
        if let rules = ask.rules { way.reason = judge(head, ask, rules) }
        return way
    }

    /// ``DownloadCore/answer(_:_:_:_:)``
    func answer(_ ask: DirectAsk, _ head: ResponseHead, _ framing: BodyFraming, _ way: Way) -> Answer {
        answers.passedOn(head, framing, isHead: ask.method == .head, way)
    }

    /// What was refused before mostly is again. Where it is not, the next request finds the key forgotten and stores.
    /// - Returns: why it is not stored.
    private func judge(_ head: ResponseHead, _ ask: DirectAsk, _ rules: DirectRules) -> String {
        let times = context.clock.times()
        let decision = Caching.decideStore(
            ask.method,
            ask.asked,
            response: head,
            policy: rules.policy,
            times: times
        )
        switch decision {
        case .refuse(.status206) where !ask.fields.contains(.range): return PartMismatch.unasked.detail
        case .refuse(let refusal):
            if refusal.isLasting(status: head.status) {
                context.notes.uncacheable.note(ask.key, now: times.responseTime)
            }
            return refusal.rawValue
        case .store:
            context.notes.uncacheable.forget(ask.key)
            return CacheStatus.Detail.uncacheable.rawValue
        }
    }

    /// ``DownloadCore/failure(_:_:)``
    func failure(_ error: FetchError, _ ask: DirectAsk) -> Answer { answers.failure(error, ask.way) }
}
