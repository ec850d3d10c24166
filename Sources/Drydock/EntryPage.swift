// One page of what is stored in both tiers: in the order of URLs, and never splitting those that share a URL.

package import ProxyServer

/// Merges the memory tier, listed as a whole, with the disk tier, listed in parts.
package enum EntryPage {
    /// - Parameters:
    ///   - memory: the entries behind `after`, in any order.
    ///   - limit: the least number of entries of a page that is not the last; all that share its last URL come, too.
    ///   - disk: so many entries behind `after` at most, ordered by URL.
    package static func make(
        memory: [AdminEntries.Entry],
        limit: Int,
        disk: (_ limit: Int) async -> [AdminEntries.Entry]
    ) async -> AdminEntries {
        var wanted = limit + 1
        var rows = await disk(wanted)
        // Nil: nothing comes behind what is here.
        var horizon: String?
        while rows.count >= wanted {
            // More rows may share the last URL: those are for the next page.
            let last = rows.last?.url
            let whole = rows.prefix { $0.url != last }
            horizon = whole.last?.url
            if horizon != nil {
                rows = Array(whole)
                break
            }
            wanted *= 2
            rows = await disk(wanted)
        }
        let end = horizon
        let merged = merge(memory.filter { entry in end.map { entry.url <= $0 } ?? true }, rows)
        var count = min(max(limit, 1), merged.count)
        while count < merged.count, merged[count].url == merged[count - 1].url { count += 1 }
        let page = Array(merged[..<count])
        return AdminEntries(entries: page, next: count < merged.count || horizon != nil ? page.last?.url : nil)
    }

    /// The same response in both tiers is one entry. The disk's listing does not say which variant a file is, so that
    /// those of the same status and size stand for each other.
    private static func merge(
        _ memory: [AdminEntries.Entry],
        _ disk: [AdminEntries.Entry]
    ) -> [AdminEntries.Entry] {
        struct Key: Hashable {
            let url: String
            let service: String
            let status: Int
            let size: Int?

            init(_ entry: AdminEntries.Entry) {
                (url, service, status, size) = (entry.url, entry.service, entry.status, entry.size)
            }
        }
        var result = memory
        var alone: [Key: [Int]] = [:]
        for (index, entry) in memory.enumerated() { alone[Key(entry), default: []].append(index) }
        for entry in disk {
            if let index = alone[Key(entry)]?.popLast() {
                result[index].tiers += entry.tiers
            } else {
                result.append(entry)
            }
        }
        return result.sorted { order($0) < order($1) }
    }

    private static func order(_ entry: AdminEntries.Entry) -> (String, String, String) {
        let variant = entry.variant.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" }.joined(separator: " ")
        return (entry.url, entry.service, variant)
    }

    /// The pattern of the disk tier's listing for URLs that begin with `prefix`; nil for all.
    package static func pattern(_ prefix: String) -> String? {
        if prefix.isEmpty { return nil }
        // In brackets these stand for themselves: a query's question mark, an IPv6 address.
        return prefix.map { "*?[".contains($0) ? "[\($0)]" : "\($0)" }.joined() + "*"
    }
}
