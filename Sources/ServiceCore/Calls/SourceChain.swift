// The sources between a call of a service and whoever answers it, as one list from the client's side to the origin's.

import Content
import DownloadCore
import EventLoop
import HTTPCaching
import Policies
import Upstream

/// The stages of a source chain, of the daemon and of the library, from the client's side to the origin's. A source knows
/// only the stages behind its own.
package enum SourceStage: UInt8, Comparable {
    case client, trace, call, upload, attempts, mapping, type, recording, redirects, credentials, cookies, query

    package static func < (left: SourceStage, right: SourceStage) -> Bool { left.rawValue < right.rawValue }
}

extension ServiceClient {
    /// Makes the source of a call's fetches. A request passes the list from top to bottom, and its answer from bottom
    /// to top.
    /// - Parameter stage: the stage behind which sources are made.
    /// - Throws: the refusal of a call whose service asks no origin.
    func source(of call: ServiceCall, behind stage: SourceStage = .client) throws(RouteRefusal) -> any FetchSource {
        let (route, endpoint) = (call.match.route, call.match.endpoint)
        // A trace tells what the service asks and gets: once, however many attempts it takes.
        if stage < .trace, let trace = call.trace {
            let proxy = call.match.origin.flatMap { route.plan.proxies.proxy(to: $0) }
            return TracedSource(try source(of: call, behind: .trace), trace, call, through: proxy?.authority)
        }
        // All attempts are one call to those who watch calls, and the attempts report to this source.
        if stage < .call { return told(try source(of: call, behind: .call), call) }
        // A retry may bring an answer that the stages behind it accept.
        if stage < .attempts, endpoint.request.policies.retry.count > 0, call.match.obstacle == nil {
            let source = try source(of: call, behind: .attempts)
            return attempts(at: call.trace?.span?.isSampled == true ? AttemptSource(source, call) : source, call)
        }
        // A mapping reads only documents of the type that is expected.
        if stage < .mapping, let mapping = endpoint.request.mapping {
            let source = try source(of: call, behind: .mapping)
            return MappingSource(
                call.trace?.span?.isSampled == true ? MappedSource(source, call) : source,
                mapping,
                isStored: endpoint.request.storesAnything,
                isSuccess: endpoint.request.policy.isSuccess
            )
        }
        // A recording is checked like an answer of the origin.
        if stage < .type, let types = endpoint.request.phases?.types {
            let within = endpoint.name.isEmpty ? "" : "endpoint '\(endpoint.name)' of "
            return ExpectedTypeSource(
                try source(of: call, behind: .type),
                types,
                endpoint.request.policy,
                owner: within + "service '\(route.plan.name)'"
            )
        }
        // What is recorded is what the origin sent, so that another mapping can be applied to it later.
        if stage < .recording, let recording = endpoint.request.recording {
            return RecordingSource(
                recording.source == .replay ? nil : try source(of: call, behind: .recording),
                recording,
                PhasePlan.seedExpectation(endpoint.request.phases, endpoint.request.policy),
                clock: core.clock,
                budget: core.budget,
                service: route.plan.name
            ) { [core] in core.isOffline }
        }
        // Only recordings may answer a route that asks nobody.
        if stage < .recording, endpoint.request.asksNobody {
            return NobodySource(.unanswered("service \(route.plan.name) asks no origin for it"))
        }
        if let obstacle = call.match.obstacle { return NobodySource(FetchError(obstacle, of: route)) }
        // Redirects lead from one origin to another, and the answer of the last one is that of the call.
        if stage < .redirects, endpoint.request.policies.redirects.limit > 0, let origin = call.match.origin {
            return following(try source(of: call, behind: .redirects), from: origin, call)
        }
        // Secrets of the services in front are written only into the request to their origin, and not to another one.
        if stage < .query, !call.hidden.isEmpty, route.plan.origin != nil {
            return HiddenQuerySource(try source(of: call, behind: .query), call.hidden)
        }
        // At the end stands the service's own origin, the origin that the target names, or another service.
        if let source = originSource(route, endpoint) { return source }
        if route.asksTarget, let origin = call.match.origin { return forwarding(to: origin, call) }
        guard let name = route.inner, let inner = plan.service(named: name), call.depth < ServiceRoute.maximumDepth
        else { throw .noAnswer(service: route.plan.name) }
        return InnerSource(self, inner, askedBy: call)
    }

    /// Adds the attempts of a call at a source.
    private func attempts(at source: any FetchSource, _ call: ServiceCall) -> RetryingSource {
        let (route, endpoint) = (call.match.route, call.match.endpoint)
        let resilience = route.runtime.resilience
        let guarded = route.plan.breaker == nil ? nil : call.match.origin?.root
        return RetryingSource(
            source,
            endpoint.request.policies.retry,
            expect: endpoint.request.phases?.expect ?? .anything,
            resilience: resilience,
            clock: core.clock,
            mayAsk: { [core, opensSockets = source.opensSockets] in
                !(core.isOffline && opensSockets) && !(guarded.map(resilience.leavesAlone) ?? false)
            }
        )
    }

    /// The source for the origin that the target of a call names.
    private func forwarding(to origin: OriginAddress, _ call: ServiceCall) -> ForwardSource {
        let (route, endpoint, target) = (call.match.route, call.match.endpoint, call.match.target)
        return ForwardSource(origin, route.plan.proxies, target, endpoint.request.timeouts, client, listeners) {
            [client, onFetch] addresses, timeouts in
            OriginSource(
                service: route.plan,
                origin: origin,
                plan: endpoint.request,
                runtime: route.runtime,
                client: client,
                target: target,
                addresses: addresses,
                timeouts: timeouts,
                onFetch: onFetch
            )
        }
    }
}

/// A source without answers, which opens no socket. Loop-bound.
final class NobodySource: FetchSource {
    private let failure: FetchError

    /// - Parameter failure: of each request.
    init(_ failure: FetchError) { self.failure = failure }

    var opensSockets: Bool { false }

    func start(
        _ request: FetchRequest,
        sink: any FetchSink,
        on loop: isolated EventLoop
    ) async throws(FetchError) -> any FetchHandle {
        throw failure
    }
}

@available(*, unavailable) extension NobodySource: Sendable {}
