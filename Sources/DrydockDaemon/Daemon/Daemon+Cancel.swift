// Ends fetches for an operator, and tells the log.

package import AdminAPI
internal import CacheStore
internal import DownloadCore
internal import Logging
package import ProxyServer
internal import ServiceCore
internal import Synchronization

extension Daemon: CancelActions {
    package func cancel(_ target: CancelTarget) async throws(Problem) -> AdminCancelled {
        let ended: CancelledFetches
        let what: String
        switch target {
        case .all:
            what = "all fetches"
            ended = parts.core.cancel { _ in true }
        case .service(let name):
            let names = state.withLock { $0.plan.services.map(\.plan.name) }
            let isForward = name == "forward" && !names.contains(name)
            guard isForward || names.contains(name) else {
                throw .unknown(service: name, among: names)
            }
            what = "the fetches of \(isForward ? "forward mode" : "service \(name)")"
            ended = parts.core.cancel { $0.service == (isForward ? "" : name) }
        case .url(let url):
            what = "the fetches of \(url)"
            let routed = await key(of: url)
            ended = parts.core.cancel { key in
                let name = "\(key)"
                return name == url || routed.map { $0.service == key.service && $0.url == name } ?? false
            }
        }
        let told = ended.waiters == 1 ? "1 request" : "\(ended.waiters) requests"
        parts.logger.notice("cancelled \(what): \(ended.fetches) ended, \(told) told")
        return AdminCancelled(fetches: ended.fetches, waiters: ended.waiters)
    }

    /// What the fetches of a URL are found by, if a client may send it.
    private func key(of url: String) async -> (service: String, url: String)? {
        guard let result = await running?.explain(ExplainQuestion(url: url)), case .success(let answer) = result else {
            return nil
        }
        if let cache = answer.cache { return (cache.service, cache.url) }
        return answer.route.asks.map { (answer.route.service ?? "", $0) }
    }
}
