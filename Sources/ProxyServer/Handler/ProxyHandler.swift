// Answers the requests of one loop: what is shared by the hot path, the direct way and the waiting path.

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
    /// Those of the loop, of all configurations.
    private let calls: CallsUnderWay
    /// Replaced by a reload. Requests under way finish by those that they began with.
    // Unchecked: no code outside runs while this variable is replaced, and each request would pay for the check.
    @exclusivity(unchecked) private(set) var routes: RoutesInForce
    /// Requests that were forwarded without a task.
    // Unchecked: no code outside runs while this variable changes, and each access would pay for the check.
    @exclusivity(unchecked) var directRequests = 0

    package init(
        on loop: isolated EventLoop,
        plan: RoutePlan,
        core: DownloadCore,
        client: UpstreamClient,
        context: LoopContext,
        listeners: OwnListeners,
        events: EventHub
    ) {
        self.core = core
        self.client = client
        self.context = context
        self.listeners = listeners
        calls = .make(events, on: loop)
        routes = RoutesInForce(
            plan,
            core: core,
            client: client,
            context: context,
            listeners: listeners,
            calls: calls
        )
        context.secrets = plan.secrets
        context.contents = plan.contents
    }

    /// Takes over the routes of a new configuration.
    package func update(_ plan: RoutePlan) {
        routes = RoutesInForce(
            plan,
            core: core,
            client: client,
            context: context,
            listeners: listeners,
            calls: calls
        )
        context.secrets = plan.secrets
        context.contents = plan.contents
        context.forgetOutgoing()
    }

    /// Ends all transfers; the last call, on the loop.
    package func shutdown() { client.shutdown() }

    // MARK: - The hot path

    /// With one of these fields a request takes the waiting path.
    private static let slow = HotPathWindow.disqualifying.subtracting(HotPathWindow.selecting)
        .union(FieldSet(.upgrade, .expect))

    package func answerSynchronously(_ request: borrowing HotRequest, through sender: any HotSender) -> HotAnswer {
        guard request.isGet, request.present.isDisjoint(with: Self.slow), !routes.hot.isJournaled else {
            return .notMine
        }
        return routes.hot.answer(request, core, through: sender)
    }

    // MARK: - The waiting path

    package func answer(_ exchange: Exchange, on loop: isolated EventLoop) async {
        if let made = exchange.made as? MadeAnswer {
            exchange.made = nil
            return await made.send(to: exchange, on: loop)
        }
        if routes.hot.isTraced { exchange.beginTrace() }
        beginDraft(exchange)
        do throws(Problem) {
            try await route(exchange, on: loop)
        } catch {
            exchange.problem(error)
        }
    }

    /// The exchange becomes an entry of the journal, where there is one.
    func beginDraft(_ exchange: Exchange) {
        if routes.hot.isJournaled, exchange.draft == nil { exchange.draft = JournalDraft(context.journal) }
    }

    /// What answers CONNECT and Upgrade.
    var tunnels: Tunnels { Tunnels(routes: routes, core: core, client: client, listeners: listeners) }

    /// What says of a request that no client has sent what would become of it.
    var unsent: UnsentRequests {
        UnsentRequests(routes: routes, core: core, listeners: listeners, limits: context.settings.head)
    }
}

@available(*, unavailable) extension ProxyHandler: Sendable {}
