// The core's part in pass-through: whether a request may be forwarded without a task, and what its answer says.

package import CacheStore
package import EventLoop
package import HTTPCaching
package import HTTPWire

/// The policy by which answers are judged. It is an object because copying the policy with every request
/// takes longer than a reference.
///
/// Sendable: nothing in it changes.
package final class PassThroughRules: Sendable {
    package let policy: CachePolicy

    package init(_ policy: CachePolicy) { self.policy = policy }
}

/// A request that goes to its origin as it is; an object, since it is long and passed around.
///
/// `@unchecked Sendable`: constant, as its superclass asks for.
package final class PassThroughRequest: FetchEntry, @unchecked Sendable {  // protected as the comment above says
    package let method: Method
    /// Path and query on the origin.
    let path: String
    /// The fields that are sent to the origin, without those that the source adds.
    let fields: Fields
    /// The client's Host, where its service passes that on.
    private let clientHost: String?
    /// The client's end-to-end fields.
    let asked: Fields
    /// The rules that judge the answer; nil where nothing is stored or looked up.
    let rules: PassThroughRules?

    /// - Parameters:
    ///   - fields: the fields that are sent to the origin, without those that the source adds.
    ///   - asked: the client's end-to-end fields.
    ///   - key: of a GET of its target.
    ///   - rules: the rules that judge the answer; nil where nothing is stored or looked up.
    ///   - loop: of the fetch.
    package init(
        _ method: Method,
        path: String,
        fields: Fields,
        clientHost: String?,
        asked: Fields,
        key: CacheKey,
        rules: PassThroughRules?,
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
    var forwardReason: ForwardReason {
        rules == nil ? ForwardReason(.bypass, StoreRefusal.cacheOff.rawValue) : ForwardReason(.uriMiss)
    }
}

extension Forwarder {
    /// ``DownloadCore/isKnownUncacheable(_:_:)``
    func isKnownUncacheable(_ key: CacheKey, _ rules: PassThroughRules) -> Bool {
        hitForMiss.contains(key, now: clock.now())
            && !store.mayHold(key, rules.policy)
            && partials.peek(key).isEmpty
    }

    /// ``DownloadCore/listing(of:_:)``
    func listing(of fetch: any ListedFetch, _ ask: PassThroughRequest) -> FetchListing {
        FetchListing(in: fetches, ask, fetch)
    }

    /// ``DownloadCore/forwardReason(of:_:)``
    func forwardReason(of ask: PassThroughRequest, _ head: ResponseHead) -> ForwardReason {
        var forwardReason = ask.forwardReason
        if let rules = ask.rules { forwardReason.reason = judge(head, ask, rules) }
        return forwardReason
    }

    /// ``DownloadCore/answer(_:_:_:_:)``
    func answer(_ ask: PassThroughRequest, _ head: ResponseHead, _ framing: BodyFraming, _ forwardReason: ForwardReason)
        -> Answer
    {
        answers.forwardedAnswer(head, framing, isHead: ask.method == .head, forwardReason)
    }

    /// Judges a forwarded answer, which is never stored itself. If it could have been, the key is no longer remembered
    /// as uncacheable, and its next response is stored.
    /// - Returns: why it is not stored.
    private func judge(_ head: ResponseHead, _ ask: PassThroughRequest, _ rules: PassThroughRules) -> String {
        let times = clock.times()
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
                hitForMiss.note(ask.key, now: times.responseTime)
            }
            return refusal.rawValue
        case .store:
            hitForMiss.forget(ask.key)
            return CacheStatus.Detail.uncacheable.rawValue
        }
    }

    /// ``DownloadCore/failure(_:_:)``
    func failure(_ error: FetchError, _ ask: PassThroughRequest) -> Answer { answers.failure(error, ask.forwardReason) }
}
