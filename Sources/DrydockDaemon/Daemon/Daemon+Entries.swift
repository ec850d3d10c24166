// The listing of stored responses, as the admin API shows it.

package import AdminAPI
internal import CacheStore
internal import Configuration
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
        if let service = list.service { list.service = try await stored(service: service) }
        list.alternatives = await alternatives(list)
        list.arrivedBefore = query.olderThan.map { now - $0 }
        let isFresh = query.isFresh
        do {
            let page = try await listing.page(list) { listed in
                isFresh.map { (Self.timeToLive(listed, plan, now: now) ?? 0 > 0) == $0 } ?? true
            }
            return AdminEntries(entries: page.responses.map { Self.entry($0, plan, now: now) }, next: page.next)
        } catch {
            throw Self.unlisted(error)
        }
    }

    /// What keys say for the service that a command names: `forward` is forward mode where no service has that name. What is stored for
    /// a service that is no longer configured is reached by its name.
    /// - Throws: that there is no such service, and that nothing is stored for one.
    func stored(service name: String) async throws(Problem) -> String {
        let names = state.withLock { $0.plan.services.map(\.plan.name) }
        if name.isEmpty || names.contains(name) { return name }
        if name == "forward" { return "" }
        var query = ListQuery()
        query.service = name
        query.limit = 1
        do {
            repeat {
                let page = try await listing.page(query)
                if !page.responses.isEmpty { return name }
                query.after = page.next
            } while query.after != nil
        } catch {
            throw Self.unlisted(error)
        }
        throw .unknown(service: name, among: names)
    }

    private static func unlisted(_ error: any Error) -> Problem {
        Problem(status: 500, title: "Listing failed", detail: "the index cannot be read: \(error)")
    }

    private var listing: StoreListing {
        parts.core.listing(on: parts.files)
    }

    /// How what is stored may be called that a client, or an origin, calls as the query does.
    private func alternatives(_ query: ListQuery) async -> [String] {
        if let pattern = query.pattern {
            guard query.prefix.isEmpty else { return [] }
            // A form with a star is that of the whole URL, a part is not.
            return await forms(of: pattern).map { $0.contains("*") && !pattern.contains("*") ? "*\($0)*" : $0 }
        }
        return query.prefix.isEmpty
            ? [] : await forms(of: query.prefix).map { $0.hasPrefix(":") ? "*\($0)*" : "\($0)*" }
    }

    /// Other forms of a URL under which it may be stored, or of the beginning of one.
    func forms(of text: String) async -> [String] { await running?.listedForms(of: text) ?? [] }

    /// Seconds of freshness left under the policy in force; nil where the service is gone.
    private static func timeToLive(_ listed: ListedResponse, _ plan: RoutePlan, now: Int64) -> Int64? {
        let service = listed.key.service
        let route = service.isEmpty ? plan.forward?.route : plan.service(named: service)
        let policy = route?.plan(storedAt: "\(listed.key)").policy
        return policy.map { -Caching.staleness(listed.head, policy: $0, now: now) }
    }

    private static func entry(_ listed: ListedResponse, _ plan: RoutePlan, now: Int64) -> AdminEntries.Entry {
        let head = listed.head
        return AdminEntries.Entry(
            url: "\(listed.key)",
            service: listed.key.service,
            key: listed.key.extras?.split(separator: "\n").map(String.init) ?? [],
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
