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
package struct RequestPlan: Sendable, Equatable {
    package var rules: FieldRules
    package var query: QueryDefaults
    package var timeouts: Timeouts
    package var policy: CachePolicy
    package var collapse: CollapseLimits
    /// What makes two requests the same one.
    package var key: KeyRules
    /// Answers to GET are stored, and looked up.
    package var storesGet: Bool
    /// Answers to POST are stored, by the digest of its content.
    package var storesPost: Bool
    /// The folder of responses that are there before the first fetch.
    package var seed: SeedFolder?
    /// Where a stored 200 is kept as a file, too; endpoints of one resource only.
    package var storeAs: String?
    /// Substitute answers, and the kind of body that an answer must have; nil if the configuration asks for neither.
    package var phases: PhasePlan?
    package var onClientAbort: ClientAbort
    /// How a fetch that failed is made again.
    package var retry: RetryPolicy
    /// Bytes of each body that are logged; nil: none, and the hot path may answer.
    package var logBodies: Int?
    /// The value of Authorization that an endpoint adds instead of its service's; nil: the service's.
    package var authorization: String?
    /// The service's Authorization is not added to requests of an endpoint.
    package var withholdsAuthorization: Bool
    /// What an endpoint makes of a request; nil: nothing.
    package var shape: RequestShape?
    /// Whether redirects are followed.
    package var redirects: RedirectPolicy
    /// How recordings are used; nil: its answers come from its origin.
    package private(set) var recording: RecordingPlan?
    /// Where its recordings are, whether they answer or not; nil where the configuration names no folder.
    package let recordings: RecordingPlan?
    /// Where its answers come from, in order; empty: as its source says, in the order of the cache.
    package internal(set) var rungs: [AnswerRung]
    /// Nobody is to be asked, whatever its service has: what is not at hand is a failure.
    var asksNobody = false
    /// What becomes of the documents of its answers; nil: they stay as they are. The digest of it is in ``policy``.
    package private(set) var mapping: ResponseMapping?
    /// What its failed answers become; nil: they stay as they are.
    package private(set) var errorMapping: ErrorMapping?
    /// What goes wrong on purpose between an answer and its client; nil: nothing.
    package var faults: FaultPlan?
    /// How many requests are answered in a time; nil: all.
    package var rateLimit: RateLimitPolicy?
    /// Who learns how long its origin takes.
    package var learners: [LearnedLatency]

    package init(
        rules: FieldRules = FieldRules(),
        query: QueryDefaults = QueryDefaults([]),
        timeouts: Timeouts = Timeouts(),
        policy: CachePolicy = CachePolicy(),
        collapse: CollapseLimits = CollapseLimits(),
        key: KeyRules = KeyRules(),
        storesGet: Bool = true,
        storesPost: Bool = false,
        seed: SeedFolder? = nil,
        storeAs: String? = nil,
        phases: PhasePlan? = nil,
        onClientAbort: ClientAbort = .finish,
        retry: RetryPolicy = RetryPolicy(),
        logBodies: Int? = nil,
        authorization: String? = nil,
        withholdsAuthorization: Bool = false,
        shape: RequestShape? = nil,
        redirects: RedirectPolicy = RedirectPolicy(),
        recordings: RecordingPlan? = nil,
        rungs: [AnswerRung] = [],
        mapping: ResponseMapping? = nil,
        errorMapping: ErrorMapping? = nil,
        faults: FaultPlan? = nil,
        rateLimit: RateLimitPolicy? = nil,
        learners: [LearnedLatency] = []
    ) {
        self.rules = rules
        self.query = query
        self.timeouts = timeouts
        self.policy = policy
        self.collapse = collapse
        self.key = key
        self.storesGet = storesGet
        self.storesPost = storesPost
        self.seed = seed
        self.storeAs = storeAs
        self.phases = phases
        self.onClientAbort = onClientAbort
        self.retry = retry
        self.logBodies = logBodies
        self.authorization = authorization
        self.withholdsAuthorization = withholdsAuthorization
        self.shape = shape
        self.redirects = redirects
        self.recordings = recordings
        self.rungs = rungs
        recording = recordings.flatMap { $0.source == .live ? nil : $0 }
        self.mapping = mapping
        self.errorMapping = errorMapping
        self.faults = faults
        self.rateLimit = rateLimit
        self.learners = learners
        self.policy.mapping = mapping?.plan.digest
        self.policy.expectation = phases?.expectation
        self.policy.mapsErrors = errorMapping != nil
        // A stored answer would come before the recording that is to be made or played.
        if recording != nil { self.policy.mode = .none }
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
