// What would become of a request that no client has sent, as values: its route, what is stored for it, and what it would
// meet on its way to the origin.

package import DownloadCore
import HTTPCaching
package import HTTPWire
package import Policies
package import ServiceCore
import Upstream

/// The explanation of a request. It has the values of its route as they are, secrets of its target among them: who shows it
/// leaves them out.
package struct RequestExplanation: Sendable {
    /// What takes the request.
    package enum Kind: Sendable, Equatable {
        case service, forward
        /// A demo answer is played.
        case demo
        /// The request upgrades: bytes go through a tunnel, and nothing is stored.
        case tunnel
    }

    /// The route that the request takes.
    package struct Route: Sendable, Equatable {
        package var kind: Kind
        /// The name of the service; nil in forward mode.
        package var service: String?
        /// The host and the prefix by which clients find the service; nil in forward mode.
        package var match: String?
        package var endpoint: String?
        /// The URL that the origin is asked for; nil for a demo answer.
        package var asks: String?
        /// The proxy on the way to the origin, as `HOST:PORT`; nil if there is none.
        package var proxy: String?
        /// The name of the OpenAPI document that requests are checked by.
        package var document: String?
        /// Whether a request that violates the document is refused, and not only reported.
        package var isRefusedByDocument = false
    }

    /// Why nothing is stored or looked up.
    package enum Bypass: Sendable, Equatable {
        /// The request switches to another protocol.
        case upgrade
        case demo
        /// The sources of `from` answer in their order.
        case from
        /// The route's `source` says who answers.
        case recording
        /// The method has content that no key is made of.
        case content
        /// A POST whose answers `cache.methods` lets be stored: its content is a part of the key, and is not here.
        case storedPost
        case seed
        case cacheOff
    }

    /// What the store says about the request.
    package struct Stored: Sendable {
        /// How the request would be validated.
        package var revalidate: ValidationMethod
        package var explanation: StoredExplanation

        package var outcome: StoredExplanation.Outcome { explanation.outcome }
    }

    /// A rule of demo mode; the rules are listed in the order in which they are tried.
    package struct DemoRuling: Sendable, Equatable {
        /// The name of the rule; nil for the answer of the endpoint or the service itself.
        package var rule: String?
        /// True if the rule answers the request.
        package var answers: Bool
        /// The reasons why the rule does not answer; empty for rules behind the one that answers.
        package var differences: [String]
    }

    /// A source of the route's answers, and what it would do if it were asked now.
    package struct SourceRuling: Sendable, Equatable {
        package var source: OrderedSource
        package var says: Says

        /// What a source says of the request.
        package enum Says: Sendable, Equatable {
            case noDemoAnswers
            /// No rule of demo mode is for the request; the differences of the last one.
            case noDemoRule([String])
            /// The rule of demo mode that answers; nil for the answer of the endpoint or the service itself.
            case demoRule(String?)
            /// A recording, of this time in Unix seconds.
            case recorded(Int64)
            case notRecorded(String)
            case offline
            /// What the request would hear.
            case refused(String)
            case notOfItsMethod
            /// The URL that is asked for, or the root of its origin; nil for the origin of another service.
            case asks(String?)
            case noFallback
            case fallback(status: Int, path: String)
            case noSeed, seed
            case nothingStored
            /// A stored response that is fresh for so many seconds.
            case fresh(Int64)
            /// A stored response that answers up to so many seconds past its freshness.
            case stale(Int64)
            /// A stored response that does not answer, with the rule.
            case notAllowed(reason: String, section: String)
        }

        /// True if the source would answer; for `live`, if it would be asked.
        package var answers: Bool {
            switch says {
            case .demoRule, .recorded, .asks, .fallback, .seed, .fresh, .stale: true
            case .noDemoAnswers, .noDemoRule, .notRecorded, .offline, .refused, .notOfItsMethod, .noFallback, .noSeed,
                .nothingStored, .notAllowed:
                false
            }
        }
    }

    /// Another URL by which clients reach the same URL of the origin.
    package struct Way: Sendable, Equatable {
        package var service: String
        package var url: String
    }

    package var request: RequestHead
    package var route: Route
    /// What the rules about proxied requests say, up to the one that takes the request; nil for other requests.
    package var proxied: [ProxyRuling]?
    /// Unix seconds.
    package var now: Int64
    package var isOffline: Bool
    /// Why nothing is stored or looked up; nil if ``stored`` says what is.
    package var bypass: Bypass?
    package var stored: Stored?
    /// What the request would meet on its way to the origin; `.asked` if nobody is asked, too.
    package var outlook = OriginOutlook.asked
    /// Whether the call of a service is held that is refused; nil where the service holds none.
    package var parking: ParkingOutlook?
    /// The rules of demo mode up to the one that answers; nil if demo mode is off.
    package var demo: [DemoRuling]?
    /// The sources in the order of the route; nil if it has no order of its own.
    package var sources: [SourceRuling]?
    package var ways: [Way] = []
}

extension RequestExplanation.Route {
    init(_ match: RouteMatch) {
        let route = match.route
        kind = route.isForward ? .forward : .service
        if !route.isForward {
            service = route.plan.name
            self.match = route.mountPoint
            endpoint = match.endpoint.endpoint?.name
        }
        proxy = match.origin.flatMap { route.plan.proxies.proxy(to: $0)?.authority }
        document = route.plan.examination?.document
        isRefusedByDocument = route.plan.examination?.refuses ?? false
    }
}

extension StoredExplanation {
    /// What becomes of a request that is looked up.
    package enum Outcome: String, Sendable {
        /// The store answers.
        case answer
        /// The store answers, and the response is revalidated in the background.
        case refresh
        /// The origin is asked to validate the stored response.
        case check
        /// The origin is asked for the whole response.
        case fetch
        /// The origin is asked for a range: the missing one, or the one that the request wants.
        case part
        /// The answer is a 504: no origin is asked.
        case refuse
    }

    package var outcome: Outcome {
        switch part {
        case .answer?: return .answer
        case .ask?: return .part
        case .refuse?: return .refuse
        case nil: break
        }
        switch rules.decision {
        case .fresh: return .answer
        case .staleAllowed(_, _, let allowance): return allowance == .whileRevalidate ? .refresh : .answer
        case .onlyIfCachedMiss: return .refuse
        case .stale, .mismatch, nil:
            if rules.isOffline || rules.onlyIfCached { return .refuse }
            return rules.check == nil ? .fetch : .check
        }
    }

    /// The origin is asked, and by this request: who joins a fetch that is under way asks nobody.
    var asksByItself: Bool {
        switch outcome {
        case .check, .fetch, .part: fills == 0 || isRememberedAsUncacheable
        case .answer, .refresh, .refuse: false
        }
    }
}
