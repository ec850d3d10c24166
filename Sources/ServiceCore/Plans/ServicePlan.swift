// One service, compiled from the configuration: what it asks, whom, and within which limits. Immutable;
// a reload makes a new one.

package import CacheStore
package import DemoMode
package import DownloadCore
package import HTTPCaching
package import HTTPWire
import Mapping
package import Policies
package import Upstream

/// The plan for a request: the endpoint's, or the service's if no endpoint matches.
///
/// RouteFeature.swift says of each member which short ways go on with it.
package struct RequestPlan: Sendable, Equatable {
    /// What is obeyed as it is.
    package var policies = RoutePolicies()
    package var rules = FieldRules()
    package var query = QueryDefaults([])
    package var timeouts = Timeouts()
    package var policy: CachePolicy
    package var collapse = CollapseLimits()
    /// What makes two requests the same one.
    package var key = KeyRules()
    /// Answers to GET are stored, and looked up.
    package var storesGet = true
    /// Answers to POST are stored, by the digest of its content.
    package var storesPost = false
    /// The folder of responses that are there before the first fetch.
    package var seed: SeedFolder?
    /// Where a stored 200 is kept as a file, too; endpoints of one resource only.
    package var storeAs: String?
    /// Substitute answers, and the kind of body that an answer must have; nil if the configuration asks for neither.
    package internal(set) var phases: PhasePlan?
    package var onClientAbort = ClientAbort.finish
    /// The value of Authorization that an endpoint adds instead of its service's; nil: the service's.
    package var authorization: String?
    /// The service's Authorization is not added to requests of an endpoint.
    package var withholdsAuthorization = false
    /// What an endpoint makes of a request; nil: nothing.
    package var shape: RequestShape?
    /// How recordings are used; nil: its answers come from its origin.
    package private(set) var recording: RecordingPlan?
    /// Where its recordings are, whether they answer or not; nil where the configuration names no folder.
    package let recordings: RecordingPlan?
    /// Where its answers come from, in order; empty: as its source says, in the order of the cache.
    package var rungs: [AnswerRung] = []
    /// Nobody is to be asked, whatever its service has: what is not at hand is a failure.
    var asksNobody = false
    /// What becomes of the documents of its answers; nil: they stay as they are. The digest of it is in ``policy``.
    package let mapping: ResponseMapping?
    /// What its failed answers become; nil: they stay as they are.
    package let errorMapping: ErrorMapping?
    /// What goes wrong on purpose between an answer and its client; nil: nothing.
    package var faults: FaultPlan?
    /// Who learns how long its origin takes.
    package var learners: [LearnedLatency] = []

    /// With what its policy has to know of.
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
        // A stored answer would come before the recording that is to be made or played.
        if recording != nil { self.policy.mode = .none }
    }

    /// With these rules and deadlines, and nothing else.
    package init(rules: FieldRules = FieldRules(), timeouts: Timeouts) {
        self.init()
        self.rules = rules
        self.timeouts = timeouts
    }
}

extension RequestPlan {
    /// Answers from its recordings alone from now on.
    mutating func replay() {
        recording = recordings.map {
            RecordingPlan(source: .replay, rules: $0.rules, folder: $0.folder, secrets: $0.secrets)
        }
        policy.mode = .none
    }

    /// Answers may be stored under several keys of one URL.
    package var sharesURL: Bool { storesPost || !key.fields.isEmpty }

    /// Some of its responses may be stored.
    package var storesAnything: Bool { policy.mode != .none && (storesGet || storesPost) }
}

/// A method and a path pattern of a service.
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
    /// What the service changes in the fields of a request of this plan.
    package func change(_ request: RequestPlan) -> FieldChange {
        FieldChange(rules: request.rules, authorization: authorization(of: request))
    }

    /// The value of Authorization that is added to a request of this plan; nil: none.
    func authorization(of request: RequestPlan) -> String? {
        request.withholdsAuthorization ? nil : request.authorization ?? authorization
    }
}

extension ServicePlan {
    /// As errors name it.
    var label: String { name.isEmpty ? "forward mode" : "service \(name)" }
}

/// A service.
package struct ServicePlan: Sendable {
    /// Empty in forward mode.
    package let name: String
    /// Nil where the service asks another service, or only plays demo answers.
    package let origin: OriginAddress?
    /// The client's Host goes on instead of the base URL's.
    package let preservesHost: Bool
    package let request: RequestPlan
    /// The value of Authorization that the service adds; the client's own is dropped then.
    package let authorization: String?
    /// The proxies that origins are reached through.
    package let proxies: UpstreamProxies
    package let tls: TLSOptions
    package let target: TargetRules
    /// The limits of a response head.
    package let responseLimits: HeadLimits
    /// Whether responses that break a rule of HTTP/1.1, but can be read in one way only, are taken.
    package let isLenient: Bool
    package let admission: AdmissionLimits
    /// When the origin is left alone; nil: never.
    package let breaker: BreakerPolicy?
    /// Whether calls wait for an origin that is away; nil: none does.
    package let park: ParkPolicy?
    /// How requests are examined before they are answered; nil: they are not.
    package let examination: RequestExamination?
    /// More specific patterns first.
    package let endpoints: [EndpointPlan]
    /// The same by method and path; nil without endpoints, so that a service that has none is asked nothing more on a
    /// hit.
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
    /// What of the plan the download core does.
    func apply(to ask: inout CacheRequest) {
        ask.seed = seed
        ask.phases = phases
        ask.onClientAbort = onClientAbort
        ask.mayReadSlowly = faults != nil
    }
}
