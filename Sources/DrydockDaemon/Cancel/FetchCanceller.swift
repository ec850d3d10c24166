// An operator's command to end fetches, or to drop the requests that wait for them.

import CacheStore
import DownloadCore
import HTTPWire
import Logging
import Policies
import ProxyServer
import ServiceCore
import Synchronization

/// Ends fetches or waits by an operator's command.
///
/// Sendable: it has no mutable state of its own.
final class FetchCanceller: DaemonFeature {
    private let context: DaemonContext

    init(_ context: DaemonContext) { self.context = context }

    func cancel(_ target: CancelTarget, _ scope: CancelScope) async throws(Problem) -> AdminCancelled {
        let parts = context.parts
        let ended: CancelledFetches
        let what: String
        func end(_ isMeant: (CacheKey) -> Bool) -> CancelledFetches {
            switch scope {
            case .fetches: parts.core.housekeeping.cancel(isMeant)
            case .waiters: parts.core.housekeeping.dropWaiters(isMeant)
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
                throw .unknown(service: name, among: names + ["forward"])
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
        case .fetches: parts.log(.download).notice("cancelled \(what): \(ended.fetches) ended, \(told) told")
        case .waiters:
            parts.log(.download).notice("dropped who waited for \(what): \(told) told, \(ended.fetches) go on")
        }
        return AdminCancelled(fetches: ended.fetches, waiters: ended.waiters)
    }

    /// The service and the URL in the key of the fetch that a request for `url` would join; nil if no client may send
    /// it.
    private func key(of url: String) async -> (service: String, url: String)? {
        guard let result = await context.server?.explain(RequestQuestion(url: url)), case .success(let answer) = result
        else {
            return nil
        }
        if let key = answer.stored?.explanation.key { return (key.service, key.description) }
        return answer.route.asks.map { (answer.route.service ?? "", $0) }
    }
}

/// The fetches that a command ends.
enum CancelTarget: Sendable, Equatable {
    /// The fetches of a URL, written as a client sends it or as the origin receives it.
    case url(String)
    /// The fetches of a service; `forward` means those of forward mode if no service has that name.
    case service(String)
    case all

    /// Parses the query of the command.
    /// - Throws: a 400 unless the query is exactly one of `url=`, `service=` and `all`.
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

/// How much a command ends: the fetches, or only the waits for them.
enum CancelScope: Sendable, Equatable {
    /// The fetches end, and with them every request that waits for them or reads their bodies.
    case fetches
    /// The requests that wait for a response head are dropped; the fetches go on for the store.
    case waiters
}

extension FetchCanceller {
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

/// The answer of `POST /v1/cancel`: the numbers of what was ended.
package struct AdminCancelled: Codable, Sendable, Equatable {
    package var fetches: Int
    /// The number of requests that waited for the fetches or read their bodies.
    package var waiters: Int
}
