// What answers the requests of one endpoint, or those of a service that no endpoint names: everything that is known before a request comes.

package import DemoMode
package import DownloadCore
internal import HTTPCaching
internal import HTTPWire
internal import Policies

/// An endpoint with everything that its answers need; the service itself stands in one, too.
///
/// Sendable: nothing in it changes. One reference is passed on where a plan would be copied.
package final class EndpointRoute: Sendable {
    /// Nil for what no endpoint names.
    package let endpoint: EndpointPlan?
    package let request: RequestPlan
    /// What a ready head must have been made for: it changes with whatever shapes the answer.
    package let shape: UInt64
    /// Which targets say all of a key.
    package let hotKey: HotKey
    /// Answers instead of anything stored or fetched; nil where demo mode is off.
    package let demo: DemoRule?
    /// The same, as far as it needs no waiting.
    package let readyDemo: ReadyDemo?
    /// Whether requests only have to be passed on.
    package let passThrough: PassThrough
    /// The rules of caching by which an answer that is passed on is judged.
    package let directRules: DirectRules
    /// The service answers what its endpoints name, and this is none of them.
    package let isUnlisted: Bool

    /// - Parameter isUnlisted: the service answers only what its endpoints name, and this is what they do not.
    init(
        _ endpoint: EndpointPlan?,
        _ request: RequestPlan,
        shape: UInt64,
        demo: DemoRule?,
        readyDemo: ReadyDemo?,
        isUnlisted: Bool,
        passesOnly: Bool
    ) {
        self.endpoint = endpoint
        self.request = request
        self.shape = shape
        self.demo = demo
        self.readyDemo = readyDemo
        self.isUnlisted = isUnlisted
        let answersItself = demo != nil || isUnlisted
        hotKey = request.query.isEmpty && !answersItself ? HotKey(request.key) : .none
        passThrough = PassThrough(request, isPlain: passesOnly && !answersItself)
        directRules = DirectRules(request.policy)
    }

    /// The endpoint's name; empty for what no endpoint names.
    package var name: String { endpoint?.name ?? "" }
}

/// Which targets say all of a key, so that the hot path may look it up.
package enum HotKey: Sendable {
    case none
    /// Those without a query: some items of it do not enter the key.
    case withoutQuery
    case whole

    init(_ rules: KeyRules) {
        self = !rules.fields.isEmpty ? .none : rules.ignoreQuery.isEmpty ? .whole : .withoutQuery
    }
}

/// Whether requests of a route only have to be passed on.
package enum PassThrough: Sendable {
    /// Something besides the origin may answer, or has to be waited for.
    case never
    /// Nothing is stored or looked up.
    case always
    /// Where it is known that the answers cannot be stored.
    case uncacheable

    /// - Parameter isPlain: nothing of the route's but its rules of caching has a say in answers.
    init(_ request: RequestPlan, isPlain: Bool) {
        if !isPlain || request.seed != nil || request.phases != nil || request.retry.count > 0 {
            self = .never
        } else if request.policy.mode == .none || !request.storesGet {
            self = .always
        } else {
            self = request.key.fields.isEmpty ? .uncacheable : .never
        }
    }
}
