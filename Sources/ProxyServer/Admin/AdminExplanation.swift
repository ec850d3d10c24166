// The document of `GET /v1/explain`: where a request goes, what is stored for it, what is decided, and which rule says so.

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
    }

    /// A reason with the section of the specification behind it.
    package struct Ruling: Codable, Sendable, Equatable {
        package var reason: String
        package var section: String
    }

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
        /// What is held against the lifetime, in seconds: the age, or in library mode the time since it came or was checked.
        package var timeInUse: Int64
        /// Where the lifetime comes from.
        package var source: Ruling
        /// Freshness left, below zero staleness.
        package var ttl: Int64
        package var isChosen: Bool
        /// A rule has invalidated it, so that it never answers.
        package var isInvalidated: Bool
        /// What the rules say of it by itself.
        package var decision: Ruling
        /// Up to which staleness it answers where the origin fails; nil where it does not.
        package var staleIfError: Int64?
        /// Why it does not.
        package var staleRefusal: Ruling?
    }

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
        /// 504: nobody is asked.
        case refuse
    }

    package struct Upstream: Codable, Sendable, Equatable {
        package var method: String
        package var url: String
        /// If-None-Match and If-Modified-Since; Range and If-Range where a part is asked for; the request's own where it goes on
        /// as it is.
        package var conditions: [Field]
    }

    /// What the client gets of what is stored.
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
        /// What else the key holds, such as the value of a field.
        package var keyLines: [String]
        /// As configured: `head`, `conditional`, `auto` or `never`.
        package var revalidate: String
        package var variants: [Variant]
        package var outcome: Outcome
        package var decision: Ruling
        /// Nil where the store does not answer.
        package var reply: Reply?
        /// What the origin would be sent; nil where it is not asked.
        package var upstream: Upstream?
        /// Fetches of the key under way that others may join.
        package var fills: Int
        /// The last answer could not be shared: requests for the key do not wait for one another.
        package var isUncacheable: Bool
        /// Nil where the last answer was stored, or none has come since the start.
        package var unstored: Unstored?
        /// For how many seconds no check is made, since the last one failed; nil where the next one is not held back.
        package var checkPause: Int64?
        package var placeholder: Standing?
        package var fallback: Standing?
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
    /// Other ways that lead to the same URL of the origin, as clients send them, with the service of each.
    package var ways: [Way]?

    package struct Way: Codable, Sendable, Equatable {
        package var service: String
        package var url: String
    }
}
