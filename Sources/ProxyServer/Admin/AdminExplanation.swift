// The document of `GET /v1/explain`: where a request goes, what is stored for it, what is
// decided, and which rule says so.

/// Lengths of time are seconds, times seconds since 1970, sizes bytes. Reasons are those of Cache-Status.
package struct AdminExplanation: Codable, Sendable, Equatable {
    package struct Field: Codable, Sendable, Equatable {
        package var name: String
        package var value: String
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
    }

    /// A reason with the section of the specification behind it.
    package struct Ruling: Codable, Sendable, Equatable {
        package var reason: String
        package var section: String
    }

    /// A rule of demo mode, in the order in which they are asked.
    package struct DemoRule: Codable, Sendable, Equatable {
        /// Nil for the answer of the endpoint or the service itself.
        package var rule: String?
        /// It answers the request.
        package var answers: Bool
        /// Why it does not, each what was found and what it wants; empty behind the one that answers.
        package var differences: [String]
    }

    /// A place that answers of the route may come from.
    package struct Rung: Codable, Sendable, Equatable {
        /// As `from` names it.
        package var rung: String
        /// It would answer if it were asked now; of `live`: it would be asked.
        package var answers: Bool
        /// What it would answer with, or why it would not.
        package var reason: String
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
}

extension AdminExplanation {
    package enum Outcome: String, Codable, Sendable {
        /// From the store.
        case answer
        /// From the store, and refreshed behind.
        case refresh
        /// The origin is asked whether what is stored is still good.
        case check
        /// The origin is asked for the whole.
        case fetch
        /// The origin is asked for a range: what is missing, or what the request wants.
        case part
        /// 504: no origin is asked.
        case refuse
    }

    package struct Upstream: Codable, Sendable, Equatable {
        package var method: String
        package var url: String
        /// If-None-Match and If-Modified-Since; Range and If-Range where a part is asked for; the request's own
        /// where it goes on as it is.
        package var conditions: [Field]
    }

    /// The part of the stored response that the client gets.
    package struct Reply: Codable, Sendable, Equatable {
        package var status: Int
        /// Of a 206: the first and the last byte of each part.
        package var parts: [String]
        /// The section behind another status than the stored one.
        package var section: String?
    }

    /// Why the last answer was not stored.
    package struct Unstored: Codable, Sendable, Equatable {
        package var ruling: Ruling
        /// In seconds.
        package var ago: Int64
    }

    /// A file that stands in for an answer.
    package struct Standing: Codable, Sendable, Equatable {
        package var path: String
        package var status: Int
        /// How long it waits for the origin, in milliseconds; 0 for a fallback.
        package var afterMilliseconds: Int
        /// It would answer this request now, if the origin took longer or failed.
        package var mayAnswer: Bool
    }

    package struct Cache: Codable, Sendable, Equatable {
        /// The service of the key; empty in forward mode.
        package var service: String
        /// The URL of the key.
        package var url: String
        /// The lines of the key besides the URL, such as the value of a field.
        package var keyLines: [String]
        /// As configured: `head`, `conditional`, `auto` or `never`.
        package var revalidate: String
        package var variants: [Variant]
        package var outcome: Outcome
        package var decision: Ruling
        /// Nil where the store does not answer.
        package var reply: Reply?
        /// The request that the origin would get; nil if it is not asked.
        package var upstream: Upstream?
        /// Fetches of the key under way that others may join.
        package var fills: Int
        /// The last answer could not be shared: requests for the key do not wait for one another.
        package var isUncacheable: Bool
        /// Nil where the last answer was stored, or none has come since the start.
        package var unstored: Unstored?
        /// Seconds until the next check, since the last one failed; nil if the next one is made at once.
        package var checkPause: Int64?
        package var placeholder: Standing?
        package var fallback: Standing?
        /// The place among the variants, from 0, of the one that answers where the origin fails, although the request does
        /// not select it (`cache.other_variant`); nil where none does.
        package var otherVariant: Int?
    }
}

extension AdminExplanation {
    /// The terms of RFC 9111 section 4.2.3.
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
        /// Nil where the stored request had no such field.
        package var stored: String?
        package var asked: String?
        package var matches: Bool
    }

    package struct Variant: Codable, Sendable, Equatable {
        package var status: Int
        /// Of the body; nil where it is not known.
        package var size: Int64?
        /// Where not all of it is stored: the first and the last byte of each part.
        package var parts: [String]?
        /// The fastest first.
        package var tiers: [String]
        package var etag: String?
        package var lastModified: String?
        package var groups: [String]
        package var selecting: [Selecting]
        package var age: Age
        package var lifetime: Int64
        /// What is compared with the lifetime, in seconds: the age, or in library mode the time
        /// since it came or was checked.
        package var timeInUse: Int64
        /// Where the lifetime comes from.
        package var source: Ruling
        /// Freshness left, below zero staleness.
        package var ttl: Int64
        package var isChosen: Bool
        /// A rule has invalidated it, so that it never answers.
        package var isInvalidated: Bool
        /// The decision of the caching rules about this response alone.
        package var decision: Ruling
        /// Up to which staleness it answers where the origin fails; nil where it does not.
        package var staleIfError: Int64?
        /// Why it does not.
        package var staleRefusal: Ruling?
    }
}
