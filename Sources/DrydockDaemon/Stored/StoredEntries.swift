// The listing of stored responses, as the admin API shows it, and the names under which commands find them.

import CacheStore
import Configuration
import DownloadCore
import EventLoop
import HTTPCaching
import HTTPWire
import ProxyServer
import ServiceCore
import Synchronization

/// Lists stored responses, and finds them by the names that commands use.
///
/// Sendable: it has no mutable state of its own.
final class StoredEntries: Sendable {
    private let context: DaemonContext

    init(_ context: DaemonContext) { self.context = context }

    /// One page of the listing.
    /// - Throws: an error if the query names an unknown service, or if the index cannot be read.
    func entries(_ query: AdminEntryQuery) async throws(Problem) -> AdminEntries {
        let plan = context.plan
        let now = context.parts.core.clock.now()
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

    /// The name that cache keys have for the service of a command; `forward` is forward mode if no service has that
    /// name. A service that is no longer configured is found while a response is stored for it.
    /// - Throws: a 404 if there is no such service, and no response of one.
    func stored(service name: String) async throws(Problem) -> String {
        let names = context.plan.services.map(\.plan.name)
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
        throw .unknown(service: name, among: names + ["forward"])
    }

    private static func unlisted(_ error: any Error) -> Problem {
        Problem(status: 500, title: "Listing failed", detail: "the index cannot be read: \(error)")
    }

    private var listing: StoreListing {
        context.parts.core.store.listing(on: context.parts.files)
    }

    /// Patterns for the other forms of a query's URL: a client's URL and an origin's URL may belong to the same
    /// response.
    private func alternatives(_ query: ListQuery) async -> [String] {
        if let pattern = query.pattern {
            guard query.prefix.isEmpty else { return [] }
            // A form with a star stands for a whole URL, and one without for any part of it.
            return await forms(of: pattern).map { $0.contains("*") && !pattern.contains("*") ? "*\($0)*" : $0 }
        }
        return query.prefix.isEmpty
            ? [] : await forms(of: query.prefix).map { $0.hasPrefix(":") ? "*\($0)*" : "\($0)*" }
    }

    /// The other forms of a URL, or of a prefix of one, under which responses may be stored.
    func forms(of text: String) async -> [String] { await context.server?.listedForms(of: text) ?? [] }

    /// Seconds of freshness left under the policy in force; nil if the service is no longer configured.
    private static func timeToLive(_ listed: ListedResponse, _ plan: RoutePlan, now: Int64) -> Int64? {
        let service = listed.key.service
        let route = service.isEmpty ? plan.forward?.route : plan.service(named: service)
        let policy = route?.plan(storedAs: listed.key).policy
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

/// The query of the listing: which stored responses are listed.
struct AdminEntryQuery: Sendable, Equatable {
    /// The part of the query that needs neither a clock nor a policy.
    var list = ListQuery()
    /// True lists only fresh responses, false only others; nil lists both.
    var isFresh: Bool?
    /// Lists only responses that were received or last validated longer ago than this, in seconds; nil lists all.
    var olderThan: Int64?

    init() {}

    /// Parses `pattern=`, `prefix=`, `service=`, `tier=memory|disk`, `fresh`, `stale`, `pinned`, `min_size=`,
    /// `older_than=`, `limit=` and `after=`, each at most once.
    /// - Throws: a 400 that names the mistake.
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

// MARK: - Documents

/// The document of `GET /v1/entries`.
package struct AdminEntries: Codable, Sendable, Equatable {
    package struct Entry: Codable, Sendable, Equatable {
        package var url: String
        /// The name of the service; empty for forward mode.
        package var service: String
        /// The lines of the key besides the URL, such as the values of the fields under `cache.key.fields`; nil from an
        /// older daemon.
        package var key: [String]?
        package var status: Int
        /// The size of the body in bytes; nil if it is unknown.
        package var size: Int?
        /// The tiers that have the response: `memory`, `disk`, or both.
        package var tiers: [String]
        /// The age of the response in seconds (RFC 9111 section 4.2.3).
        package var age: Int
        /// Seconds of freshness left, negative for a stale response; nil if there is no lifetime.
        package var ttl: Int?
        /// The request fields that Vary names, with the values of the stored request.
        package var variant: [String: String]
        package var isPinned: Bool
        /// The tags by which the response can be purged.
        package var tags: [String]
    }

    package var entries: [Entry]
    /// The value of `after` for the next page, which may be empty; nil on the last page.
    package var next: String?
    /// The number of entries that follow and were not asked for; nil from the daemon, and if they were not counted.
    package var more: Int?

    package init(entries: [Entry], next: String?, more: Int? = nil) {
        self.entries = entries
        self.next = next
        self.more = more
    }
}
