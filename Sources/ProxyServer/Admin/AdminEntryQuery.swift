// The query of the listing in the admin API.

package import CacheStore
import Configuration

/// Which stored responses to list.
package struct AdminEntryQuery: Sendable, Equatable {
    /// All but what needs a clock or a policy.
    package var list = ListQuery()
    /// True lists only fresh responses, false only others; nil lists both.
    package var isFresh: Bool?
    /// Only what arrived, or was last found current, longer ago; in seconds.
    package var olderThan: Int64?

    package init() {}

    /// `pattern=`, `prefix=`, `service=`, `tier=memory|disk`, `fresh`, `stale`, `pinned`, `min_size=`, `older_than=`,
    /// `limit=` and `after=`, each once at most.
    init(query: [String: String]) throws(Problem) {
        for (name, value) in query {
            switch name {
            case "pattern" where !value.isEmpty: list.pattern = value
            case "prefix": list.prefix = value
            case "service": list.service = value
            case "after": list.after = value
            case "tier":
                guard let tier = StoreTier(rawValue: value), [.memory, .disk].contains(tier) else {
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
