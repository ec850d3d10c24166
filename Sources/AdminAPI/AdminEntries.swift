// The listing of stored responses.

/// `GET /v1/entries`.
package struct AdminEntries: Codable, Sendable, Equatable {
    package struct Entry: Codable, Sendable, Equatable {
        package var url: String
        /// The service's name; empty for forward mode.
        package var service: String
        /// What the key holds besides the URL, such as the values of the fields under `cache.key.fields`;
        /// nil from an older daemon.
        package var key: [String]?
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
        /// The tags by which it can be purged.
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
    /// How many entries follow that were not asked for; nil from the daemon, and if they were not counted.
    package var more: Int?

    package init(entries: [Entry], next: String? = nil, more: Int? = nil) {
        self.entries = entries
        self.next = next
        self.more = more
    }
}
