// The document of `GET /v1/explain`: where a request goes, what is stored for it, what is
// decided, and which rule says so.

/// Lengths of time are seconds, times seconds since 1970, sizes bytes. Reasons are those of Cache-Status.
package struct AdminExplanation: Codable, Sendable, Equatable {
    package struct Field: Codable, Sendable, Equatable {
        package var name: String
        package var value: String

        package init(name: String, value: String) {
            self.name = name
            self.value = value
        }
    }

    package struct Route: Codable, Sendable, Equatable {
        package enum Kind: String, Codable, Sendable {
            case service, forward
            /// Played from a file.
            case demo
            /// The request upgrades: bytes go through, nothing is stored.
            case tunnel
        }

        package var kind: Kind
        /// The service, and what it is matched by.
        package var service: String?
        package var match: String?
        package var endpoint: String?
        /// The URL that is asked; nil for a demo answer.
        package var asks: String?
        /// The proxy on the way there, as `HOST:PORT`; nil: there is none.
        package var proxy: String?
        /// The document of OpenAPI that requests are checked by, and what becomes of others: `pets.yaml, refuse`.
        package var openAPI: String?

        package init(
            kind: Kind,
            service: String? = nil,
            match: String? = nil,
            endpoint: String? = nil,
            asks: String? = nil
        ) {
            self.kind = kind
            self.service = service
            self.match = match
            self.endpoint = endpoint
            self.asks = asks
        }
    }

    /// A reason with the section of the specification behind it.
    package struct Ruling: Codable, Sendable, Equatable {
        package var reason: String
        package var section: String

        package init(reason: String, section: String) {
            self.reason = reason
            self.section = section
        }
    }

    /// A rule of demo mode, in the order in which they are asked.
    package struct DemoRule: Codable, Sendable, Equatable {
        /// Nil for the answer of the endpoint or the service itself.
        package var rule: String?
        /// It answers the request.
        package var answers: Bool
        /// Why it does not, each what was found and what it wants; empty behind the one that answers.
        package var differences: [String]

        package init(rule: String?, answers: Bool, differences: [String]) {
            self.rule = rule
            self.answers = answers
            self.differences = differences
        }
    }

    /// A place that answers of the route may come from.
    package struct Rung: Codable, Sendable, Equatable {
        /// As `from` names it.
        package var rung: String
        /// It would answer if it were asked now; of `live`: it would be asked.
        package var answers: Bool
        /// What it would answer with, or why it would not.
        package var reason: String

        package init(rung: String, answers: Bool, reason: String) {
            self.rung = rung
            self.answers = answers
            self.reason = reason
        }
    }

    /// What a request meets on its way to the origin, if it is not asked at once.
    package struct Meeting: Codable, Sendable, Equatable {
        package enum Kind: String, Codable, Sendable {
            /// It waits for a slot of its service.
            case waits
            /// The origin is left alone, or too many wait already.
            case refused
        }

        /// What becomes of a request that is refused.
        package enum Instead: String, Codable, Sendable {
            /// A stored response answers, or the fallback.
            case stale, fallback
            /// A stored response answers that the request does not select.
            case otherVariant = "other-variant"
            /// It waits until the origin is back.
            case parked
            /// The refusal is the answer.
            case nothing
        }

        package var kind: Kind
        /// As the answer would say it.
        package var reason: String
        package var instead: Instead?
        /// Why it is not parked, or for how long at most.
        package var parking: String?
        /// Of the refusal.
        package var status: Int?
        package var retryAfter: Int?

        package init(kind: Kind, reason: String) {
            self.kind = kind
            self.reason = reason
        }
    }

    package struct Way: Codable, Sendable, Equatable {
        package var service: String
        package var url: String

        package init(service: String, url: String) {
            self.service = service
            self.url = url
        }
    }

    package var method: String
    package var target: String
    package var fields: [Field]
    package var route: Route
    package var now: Int64
    package var isOffline: Bool
    /// Why nothing is stored or looked up for it; nil where `cache` says what is.
    package var bypass: Ruling?
    package var cache: Cache?
    /// Nil where the origin would be asked at once, or would not be asked.
    package var meets: Meeting?
    /// The rules of demo mode up to the one that answers; nil where demo mode is off.
    package var demo: [DemoRule]?
    /// The places that `from` names, in its order: the first that answers is the one; nil where it is not set.
    package var rungs: [Rung]?
    /// Other ways that lead to the same URL of the origin, as clients send them, with the service of each.
    package var ways: [Way]?

    package init(
        method: String,
        target: String,
        fields: [Field],
        route: Route,
        now: Int64,
        isOffline: Bool,
        bypass: Ruling? = nil,
        cache: Cache? = nil,
        ways: [Way]? = nil,
        demo: [DemoRule]? = nil,
        rungs: [Rung]? = nil
    ) {
        self.method = method
        self.target = target
        self.fields = fields
        self.route = route
        self.now = now
        self.isOffline = isOffline
        self.bypass = bypass
        self.cache = cache
        self.ways = ways
        self.demo = demo
        self.rungs = rungs
    }
}
