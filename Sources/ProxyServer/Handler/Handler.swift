// Answers the requests of one loop: what is shared by the hot path and the waiting path.

package import DownloadCore
package import EventLoop
import HTTPCaching
import HTTPWire
import ServiceCore
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
    var sources = SourceTable()
    /// Requests that were passed on without a task.
    // Unchecked: nobody is called while it is changed, and a check would be paid for with every use.
    @exclusivity(unchecked) var directRequests = 0
    /// The value of Cache-Status that was written last: many answers in a row have the same.
    private var lastStatus: (status: CacheStatus, value: String)?
    /// The lines of the last head that was passed on as it came, but for the fields of its origin.
    var lastPassed: PassedLines?

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
        hostRules = HostRules(names: plan.machineNames, listeners: listeners)
        hot = Self.hotState(plan, core, context)
        context.secrets = plan.secrets
    }

    private static func hotState(_ plan: RoutePlan, _ core: DownloadCore, _ context: LoopContext) -> HotState {
        HotState(plan: plan, memory: core.memory, clock: core.clock, isTraced: context.daemonLog.tellsDecisions)
    }

    /// Takes over the routes of a new configuration.
    package func update(_ plan: RoutePlan) {
        self.plan = plan
        hostRules = HostRules(names: plan.machineNames, listeners: listeners)
        hot = Self.hotState(plan, core, context)
        context.secrets = plan.secrets
        sources = SourceTable()
        lastPassed = nil
        context.forgetOutgoing()
    }

    func value(of status: CacheStatus) -> String {
        if let lastStatus, lastStatus.status == status { return lastStatus.value }
        let value = status.value
        lastStatus = (status, value)
        return value
    }

    /// Ends all transfers; the last call, on the loop.
    package func shutdown() { client.shutdown() }

    package func answer(_ exchange: Exchange, on loop: isolated EventLoop) async {
        if hot.isTraced { exchange.beginTrace() }
        do throws(Problem) {
            try await route(exchange, on: loop)
        } catch {
            exchange.problem(error)
        }
    }
}

@available(*, unavailable) extension ProxyHandler: Sendable {}

/// The origins of services, each made at first use; loop-bound through its handler. Replaced as a whole with the plan.
struct SourceTable {
    private struct Place: Hashable {
        let route: ObjectIdentifier
        let endpoint: Int?
    }

    // The route is held, so that its identifier stays its own: requests under way may come with one of an older plan.
    private var sources: [Place: (route: ServiceRoute, source: OriginSource)] = [:]
    /// Whom the last request went to: the next one mostly goes there, too.
    private var last: (route: ServiceRoute, endpoint: Int?, source: OriginSource)?

    /// The source that was found last, if it is the one; nothing of a plan is copied for it.
    func last(_ route: ServiceRoute, _ endpoint: Int?) -> OriginSource? {
        guard let last, last.route === route, last.endpoint == endpoint else { return nil }
        return last.source
    }

    mutating func find(_ route: ServiceRoute, _ endpoint: Int?, make: () -> OriginSource) -> OriginSource {
        let place = Place(route: ObjectIdentifier(route), endpoint: endpoint)
        let source = sources[place]?.source ?? make()
        sources[place] = (route, source)
        last = (route, endpoint, source)
        return source
    }
}
