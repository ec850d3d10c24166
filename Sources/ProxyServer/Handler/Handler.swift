// Answers the requests of one loop: what is shared by the hot path and the waiting path.

package import DownloadCore
package import EventLoop
import HTTPCaching
import HTTPWire
package import ServiceCore
package import Upstream

/// Loop-bound, one per loop.
package final class ProxyHandler: ExchangeHandler {
    let core: DownloadCore
    let client: UpstreamClient
    let context: LoopContext
    let listeners: OwnListeners
    /// The routes in force; replaced as a whole by a reload. Requests under way finish on the old ones.
    // Unchecked: nobody is called while it is replaced, and a check would be paid for with every request.
    @exclusivity(unchecked) package private(set) var plan: RoutePlan
    /// Answers by these routes.
    private(set) var services: ServiceClient
    private(set) var router: Router
    private(set) var hot: HotState
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
        context: LoopContext,
        listeners: OwnListeners
    ) {
        self.core = core
        self.client = client
        self.context = context
        self.listeners = listeners
        self.plan = plan
        services = Self.services(plan, core, client, context, listeners)
        router = Router(plan, listeners)
        hot = Self.hotState(plan, core, context)
        context.secrets = plan.secrets
    }

    /// Takes over the routes of a new configuration.
    package func update(_ plan: RoutePlan) {
        self.plan = plan
        services = Self.services(plan, core, client, context, listeners)
        router = Router(plan, listeners)
        hot = Self.hotState(plan, core, context)
        context.secrets = plan.secrets
        lastPassed = nil
        context.forgetOutgoing()
    }

    private static func hotState(_ plan: RoutePlan, _ core: DownloadCore, _ context: LoopContext) -> HotState {
        HotState(plan: plan, memory: core.memory, clock: core.clock, isTraced: context.daemonLog.tellsDecisions)
    }

    private static func services(
        _ plan: RoutePlan,
        _ core: DownloadCore,
        _ client: UpstreamClient,
        _ context: LoopContext,
        _ listeners: OwnListeners
    ) -> ServiceClient {
        ServiceClient(
            plan: plan,
            core: core,
            client: client,
            listeners: listeners,
            onFetch: { [counters = context.counters] in counters.add(.upstreamRequests) },
            document: { refusal in
                let problem = Problem(refusal, plan)
                return RefusalDocument(head: problem.head(name: plan.name), body: problem.body)
            }
        )
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
