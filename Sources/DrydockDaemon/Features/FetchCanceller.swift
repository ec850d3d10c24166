// Ends fetches for an operator, or drops who waits for them, and logs how many there were.

import AdminAPI
import CacheStore
import DownloadCore
import Logging
import ProxyServer
import ServiceCore
import Synchronization

/// Sendable: it has no state of its own.
final class FetchCanceller: CancelActions, DaemonFeature {
    private let context: DaemonContext

    init(_ context: DaemonContext) { self.context = context }

    var routes: [AdminRoute] { cancelRoutes }

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
