// An endpoint with everything that is known before a request comes; the requests that no endpoint names have one of
// their own.

package import DemoMode
package import DownloadCore
import HTTPCaching
import HTTPWire
import Policies

/// An endpoint with everything that its answers need; the service itself stands in one, too.
///
/// Sendable: nothing in it changes. One reference is passed on where a plan would be copied.
package final class EndpointRoute: Sendable {
    /// nil for the requests that no endpoint names.
    package let endpoint: EndpointPlan?
    /// The endpoint's name; empty for the requests that no endpoint names.
    package let name: String
    package let request: RequestPlan
    /// The number of the settings that shape a head. A ready head with another number was made under other settings,
    /// and is not sent.
    package let headFormatID: UInt64
    /// The targets that the hot path can look up.
    package let hotKey: HotKey
    /// Answers instead of anything stored or fetched; nil where demo mode is off.
    package let demo: DemoPlan?
    /// The places that its answers come from, in an order of its own; nil: demo answers, then the cache and its origin.
    package let ladder: Ladder<EndpointRoute>?
    /// The bytes of those demo answers that need no waiting; nil if there are none.
    package let readyDemo: ReadyDemo?
    /// Whether requests only have to be forwarded.
    package let passThrough: PassThrough
    /// The rules of caching by which an answer that is forwarded is judged.
    package let directRules: PassThroughRules
    /// The service answers only its endpoints, and these are the requests that none of them names: they are not found.
    package let isUnlisted: Bool
    /// The endpoint makes another request of a client's.
    package let isShaped: Bool
    /// What tells its stored responses from those of other endpoints, which may ask the origin for the same target with
    /// other fields and credentials; empty where its targets are its own. No field makes such a line, which has a space
    /// and no colon.
    package let keyLines: [String]

    /// - Parameters:
    ///   - isUnlisted: the service answers only its endpoints, and these are the requests that none of them names.
    ///   - isOpen: there is nothing that the hot path would pass by: no access rules, no log of bodies, no
    ///     faults, no quota and no examination.
    init(
        _ endpoint: EndpointPlan?,
        _ request: RequestPlan,
        headFormatID: UInt64,
        demo: DemoPlan?,
        readyDemo: ReadyDemo?,
        ladder: Ladder<EndpointRoute>?,
        isUnlisted: Bool,
        passesOnly: Bool,
        isOpen: Bool
    ) {
        self.endpoint = endpoint
        name = endpoint?.name ?? ""
        self.request = request
        self.headFormatID = headFormatID
        self.demo = demo
        self.readyDemo = readyDemo
        self.ladder = ladder
        self.isUnlisted = isUnlisted
        isShaped = request.shape != nil
        keyLines = request.shape?.to == nil ? [] : ["endpoint \(endpoint?.name ?? "")"]
        let answersItself = demo != nil || ladder != nil || isUnlisted || request.asksNobody
        let isPlain = isOpen && !isShaped && !answersItself
        hotKey = request.query.isEmpty && isPlain ? HotKey(request.key) : .none
        passThrough = PassThrough(request, isPlain: passesOnly && !answersItself && !isShaped)
        directRules = PassThroughRules(request.policy)
    }
}

/// The targets whose bytes are the whole cache key, so that the hot path can look it up without a parse.
package enum HotKey: Sendable {
    /// No target.
    case none
    /// Targets without a query only: some items of a query do not enter the key.
    case withoutQuery
    /// All targets.
    case whole

    init(_ rules: KeyRules) {
        self = !rules.fields.isEmpty ? .none : rules.ignoreQuery.isEmpty ? .whole : .withoutQuery
    }
}

/// Whether requests of a route only have to be forwarded.
package enum PassThrough: Sendable {
    /// Something besides the origin may answer, or has to be waited for.
    case never
    /// Nothing is stored or looked up.
    case always
    /// Only for keys of which recent answers could not be stored.
    case uncacheable

    /// - Parameter isPlain: the route's caching rules alone decide about answers: it has no demo answers, no list of
    ///   paths, no CORS, no calls that wait for the origin.
    init(_ request: RequestPlan, isPlain: Bool) {
        if !isPlain || request.seed != nil || request.phases != nil || request.retry.count > 0
            || request.redirects.limit > 0 || request.mapping != nil || request.errorMapping != nil
            || request.recording != nil
            || request.policy.success != nil
        {
            self = .never
        } else if request.policy.mode == .none || !request.storesGet {
            self = .always
        } else {
            self = request.key.fields.isEmpty ? .uncacheable : .never
        }
    }
}
