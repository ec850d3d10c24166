// The routes of one configuration on one loop, with everything that answers by them.

import DownloadCore
import EventLoop
import ServiceCore
import Upstream

/// What a loop's handler answers by; loop-bound. Made anew and replaced as a whole by a reload, so that no part of it
/// is of another configuration than the rest.
struct RoutesInForce {
    let plan: RoutePlan
    /// Answers calls of the plan's services.
    let services: ServiceClient
    /// Finds whom a request is for.
    let router: Router
    /// Answers fresh hits.
    let hot: HotState
    /// Sends the answers of services.
    let responder: Responder

    init(
        _ plan: RoutePlan,
        core: DownloadCore,
        client: UpstreamClient,
        context: LoopContext,
        listeners: OwnListeners,
        calls: CallsUnderWay
    ) {
        self.plan = plan
        services = ServiceClient(
            plan: plan,
            core: core,
            client: client,
            listeners: listeners,
            calls: calls,
            onFetch: { [counters = context.counters] in counters.add(.upstreamRequests) },
            document: { refusal in
                let problem = Problem(refusal, plan)
                return RefusalDocument(head: problem.head(name: plan.name), body: problem.body)
            }
        )
        router = Router(plan, listeners)
        hot = HotState(
            plan: plan,
            memory: core.memory,
            clock: core.clock,
            isTraced: context.daemonLog.tellsDecisions,
            isJournaled: context.journal.isOn
        )
        responder = Responder(plan: plan, core: core, context: context)
    }
}

@available(*, unavailable) extension RoutesInForce: Sendable {}
