// Ends fetches for an operator, or drops who waits for them, and logs how many there were.

import CacheStore
import DownloadCore
import HTTPWire
import Logging
import ProxyServer
import ServiceCore
import Synchronization

/// Sendable: it has no state of its own.
final class FetchCanceller: DaemonFeature {
    private let context: DaemonContext

    init(_ context: DaemonContext) { self.context = context }

    func cancel(_ target: CancelTarget, _ scope: CancelScope) async throws(Problem) -> AdminCancelled {
        let parts = context.parts
        let ended: CancelledFetches
        let what: String
        func end(_ isMeant: (CacheKey) -> Bool) -> CancelledFetches {
            switch scope {
            case .fetches: parts.core.cancel(isMeant)
            case .waiters: parts.core.dropWaiters(isMeant)
            }
        }
        switch target {
        case .all:
            what = "all fetches"
            ended = end { _ in true }
        case .service(let name):
            let names = context.plan.services.map(\.plan.name)
            let isForward = name == "forward" && !names.contains(name)
            guard isForward || names.contains(name) else {
                throw .unknown(service: name, among: names)
            }
            what = "the fetches of \(isForward ? "forward mode" : "service \(name)")"
            ended = end { $0.service == (isForward ? "" : name) }
        case .url(let url):
            what = "the fetches of \(url)"
            let routed = await key(of: url)
            ended = end { key in
                let name = "\(key)"
                return name == url || routed.map { $0.service == key.service && $0.url == name } ?? false
            }
        }
        let told = ended.waiters == 1 ? "1 request" : "\(ended.waiters) requests"
        switch scope {
        case .fetches: parts.logger.notice("cancelled \(what): \(ended.fetches) ended, \(told) told")
        case .waiters: parts.logger.notice("dropped who waited for \(what): \(told) told, \(ended.fetches) go on")
        }
        return AdminCancelled(fetches: ended.fetches, waiters: ended.waiters)
    }

    /// Service and URL in the keys of the fetches that a request for `url` would join; nil if no client may send it.
    private func key(of url: String) async -> (service: String, url: String)? {
        guard let result = await context.server?.explain(ExplainQuery(url: url)), case .success(let answer) = result
        else {
            return nil
        }
        if let cache = answer.cache { return (cache.service, cache.url) }
        return answer.route.asks.map { (answer.route.service ?? "", $0) }
    }
}

/// Which fetches are to end.
enum CancelTarget: Sendable, Equatable {
    /// The fetches of a URL, written as a client sends it or as the origin receives it.
    case url(String)
    /// Those of a service; `forward` are those of forward mode, where no service has that name.
    case service(String)
    case all

    /// - Throws: a 400 unless the query is just one of `url=`, `service=` and `all`.
    init(members: [(name: String, value: String)]) throws(Problem) {
        guard members.count == 1, let (name, value) = members.first else { throw Self.misunderstood }
        switch name {
        case "url" where !value.isEmpty: self = .url(value)
        case "service" where !value.isEmpty: self = .service(value)
        case "all" where value.isEmpty: self = .all
        default: throw Self.misunderstood
        }
    }

    private static var misunderstood: Problem {
        .badQuery("give one of url=URL, service=NAME and all, and waiters besides to keep the fetch")
    }
}

/// What ends.
enum CancelScope: Sendable, Equatable {
    /// The fetches, and with them all that waits for them or reads their bodies.
    case fetches
    /// The requests that wait for a head; the fetches go on for the store.
    case waiters
}

extension FetchCanceller {
    /// The route that ends fetches.
    var routes: [AdminRoute] {
        [
            AdminRoute(.post, .cancel) { request async throws(Problem) in
                var members = request.queryItems
                let isOfWaiters = members.contains { $0.name == "waiters" && $0.value.isEmpty }
                if isOfWaiters { members.removeAll { $0.name == "waiters" && $0.value.isEmpty } }
                let target = try CancelTarget(members: members)
                return try .json(await self.cancel(target, isOfWaiters ? .waiters : .fetches))
            }
        ]
    }
}

// MARK: - Documents

/// `POST /v1/cancel`: what was ended.
package struct AdminCancelled: Codable, Sendable, Equatable {
    package var fetches: Int
    /// Requests that waited for them or read their bodies.
    package var waiters: Int
}
