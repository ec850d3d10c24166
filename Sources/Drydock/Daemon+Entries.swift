// The listing of stored responses, as the admin API shows it.

internal import CacheStore
internal import DownloadCore
internal import EventLoop
internal import HTTPCaching
internal import HTTPWire
package import ProxyServer
internal import ServiceCore
internal import Synchronization

extension Daemon {
    package func entries(_ query: AdminEntryQuery) async throws(Problem) -> AdminEntries {
        let plan = state.withLock { $0.plan }
        let core = parts.core
        let now = core.clock.now()
        var list = query.list
        list.arrivedBefore = query.olderThan.map { now - $0 }
        let listing = StoreListing(
            memory: core.memory,
            disk: parts.disk,
            generations: core.generations,
            pool: parts.files
        )
        let isFresh = query.isFresh
        do {
            let page = try await listing.page(list) { listed in
                isFresh.map { (Self.timeToLive(listed, plan, now: now) ?? 0 > 0) == $0 } ?? true
            }
            return AdminEntries(entries: page.responses.map { Self.entry($0, plan, now: now) }, next: page.next)
        } catch {
            throw Problem(status: 500, title: "Listing failed", detail: "the index cannot be read: \(error)")
        }
    }

    /// Seconds of freshness left under the policy in force; nil where the service is gone.
    private static func timeToLive(_ listed: ListedResponse, _ plan: RoutePlan, now: Int64) -> Int64? {
        let service = listed.key.service
        let policy =
            service.isEmpty
            ? plan.forward?.request.policy : plan.service(named: service)?.policy(storedAt: "\(listed.key)")
        return policy.map { -Caching.staleness(listed.head, policy: $0, now: now) }
    }

    private static func entry(_ listed: ListedResponse, _ plan: RoutePlan, now: Int64) -> AdminEntries.Entry {
        let head = listed.head
        return AdminEntries.Entry(
            url: "\(listed.key)",
            service: listed.key.service,
            status: head.status,
            size: listed.length.map { Int(clamping: $0) },
            tiers: listed.tiers.map(\.rawValue),
            age: Int(clamping: Caching.age(head, now: now)),
            ttl: timeToLive(listed, plan, now: now).map { Int(clamping: $0) },
            variant: Dictionary(head.varyFields.lines.map { ($0.name, $0.value) }) { "\($0), \($1)" },
            isPinned: listed.isPinned,
            tags: Caching.cacheTags(head.fields)
        )
    }
}
