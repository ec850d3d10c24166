// The document of `GET /v1/explain`: the route of a request, the stored responses, the decision, and the rule behind
// it.

/// The explanation of a request. Durations are seconds, times seconds since 1970, sizes bytes; reasons are those of
/// Cache-Status.
package struct AdminExplanation: Codable, Sendable, Equatable {
    package struct Field: Codable, Sendable, Equatable {
        package var name: String
        package var value: String
    }

    package struct Route: Codable, Sendable, Equatable {
        package enum Kind: String, Codable, Sendable {
            case service, forward
            /// A demo answer is played from a file.
            case demo
            /// The request upgrades: bytes go through a tunnel, and nothing is stored.
            case tunnel
        }

        package var kind: Kind
        /// The name of the service; nil in forward mode.
        package var service: String?
        package var match: String?
        package var endpoint: String?
        /// The URL that the origin is asked for; nil for a demo answer.
        package var asks: String?
        /// The proxy on the way to the origin, as `HOST:PORT`; nil if there is none.
        package var proxy: String?
        /// The OpenAPI document that requests are checked by, and how violations are treated: `pets.yaml, refuse`.
        package var openAPI: String?
    }

    /// A reason, and the section of the specification behind it.
    package struct Ruling: Codable, Sendable, Equatable {
        package var reason: String
        package var section: String
    }

    /// A rule of demo mode; the rules are listed in the order in which they are tried.
    package struct DemoRule: Codable, Sendable, Equatable {
        /// The name of the rule; nil for the answer of the endpoint or the service itself.
        package var rule: String?
        /// True if the rule answers the request.
        package var answers: Bool
        /// The reasons why the rule does not answer: what the request has, and what the rule wants; empty for rules
        /// behind the one that answers.
        package var differences: [String]
    }

    /// A source of the route's answers.
    package struct Rung: Codable, Sendable, Equatable {
        /// The name of the source in `from`.
        package var rung: String
        /// True if the source would answer if it were asked now; for `live`, if it would be asked.
        package var answers: Bool
        /// A description of the answer, or the reason why there is none.
        package var reason: String
    }

    /// The obstacle on the way to the origin, if it is not asked at once.
    package struct Meeting: Codable, Sendable, Equatable {
        package enum Kind: String, Codable, Sendable {
            /// The request waits for a slot of its service.
            case waits
            /// The request is refused: the origin may not be asked now, or too many requests wait already.
            case refused
        }

        /// The answer to a refused request.
        package enum Instead: String, Codable, Sendable {
            /// A stored response answers, or the fallback does.
            case stale, fallback
            /// A stored response answers although the request does not select it.
            case otherVariant = "other-variant"
            /// The request waits until the origin is back.
            case parked
            /// The refusal is the answer.
            case nothing
        }

        package var kind: Kind
        /// The reason in the words of the answer.
        package var reason: String
        package var instead: Instead?
        /// The reason why the request is not parked, or the longest time for which it is.
        package var parking: String?
        /// The status of the refusal; nil if another answer takes its place.
        package var status: Int?
        package var retryAfter: Int?
    }

    package struct Way: Codable, Sendable, Equatable {
        package var service: String
        package var url: String
    }

    package var method: String
    package var target: String
    package var fields: [Field]
    package var route: Route
    package var now: Int64
    package var isOffline: Bool
    /// The reason why nothing is stored or looked up; nil if ``cache`` has the stored responses.
    package var bypass: Ruling?
    package var cache: Cache?
    /// The obstacle on the way to the origin; nil if the origin would be asked at once, or not at all.
    package var meets: Meeting?
    /// The rules of demo mode up to the one that answers; nil if demo mode is off.
    package var demo: [DemoRule]?
    /// The sources that `from` names, in its order: the first one that answers is taken; nil if `from` is not set.
    package var rungs: [Rung]?
    /// Other URLs by which clients reach the same URL of the origin, with the service of each.
    package var ways: [Way]?
}

