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
    /// The ways that pass by nothing that the route has.
    package let openWays: FastWays
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

    /// - Parameter readyDemo: makes the bytes of the demo answers that need no waiting.
    init(
        _ endpoint: EndpointPlan?,
        _ facts: RouteFacts,
        headFormatID: UInt64,
        ladder: Ladder<EndpointRoute>?,
        readyDemo: (DemoRule) -> ReadyDemo?
    ) {
        let (request, openWays) = (facts.request, facts.openWays)
        self.endpoint = endpoint
        name = endpoint?.name ?? ""
        self.request = request
        self.headFormatID = headFormatID
        self.openWays = openWays
        self.ladder = ladder
        demo = facts.demo
        isUnlisted = facts.isUnlisted
        isShaped = request.shape != nil
        keyLines = request.shape?.to == nil ? [] : ["endpoint \(endpoint?.name ?? "")"]
        hotKey = openWays.contains(.stored) ? HotKey(request.key) : .none
        self.readyDemo = openWays.contains(.readyDemo) ? facts.demo?.plain.flatMap(readyDemo) : nil
        passThrough = PassThrough(request, openWays)
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

    fileprivate init(_ rules: KeyRules) {
        self = rules.ignoreQuery.isEmpty ? .whole : .withoutQuery
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

    fileprivate init(_ request: RequestPlan, _ openWays: FastWays) {
        if !openWays.contains(.unstored) {
            self = .never
        } else if !request.storesGet || request.policy.mode == .none {
            self = .always
        } else {
            self = openWays.contains(.uncacheable) ? .uncacheable : .never
        }
    }
}
