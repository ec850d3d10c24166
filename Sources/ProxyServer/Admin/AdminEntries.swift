// The listing in the admin API: what can be asked for, and what it says about each stored response.

package import CacheStore
internal import Configuration

/// Which stored responses are asked for.
package struct AdminEntryQuery: Sendable, Equatable {
    /// All but what needs a clock or a policy.
    package var list = ListQuery()
    /// Only what is fresh now, or what is not; nil for both.
    package var isFresh: Bool?
    /// Only what arrived, or was last found current, longer ago; in seconds.
    package var olderThan: Int64?

    package init() {}

    /// `pattern=`, `prefix=`, `service=`, `tier=memory|disk`, `fresh`, `stale`, `pinned`, `min_size=`, `older_than=`, `limit=` and
    /// `after=`, each once at most.
    init(query: [String: String]) throws(Problem) {
        for (name, value) in query {
            switch name {
            case "pattern" where !value.isEmpty: list.pattern = value
            case "prefix": list.prefix = value
            case "service": list.service = value
            case "after": list.after = value
            case "tier":
                guard let tier = StoreTier(rawValue: value), tier != .seed else {
                    throw .badQuery("tier is '\(value)'; there are memory and disk")
                }
                list.tier = tier
            case "fresh" where value.isEmpty && isFresh != false: isFresh = true
            case "stale" where value.isEmpty && isFresh != true: isFresh = false
            case "fresh", "stale": throw .badQuery("give either fresh or stale, without a value")
            case "pinned":
                guard value.isEmpty else { throw .badQuery("pinned takes no value") }
                list.isPinned = true
            case "min_size":
                guard let size = Int64(value), size >= 0 else { throw .badQuery("min_size is \(value); give bytes") }
                list.minSize = size
            case "older_than":
                do throws(Lifetimes.Malformed) { olderThan = try Lifetimes.seconds(value) } catch {
                    throw .badQuery("older_than: \(error)")
                }
            case "limit":
                guard let limit = Int(value), 1...1000 ~= limit else {
                    throw .badQuery("limit is \(value); give a number from 1 to 1000")
                }
                list.limit = limit
            default:
                throw .badQuery(
                    "\(name) is not known, or empty; there are pattern, prefix, service, tier, fresh, stale, pinned, "
                        + "min_size, older_than, limit and after"
                )
            }
        }
    }
}

/// `GET /v1/entries`.
package struct AdminEntries: Codable, Sendable, Equatable {
    package struct Entry: Codable, Sendable, Equatable {
        package var url: String
        /// The service's name; empty for forward mode.
        package var service: String
        /// What the key holds besides the URL, such as the values of the fields under `cache.key.fields`.
        package var key: [String]
        package var status: Int
        /// Of the body, in bytes; nil where it is not known.
        package var size: Int?
        /// `memory`, `disk`, or both.
        package var tiers: [String]
        /// In seconds.
        package var age: Int
        /// Seconds of freshness left; negative where stale, nil where there is no lifetime.
        package var ttl: Int?
        /// The fields that Vary lists, as the stored request had them.
        package var variant: [String: String]
        package var isPinned: Bool
        /// What it can be purged by.
        package var tags: [String]

        package init(
            url: String,
            service: String,
            key: [String] = [],
            status: Int,
            size: Int?,
            tiers: [String],
            age: Int,
            ttl: Int?,
            variant: [String: String] = [:],
            isPinned: Bool = false,
            tags: [String] = []
        ) {
            self.url = url
            self.service = service
            self.key = key
            self.status = status
            self.size = size
            self.tiers = tiers
            self.age = age
            self.ttl = ttl
            self.variant = variant
            self.isPinned = isPinned
            self.tags = tags
        }
    }

    package var entries: [Entry]
    /// What to send as `after` for the next page, which may be empty; nil on the last.
    package var next: String?

    package init(entries: [Entry], next: String? = nil) {
        self.entries = entries
        self.next = next
    }
}
