// The plan of one service, compiled from the configuration: its requests, its origin and its limits. Immutable; a
// reload makes a new one.

package import CacheStore
package import DemoMode
package import DownloadCore
package import HTTPCaching
package import HTTPWire
import Mapping
package import Policies
package import Upstream

/// The plan for a request: that of the endpoint, or of the service if no endpoint matches.
///
/// ``RouteFeature`` says for each member which fast ways are open to a route with it.
package struct RequestPlan: Sendable, Equatable {
    /// The policies that the cores obey unchanged.
    package var policies = RoutePolicies()
    package var rules = FieldRules()
    package var query = QueryDefaults([])
    package var timeouts = Timeouts()
    package var policy: CachePolicy
    package var collapse = CollapseLimits()
    /// The rules for the cache key.
    package var key = KeyRules()
    /// Whether answers to GET are stored and looked up.
    package var storesGet = true
    /// Whether answers to POST are stored, under a key with the digest of the request's content.
    package var storesPost = false
    /// The folder of responses that exist before the first fetch; nil for none.
    package var seed: SeedFolder?
    /// The path of the file in which a stored 200 is also kept; nil for none. For endpoints of one resource only.
    package var storeAs: String?
    /// Substitute answers, and the kind of body that an answer must have; nil if the configuration asks for neither.
    package internal(set) var phases: PhasePlan?
    package var onClientAbort = AbandonmentPolicy.finish
    /// The value of Authorization that an endpoint adds instead of its service's; nil for the service's.
    package var authorization: String?
    /// Whether the service's Authorization is not added to requests of an endpoint.
    package var withholdsAuthorization = false
    /// The changes of an endpoint to a request; nil for none.
    package var shape: RequestShape?
    /// The use of recordings for answers; nil if answers come from the origin.
    package private(set) var recording: RecordingPlan?
    /// The recordings of the route, whether they answer or not; nil if the configuration names no folder.
    package let recordings: RecordingPlan?
    /// Where its answers come from, in order; empty: as its source says, in the order of the cache.
    package var sources: [OrderedSource] = []
    /// Whether no origin may be asked, whatever the service has: an answer that is not at hand is a failure.
    var asksNobody = false
    /// The mapping of documents in answers; nil for none. Its digest is in ``policy``.
    package let mapping: ResponseMapping?
    /// The mapping of failed answers; nil for none.
    package let errorMapping: ErrorMapping?
    /// The deliberate faults between an answer and its client; nil for none.
    package var faults: FaultPlan?
    /// The learners of the origin's latency.
    package var learners: [LearnedLatency] = []

    /// Makes a plan, and completes its policy by the properties of the other members.
    package init(
        policy: CachePolicy = CachePolicy(),
        phases: PhasePlan? = nil,
        recordings: RecordingPlan? = nil,
        mapping: ResponseMapping? = nil,
        errorMapping: ErrorMapping? = nil
    ) {
        self.policy = policy
        self.phases = phases
        self.recordings = recordings
        recording = recordings.flatMap { $0.source == .live ? nil : $0 }
        self.mapping = mapping
        self.errorMapping = errorMapping
        self.policy.mapping = mapping?.plan.digest
        self.policy.expectation = phases?.expectation
        self.policy.mapsErrors = errorMapping != nil
        // A stored answer would come before the recording that is made or replayed.
        if recording != nil { self.policy.mode = .none }
    }

    /// Makes a plan with rules and deadlines only.
    package init(rules: FieldRules = FieldRules(), timeouts: Timeouts) {
        self.init()
        self.rules = rules
        self.timeouts = timeouts
    }
}

extension RequestPlan {
    /// Restricts the plan to answers from recordings.
    mutating func replay() {
        recording = recordings.map {
            RecordingPlan(source: .replay, rules: $0.rules, folder: $0.folder, secrets: $0.secrets)
        }
        policy.mode = .none
    }

    /// Whether answers may be stored under several keys of one URL.
    package var sharesURL: Bool { storesPost || !key.fields.isEmpty }

