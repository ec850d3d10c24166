// What the access log and the counters will say of an answer.

package import ServiceCore

/// What the cache made of a request, for the counters.
package enum CacheOutcome: Int, Sendable, CaseIterable {
    case hit, miss, revalidated, stale, placeholder, fallback, bypass, collapsed, demo, none
    /// A recording answered in place of the origin.
    case recording
    /// The daemon itself answered, with a problem document.
    case error

    /// The value of the metric's label.
    package var label: String { "\(self)" }

    /// Whether no origin was waited for; nil of what has nothing to do with an origin.
    package var neededNoOrigin: Bool? {
        switch self {
        case .hit, .stale, .placeholder, .fallback, .collapsed: true
        case .miss, .revalidated, .bypass, .error: false
        case .demo, .recording, .none: nil
        }
    }
}

extension CacheOutcome {
    /// The part of the answers that needed no origin, of those that have to do with one; nil if there were none.
    /// - Parameter count: the number of answers with an outcome.
    package static func hitRatio(_ count: (CacheOutcome) -> Int) -> Double? {
        var (unasked, all) = (0, 0)
        for outcome in allCases {
            guard let neededNoOrigin = outcome.neededNoOrigin else { continue }
            let count = count(outcome)
            all += count
            if neededNoOrigin { unasked += count }
        }
        return all > 0 ? Double(unasked) / Double(all) : nil
    }
}

/// The tier that an answer's stored response came from.
package enum AnswerTier: Int, Sendable, CaseIterable {
    /// None, as with a demo answer, or one that was just fetched or validated.
    case none
    case memory, disk, seed

    /// The value of the metric's label.
    package var label: String { "\(self)" }
}

/// The facts about an answer that the handler gives to the access log and the counters.
package struct ExchangeOutcome: Sendable {
    /// The service's name, `forward`, or empty.
    package var route = ""
    /// The endpoint's name; empty where no endpoint names the request.
    package var endpoint = ""
    /// The number that the answer is counted by.
    package var number = RouteNumber.none
    /// The value of Cache-Status, or empty.
    package var cacheStatus = ""
    package var cache = CacheOutcome.none
    package var tier = AnswerTier.none
    /// The status that the origin answered with.
    package var upstreamStatus: Int?
    /// The time from the request to the origin to the head of its answer, in nanoseconds.
    package var upstreamTime: UInt64?
    /// Why there was no answer, or why it ended early; empty where all went well.
    package var error = ""
    /// What was done to the answer on purpose, such as `reset`; empty: nothing.
    package var fault = ""

    package init() {}

    /// Notes what the request was found to be for.
    mutating func note(_ service: ServiceRoute, _ endpoint: EndpointRoute) {
        route = service.label
        self.endpoint = endpoint.name
        number = endpoint.number
    }
}

/// What the access log and the counters need to know of an answer on the hot path. For the length of one call.
package struct HotRecord {
    package var status: Int
    package var route: HotRoute
    /// The value of Cache-Status.
    package var cacheStatus: UnsafeRawBufferPointer
    package var cache: CacheOutcome
    package var tier: AnswerTier

    package init(
        status: Int = 200,
        route: HotRoute = HotRoute(),
        cacheStatus: UnsafeRawBufferPointer = UnsafeRawBufferPointer(start: nil, count: 0),
        cache: CacheOutcome = .hit,
        tier: AnswerTier = .none
    ) {
        self.status = status
        self.route = route
        self.cacheStatus = cacheStatus
        self.cache = cache
        self.tier = tier
    }

    /// What the answer is counted as.
    var kind: AnswerKind { AnswerKind(number: route.number, outcome: cache, tier: tier, status: status) }
}

/// The route of an answer, valid during one call: an answer that is not logged needs no copy of the name.
package struct HotRoute {
    // Held by the plan in force, or by the host that it was found by: neither changes while a
    // request is answered at once.
    private unowned(unsafe) let service: ServiceRoute?
    // Held by the service.
    private let endpoint: Unmanaged<EndpointRoute>?

    /// - Parameters:
    ///   - service: nil of what is no service.
    ///   - endpoint: one of the service's; nil where none names the request.
    package init(_ service: ServiceRoute? = nil, _ endpoint: Unmanaged<EndpointRoute>? = nil) {
        self.service = service
        self.endpoint = endpoint
    }

    /// The number that the answer is counted by.
    var number: RouteNumber {
        if let endpoint { return endpoint._withUnsafeGuaranteedRef { $0.number } }
        return service?.itself.number ?? .none
    }

    /// The service's name, `forward`, or empty.
    var name: String { service?.label ?? "" }

    /// The endpoint's name; empty where no endpoint names the request.
    var endpointName: String { endpoint?._withUnsafeGuaranteedRef { $0.name } ?? "" }
}
