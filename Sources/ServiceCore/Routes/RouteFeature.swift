// The table of the features of routes, and of the fast ways that are open to a route with each of them.

import DemoMode
import HTTPCaching
import Policies

/// The fast ways, on which a request is answered, or begun, without the waiting path. Each gives the same answer as
/// that path.
package struct FastWays: OptionSet, Sendable {
    package let rawValue: UInt8

    package init(rawValue: UInt8) { self.rawValue = rawValue }

    /// A fresh stored response is sent, from memory or from an open file.
    package static let stored = FastWays(rawValue: 1)
    /// A demo answer is sent whose bytes were made with the plan.
    package static let readyDemo = FastWays(rawValue: 1 << 1)
    /// A request is forwarded whose answer is neither stored nor looked up.
    package static let unstored = FastWays(rawValue: 1 << 2)
    /// A request is forwarded whose key had recent answers that could not be stored.
    package static let uncacheable = FastWays(rawValue: 1 << 3)
    /// The latency of a demo answer is drawn before the rest of its request is processed.
    package static let earlyDraw = FastWays(rawValue: 1 << 4)

    /// Both ways of forwarding a request.
    package static let passThrough: FastWays = [.unstored, .uncacheable]
    package static let demo: FastWays = [.readyDemo, .earlyDraw]
    package static let all: FastWays = [.stored, .demo, .passThrough]
}

/// The properties of a route that decide about the fast ways of its requests.
struct RouteFacts {
    var request: RequestPlan
    let service: ServicePlan
    var access = AccessRules()
    /// Whether web pages of other origins may call the service.
    var hasCrossOrigin = false
    /// Whether the service asks the origin that a proxied request names.
    var asksNamedOrigin = false
    /// The demo answers; nil if demo mode is off.
    var demo: DemoPlan?
    /// Whether the service answers only its endpoints, and none of them names the request.
    var isUnlisted = false

    /// The fast ways that no feature of the route closes.
    var openWays: FastWays {
        RouteFeature.table.reduce(.all) { $1.isPart(self) ? $0.intersection($1.ways) : $0 }
    }
}

/// A feature of routes. It names the fast ways that stay open to a route with it, because they heed the feature; all
/// other ways are closed.
struct RouteFeature: Sendable {
    /// The member of ``RequestPlan``, ``ServicePlan``, ``ServiceRoute`` or ``EndpointRoute`` that is the feature, or,
    /// after a dot, a member of such a member. A test fails if a member has no row.
    let name: String
    /// Goes on although a route has the feature.
    var ways: FastWays
    /// Whether a route has the feature; asked when the plan is made.
    let isPart: @Sendable (RouteFacts) -> Bool

    private init(_ name: String, goesOn ways: FastWays, if isPart: @escaping @Sendable (RouteFacts) -> Bool) {
        self.name = name
        self.ways = ways
        self.isPart = isPart
    }

    /// Rows of features that all ways heed, or that no way needs.
    private static func everywhere(_ names: String...) -> [RouteFeature] {
        names.map { RouteFeature($0, goesOn: .all) { _ in false } }
    }

    static let all: [RouteFeature] = ofRequests + ofPolicies + ofServices + ofRoutes + ofDemo

    /// The table that plans are made by; a test makes some by one in which a row is wrong.
    @TaskLocal static var table = all

    /// The features that are members of ``RequestPlan``, and of its ``RoutePolicies``.
    private static let ofRequests: [RouteFeature] =
        [
            // The target is not the key: nothing would be found.
            RouteFeature("query", goesOn: [.passThrough, .demo]) { !$0.request.query.isEmpty },
            // A seed is looked up if nothing is stored, and before anything is fetched.
            RouteFeature("seed", goesOn: [.stored, .demo]) { $0.request.seed != nil },
            RouteFeature("phases", goesOn: [.stored, .demo]) { $0.request.phases != nil },
            RouteFeature("retry", goesOn: [.stored, .readyDemo]) { $0.request.policies.retry.count > 0 },
            // The latency passes before the first body is logged, so that it may be drawn early.
            RouteFeature("logBodies", goesOn: .earlyDraw) { $0.request.policies.logBodies != nil },
            RouteFeature("shape", goesOn: .demo) { $0.request.shape != nil },
            RouteFeature("redirects", goesOn: [.stored, .demo]) { $0.request.policies.redirects.limit > 0 },
            RouteFeature("recording", goesOn: [.stored, .demo]) { $0.request.recording != nil },
            RouteFeature("sources", goesOn: []) { !$0.request.sources.isEmpty },
            // Stored responses are mapped already, and so are the files of demo answers.
            RouteFeature("mapping", goesOn: [.stored, .demo]) { $0.request.mapping != nil },
            RouteFeature("errorMapping", goesOn: [.stored, .demo]) { $0.request.errorMapping != nil },
            // Faults are drawn together with a demo answer, and act when it is sent.
            RouteFeature("faults", goesOn: .earlyDraw) { $0.request.faults != nil },
            RouteFeature("rateLimit", goesOn: []) { $0.request.policies.rateLimit != nil },
        ]
        // The route's source, which all ways to the origin share, heeds these.
        + everywhere("rules", "authorization", "withholdsAuthorization", "timeouts", "learners", "onClientAbort")
        // Of the stages of an order of sources, which only the waiting path sees: `sources` closes all ways before them.
        + everywhere("asksNobody")
        // Only the waiting path fetches a response to store it.
        + everywhere("collapse", "storeAs", "storesGet", "storesPost", "recordings")