    /// Whether some responses of the plan may be stored.
    package var storesAnything: Bool { policy.mode != .none && (storesGet || storesPost) }
}

/// An endpoint of a service: a method and a path pattern.
package struct EndpointPlan: Sendable {
    package let name: String
    package let method: Method
    package let pattern: PathPattern
    package let request: RequestPlan

    package init(name: String, method: Method, pattern: PathPattern, request: RequestPlan) {
        self.name = name
        self.method = method
        self.pattern = pattern
        self.request = request
    }
}

extension ServicePlan {
    /// The changes of the service to the fields of a request with this plan.
    package func change(_ request: RequestPlan) -> FieldChange {
        FieldChange(rules: request.rules, authorization: authorization(of: request))
    }

    /// The value of Authorization that is added to a request with this plan; nil for none.
    func authorization(of request: RequestPlan) -> String? {
        request.withholdsAuthorization ? nil : request.authorization ?? authorization
    }
}

extension ServicePlan {
    /// The name of the service in errors.
    var label: String { name.isEmpty ? "forward mode" : "service \(name)" }
}

/// The immutable properties of one service.
package struct ServicePlan: Sendable {
    /// The name; empty for forward mode.
    package let name: String
    /// The origin; nil if the service asks another service, or only plays demo answers.
    package let origin: OriginAddress?
    /// Whether the origin gets the client's Host instead of the base URL's.
    package let preservesHost: Bool
    package let request: RequestPlan
    /// The value of Authorization that the service adds instead of the client's; nil for none.
    package let authorization: String?
    /// The proxies that origins are reached through.
    package let proxies: UpstreamProxies
    package let tls: TLSOptions
    package let target: TargetRules
    /// The limits of a response head.
    package let responseLimits: HeadLimits
    /// Whether a response is accepted that breaks a rule of HTTP/1.1, but can be read in one way only.
    package let isLenient: Bool
    package let admission: AdmissionLimits
    /// The conditions for leaving the origin alone; nil if it is never left alone.
    package let breaker: BreakerPolicy?
    /// The limits of calls that wait for an origin that is away; nil if none waits.
    package let park: ParkPolicy?
    /// The check of requests before they are answered; nil for none.
    package let examination: RequestExamination?
    /// The endpoints, the more specific patterns first.
    package let endpoints: [EndpointPlan]
    /// The index of the endpoints by method and path; nil without endpoints, so that a hit of such a service needs no
    /// lookup.
    package let paths: PathIndex?

    package init(
        name: String,
        origin: OriginAddress?,
        preservesHost: Bool = false,
        request: RequestPlan = RequestPlan(),
        authorization: String? = nil,
        proxies: UpstreamProxies = .none,
        tls: TLSOptions = TLSOptions(),
        target: TargetRules = .any,
        responseLimits: HeadLimits = .response,
        isLenient: Bool = true,
        admission: AdmissionLimits = AdmissionLimits(),
        breaker: BreakerPolicy? = nil,
        park: ParkPolicy? = nil,
        examination: RequestExamination? = nil,
        endpoints: [EndpointPlan] = []
    ) {
        self.name = name
        self.origin = origin
        self.preservesHost = preservesHost
        self.request = request
        self.authorization = authorization
        self.proxies = proxies
        self.tls = tls
        self.target = target
        self.responseLimits = responseLimits
        self.isLenient = isLenient
        self.admission = admission
        self.breaker = breaker
        self.park = park
        self.examination = examination
        self.endpoints = endpoints
        paths = endpoints.isEmpty ? nil : PathIndex(endpoints.map { ($0.method, $0.pattern) })
    }
}

extension RequestPlan {
    /// Copies the parts of the plan that the download core obeys into a request.
    func apply(to ask: inout CacheRequest) {
        ask.seed = seed
        ask.phases = phases
        ask.onClientAbort = onClientAbort
        ask.mayReadSlowly = faults != nil
    }
}
