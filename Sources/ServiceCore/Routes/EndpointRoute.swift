// An endpoint with everything that is known before a request comes; requests without an endpoint have such a route,
// too.

package import DemoMode
package import DownloadCore
import HTTPCaching
import HTTPWire
import Policies

/// The route of an endpoint, or of the requests that no endpoint of a service names.
///
/// Sendable: it never changes. It is passed by reference, so that plans are not copied.
package final class EndpointRoute: Sendable {
    /// The endpoint; nil for requests without one.
    package let endpoint: EndpointPlan?
    /// The endpoint's name; empty for requests without one.
    package let name: String
    /// The number by which answers of the route are counted.
    package let number: RouteNumber
    package let request: RequestPlan
    /// The number of the settings that shape a head. A ready head with another number was made under other settings,
    /// and is not sent.
    package let headFormatIDs: ByReach<UInt64>
    /// The targets that the hot path can look up.
    package let hotKey: HotKey
    /// The demo answers, which replace stored and fetched ones; nil if demo mode is off.
    package let demo: DemoPlan?
    /// The sources that its answers come from, in an order of its own; nil: demo answers, then the cache and its origin.
    package let order: SourceOrder<EndpointRoute>?
    /// The fast ways that heed every feature of the route.
    package let openWays: FastWays
    /// The bytes of demo answers that need no waiting; nil if there are none.
    package let readyDemo: ReadyDemo?
    /// Whether requests only have to be forwarded.
    package let passThrough: PassThrough
    /// The rules of caching that decide about a forwarded answer.
    package let directRules: PassThroughRules
    /// Whether requests are not found, because the service answers only its endpoints, and this is the route without
    /// one.
    package let isUnlisted: Bool
    /// Whether the endpoint changes the target, the parameters or the content of requests.
    package let isShaped: Bool
    /// The lines of a key that separate the endpoint's stored responses from those of other endpoints, which may send
    /// other fields and credentials to the same target; empty if its targets are its own. No request field equals such
    /// a line, which has a space and no colon.
    package let keyLines: [String]

    /// Makes a route.
    /// - Parameter readyDemo: makes the bytes of demo answers that need no waiting.
    init(
        _ endpoint: EndpointPlan?,
        _ facts: RouteFacts,
        number: RouteNumber,
        headFormatIDs: ByReach<UInt64>,
        order: SourceOrder<EndpointRoute>?,
        readyDemo: (DemoRule) -> ReadyDemo?
    ) {
        let (request, openWays) = (facts.request, facts.openWays)
        self.endpoint = endpoint
        name = endpoint?.name ?? ""
        self.number = number
        self.request = request
        self.headFormatIDs = headFormatIDs
        self.openWays = openWays
        self.order = order
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
    /// The hot path looks up no target.
    case none
    /// The hot path looks up targets without a query, because some query items are not part of the key.
    case withoutQuery
    /// The hot path looks up all targets.
    case whole

    fileprivate init(_ rules: KeyRules) {
        self = rules.ignoreQuery.isEmpty ? .whole : .withoutQuery
    }
}

/// Whether requests of a route only have to be forwarded.
package enum PassThrough: Sendable {
    /// A source besides the origin may answer, or something has to be awaited.
    case never
    /// Nothing is stored or looked up.
    case always
    /// Only requests whose key had recent answers that could not be stored.
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