    /// The features that are members of a request's ``CachePolicy`` and ``KeyRules``: a ready head is made under one
    /// policy, and a forwarded answer is judged by it.
    private static let ofPolicies: [RouteFeature] =
        [
            // Nothing that is forwarded is stored, and what is a success decides about that alone: the way is closed for safety.
            RouteFeature("policy.success", goesOn: [.stored, .demo]) { $0.request.policy.success != nil },
            // A target has no lines for fields, which what is stored has: nothing would be found.
            RouteFeature("key.fields", goesOn: [.unstored, .demo]) { !$0.request.key.fields.isEmpty },
        ]
        // Rules about the query do not change the cache key of a target without a query.
        + everywhere("key.ignoreQuery", "policy.mode", "policy.ttl", "policy.ttlByStatus", "policy.overrideOrigin")
        + everywhere("policy.revalidate", "policy.staleIfError", "policy.otherVariant", "policy.staleWhileRevalidate")
        + everywhere("policy.maxVariants", "policy.targetedFields", "policy.memory", "policy.disk", "policy.compare")
        + everywhere("policy.checkPause", "policy.gone", "policy.minLength", "policy.setCookie", "policy.cookies")
        // These belong to the mapping, the phases and the error mapping, which have rows of their own.
        + everywhere("policy.mapping", "policy.expectation", "policy.isShared", "policy.mapsErrors")

    /// The features that are members of ``ServicePlan``.
    private static let ofServices: [RouteFeature] =
        [
            // There is no source to forward to.
            RouteFeature("origin", goesOn: [.stored, .demo]) { $0.service.origin == nil },
            // Calls may wait for the origin.
            RouteFeature("park", goesOn: [.stored, .demo]) { $0.service.park != nil },
            RouteFeature("examination", goesOn: []) { $0.service.examination != nil },
        ]
        // The route's source, which all ways to the origin share, heeds these.
        + everywhere("preservesHost", "proxies", "tls", "target", "responseLimits", "isLenient", "admission", "breaker")

    /// The features that are members of ``ServiceRoute`` and ``EndpointRoute``.
    private static let ofRoutes: [RouteFeature] =
        [
            // There is no one source to forward to. What is stored is found for a target that names the origin.
            RouteFeature("asksTarget", goesOn: [.stored, .demo]) { $0.asksNamedOrigin },
            RouteFeature("access", goesOn: []) { !$0.access.isEmpty },
            // A request with Origin takes the waiting path, and ready heads have Vary.
            RouteFeature("cors", goesOn: [.stored, .demo]) { $0.hasCrossOrigin },
            RouteFeature("isUnlisted", goesOn: .demo) { $0.isUnlisted },
            RouteFeature("demo", goesOn: .demo) { $0.demo != nil },
        ]
        // Foreign web pages and dot segments are refused on every way.
        + everywhere("addsCredentials", "guardsPaths")

    /// The features that are members of ``DemoPlan``, and properties of its only rule.
    private static let ofDemo: [RouteFeature] =
        [
            RouteFeature("demo.overrides", goesOn: []) { $0.demo?.overrides != nil },
            RouteFeature("demo.needsBody", goesOn: []) { $0.demo?.needsBody ?? false },
            // A request that no rule answers has been counted on the fast way, and must not be counted again.
            RouteFeature("demo.rules", goesOn: .readyDemo) { facts in
                guard let rules = facts.demo?.rules else { return false }
                return rules.contains { $0.gate != nil } && !rules.contains(where: \.isUnconditional)
            },
            // A failure that is drawn again has to wait, and a mapped failure is made when it is sent.
            RouteFeature("demo.failure", goesOn: .earlyDraw) { facts in
                facts.demo?.plain?.failure != nil
                    && (facts.request.policies.retry.count > 0 || facts.request.errorMapping != nil)
            },
            RouteFeature("demo.status", goesOn: .earlyDraw) { facts in
                guard facts.request.errorMapping != nil, let rule = facts.demo?.plain else { return false }
                return !facts.request.policy.isSuccess(rule.answer.status)
            },
        ]
        // Ready bytes exist only for one rule whose answer never varies, and a draw asks all of them.
        + everywhere("demo.seed", "demo.unmatched", "demo.bodyLimit", "demo.hasLatency")
}
