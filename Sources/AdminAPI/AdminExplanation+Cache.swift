// What the cache would do with a request, in the document of an explanation.

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

        package init(method: String, url: String, conditions: [Field]) {
            self.method = method
            self.url = url
            self.conditions = conditions
        }
    }

    /// The part of the stored response that the client gets.
    package struct Reply: Codable, Sendable, Equatable {
        package var status: Int
        /// Of a 206: the first and the last byte of each part.
        package var parts: [String]
        /// The section behind another status than the stored one.
        package var section: String?

        package init(status: Int, parts: [String], section: String? = nil) {
            self.status = status
            self.parts = parts
            self.section = section
        }
    }

    /// Why the last answer was not stored.
    package struct Unstored: Codable, Sendable, Equatable {
        package var ruling: Ruling
        /// In seconds.
        package var ago: Int64

        package init(ruling: Ruling, ago: Int64) {
            self.ruling = ruling
            self.ago = ago
        }
    }

    /// A file that stands in for an answer.
    package struct Standing: Codable, Sendable, Equatable {
        package var path: String
        package var status: Int
        /// How long it waits for the origin, in milliseconds; 0 for a fallback.
        package var afterMilliseconds: Int
        /// It would answer this request now, if the origin took longer or failed.
        package var mayAnswer: Bool

        package init(path: String, status: Int, afterMilliseconds: Int, mayAnswer: Bool) {
            self.path = path
            self.status = status
            self.afterMilliseconds = afterMilliseconds
            self.mayAnswer = mayAnswer
        }
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

        package init(
            service: String,
            url: String,
            keyLines: [String],
            revalidate: String,
            variants: [Variant],
            outcome: Outcome,
            decision: Ruling,
            reply: Reply? = nil,
            upstream: Upstream? = nil,
            fills: Int,
            isUncacheable: Bool,
            unstored: Unstored? = nil,
            checkPause: Int64? = nil,
            placeholder: Standing? = nil,
            fallback: Standing? = nil
        ) {
            self.service = service
            self.url = url
            self.keyLines = keyLines
            self.revalidate = revalidate
            self.variants = variants
            self.outcome = outcome
            self.decision = decision
            self.reply = reply
            self.upstream = upstream
            self.fills = fills
            self.isUncacheable = isUncacheable
            self.unstored = unstored
            self.checkPause = checkPause
            self.placeholder = placeholder
            self.fallback = fallback
        }
    }
}
