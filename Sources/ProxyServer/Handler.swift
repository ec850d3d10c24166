// Answers the requests of one loop: what is shared by the hot path and the waiting path.

package import DownloadCore
package import EventLoop
import HTTPCaching
import HTTPWire
package import Upstream

/// Loop-bound, one per loop.
package final class ProxyHandler: ExchangeHandler {
    /// The routes in force; replaced as a whole by a reload. Requests under way finish on the old ones.
    package private(set) var plan: RoutePlan
    let core: DownloadCore
    let client: UpstreamClient
    let resolver: Resolver
    let context: LoopContext
    /// Where this daemon listens for clients.
    let listeners: [SocketAddress]
    /// All its listeners, those of the admin API, too: none of them may be the target of a forward request.
    let ownListeners: [SocketAddress]
    private(set) var hostRules: HostRules
    private(set) var hot: HotState

    package init(
        on loop: isolated EventLoop,
        plan: RoutePlan,
        core: DownloadCore,
        client: UpstreamClient,
        resolver: Resolver,
        context: LoopContext,
        listeners: [SocketAddress],
        adminListeners: [SocketAddress] = []
    ) {
        self.plan = plan
        self.core = core
        self.client = client
        self.resolver = resolver
        self.context = context
        self.listeners = listeners
        ownListeners = listeners + adminListeners
        hostRules = HostRules(names: plan.serviceHosts, listeners: listeners)
        hot = HotState(plan: plan, memory: core.memory, clock: core.clock)
    }

    /// Takes over the routes of a new configuration.
    package func update(_ plan: RoutePlan) {
        self.plan = plan
        hostRules = HostRules(names: plan.serviceHosts, listeners: listeners)
        hot = HotState(plan: plan, memory: core.memory, clock: core.clock)
    }

    /// Ends all transfers; the last call, on the loop.
    package func shutdown() { client.shutdown() }

    package func answer(_ exchange: Exchange, on loop: isolated EventLoop) async {
        do throws(Problem) {
            try await route(exchange, on: loop)
        } catch {
            exchange.problem(error)
        }
    }
}

@available(*, unavailable) extension ProxyHandler: Sendable {}