extension AdminExplanation {
    package enum Outcome: String, Codable, Sendable {
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

    package struct Upstream: Codable, Sendable, Equatable {
        package var method: String
        package var url: String
        /// The conditions of the request: If-None-Match and If-Modified-Since, Range and If-Range for a part, or the
        /// client's own if its request is passed on.
        package var conditions: [Field]
    }

    /// The part of the stored response that the client gets.
    package struct Reply: Codable, Sendable, Equatable {
        package var status: Int
        /// The first and the last byte of each part of a 206, as `0-99`; empty for a whole response.
        package var parts: [String]
        /// The section behind the status, if it is not the stored one.
        package var section: String?
    }

    /// The reason why the last answer was not stored.
    package struct Unstored: Codable, Sendable, Equatable {
        package var ruling: Ruling
        /// Seconds since that answer.
        package var ago: Int64
    }

    /// A file that can stand in for an answer: a placeholder or a fallback.
    package struct Standing: Codable, Sendable, Equatable {
        package var path: String
        package var status: Int
        /// Milliseconds for which a placeholder waits for the origin; 0 for a fallback.
        package var afterMilliseconds: Int
        /// True if the file would answer this request now if the origin took longer or failed.
        package var mayAnswer: Bool
    }

    package struct Cache: Codable, Sendable, Equatable {
        /// The service of the key; empty in forward mode.
        package var service: String
        /// The URL of the key.
        package var url: String
        /// The lines of the key besides the URL, such as the value of a field.
        package var keyLines: [String]
        /// The method of validation as configured: `head`, `conditional`, `auto` or `never`.
        package var revalidate: String
        package var variants: [Variant]
        package var outcome: Outcome
        package var decision: Ruling
        /// The answer of the store; nil if it does not answer.
        package var reply: Reply?
        /// The request that the origin would get; nil if it is not asked.
        package var upstream: Upstream?
        /// The number of fetches of the key under way that others may join.
        package var fills: Int
        /// True if the last answer could not be shared, so that requests for the key do not wait for one another.
        package var isUncacheable: Bool
        /// The last answer, if it was not stored; nil if it was, or if there was none since the start.
        package var unstored: Unstored?
        /// Seconds until the next validation, since the last one failed; nil if it is made at once.
        package var checkPause: Int64?
        package var placeholder: Standing?
        package var fallback: Standing?
        /// The index among the variants of the one that answers if the origin fails, although the request does not
        /// select it (`cache.other_variant`); nil if none does.
        package var otherVariant: Int?
    }
}

extension AdminExplanation {
    /// The terms of the age calculation (RFC 9111 section 4.2.3).
    package struct Age: Codable, Sendable, Equatable {
        package var dateValue: Int64
        package var requestTime: Int64
        package var responseTime: Int64
        package var ageValue: Int64
        package var apparentAge: Int64
        package var responseDelay: Int64
        package var correctedAgeValue: Int64
        package var correctedInitialAge: Int64
        package var residentTime: Int64
        package var currentAge: Int64
    }

    package struct Selecting: Codable, Sendable, Equatable {
        package var name: String
        /// The value in the stored request; nil if it had no such field.
        package var stored: String?
        package var asked: String?
        package var matches: Bool
    }

    package struct Variant: Codable, Sendable, Equatable {
        package var status: Int
        /// The size of the body in bytes; nil if it is unknown.
        package var size: Int64?
        /// The first and the last byte of each stored part, as `0-99`; nil if the whole body is stored.
        package var parts: [String]?
        /// The tiers that have the response, the fastest first.
        package var tiers: [String]
        package var etag: String?
        package var lastModified: String?
        package var groups: [String]
        package var selecting: [Selecting]
        package var age: Age
        package var lifetime: Int64
        /// The time that is compared with the lifetime, in seconds: the age, or in library mode the time since the
        /// response was received or validated.
        package var timeInUse: Int64
        /// The source of the lifetime, such as `max-age`.
        package var source: Ruling
        /// Seconds of freshness left, negative for a stale response.
        package var ttl: Int64
        package var isChosen: Bool
        /// True if a rule has invalidated the response, so that it never answers.
        package var isInvalidated: Bool
        /// The decision of the caching rules about this response alone.
        package var decision: Ruling
        /// The staleness in seconds up to which the response answers if the origin fails; nil if it does not.
        package var staleIfError: Int64?
        /// The reason why the response does not answer if the origin fails.
        package var staleRefusal: Ruling?
    }
}
