// Which rung of a route would answer a request, and why the others would not; nothing is asked, and nothing changes.

import Configuration
import DownloadCore
import EventLoop
import HTTPCaching
import HTTPWire
import Policies
import ServiceCore

/// For the length of one question, on the loop.
struct LadderExplanation {
    private let services: ServiceClient

    init(_ services: ServiceClient) { self.services = services }

    private var core: DownloadCore { services.core }

    /// Each rung in its order, with what it would do if it were asked.
    func rungs(
        of ladder: Ladder<EndpointRoute>,
        _ call: ServiceCall,
        on loop: isolated EventLoop
    ) async -> [AdminExplanation.Rung] {
        var result: [AdminExplanation.Rung] = []
        for stage in ladder.stages {
            let attempt = stage.call(call)
            for rung in stage.rungs { result.append(await explain(rung, stage.route, attempt, on: loop)) }
        }
        return result
    }

    /// The same of a route whose answers come from its `source`.
    func rungs(
        of plan: RecordingPlan,
        _ call: ServiceCall,
        on loop: isolated EventLoop
    ) async -> [AdminExplanation.Rung] {
        let order: [AnswerRung] =
            switch plan.source {
            case .live: []
            case .record: plan.rules.onFailure == .replay ? [.live, .recording] : [.live]
            case .replayOrRecord: [.recording, .live]
            case .replay: [.recording]
            }
        var result: [AdminExplanation.Rung] = []
        for rung in order {
            // The source of a recorded route looks by itself whether anybody is to be asked.
            let isOffline = rung == .live && core.isOffline
            result.append(
                isOffline
                    ? AdminExplanation.Rung(rung: rung.rawValue, answers: false, reason: "the daemon is offline")
                    : await explain(rung, call.match.endpoint, call, on: loop)
            )
        }
        return result
    }

    private func explain(
        _ rung: AnswerRung,
        _ route: EndpointRoute,
        _ call: ServiceCall,
        on loop: isolated EventLoop
    ) async -> AdminExplanation.Rung {
        func says(_ answers: Bool, _ reason: String) -> AdminExplanation.Rung {
            AdminExplanation.Rung(rung: rung.rawValue, answers: answers, reason: reason)
        }
        switch rung {
        case .demo:
            guard let plan = route.demo else { return says(false, "there are no demo answers") }
            let rules = services.rulings(plan, on: call)
            guard let last = rules.last, last.answers else {
                let nearest = rules.last.map { ": \($0.differences.joined(separator: "; "))" } ?? ""
                return says(false, "no rule is for this request\(nearest)")
            }
            return says(true, last.rule.map { "rule \($0)" } ?? "its own answer")
        case .recording:
            let found = await RecordingLookup(services).recording(for: call)
            guard let recording = found.recording else { return says(false, found.reason) }
            return says(true, "recorded \(HTTPDate.format(recording.recordedAt))")
        default: break
        }
        if rung == .live, !core.isOffline, case .refused(let error) = OriginOutlook(call.match) {
            return says(false, error.description)
        }
        let step: ServiceStep
        do throws(RouteRefusal) { step = try services.liveStep(call) } catch {
            let problem = Problem(error, services.plan)
            return says(false, "\(problem.title): \(problem.detail)")
        }
        guard case .store(let ask, let source) = step else {
            guard rung == .live else { return says(false, "only GET and HEAD are answered from there") }
            let isOffline = core.isOffline && source(of: step)?.opensSockets ?? true
            return says(
                !isOffline,
                isOffline ? "the daemon is offline" : "asks \(call.match.origin?.root ?? "its service")"
            )
        }
        if rung == .live {
            if core.isOffline, source.opensSockets { return says(false, "the daemon is offline") }
            return says(true, "asks \((call.match.origin ?? call.match.route.address).root + ask.path)")
        }
        if rung == .fallback {
            guard let file = ask.phases?.fallback else { return says(false, "there is no file") }
            return says(true, "answers \(file.status) with \(file.path)")
        }
        if rung == .seed {
            guard let seed = ask.seed, await core.pinned(ask, seed) != nil else {
                return says(false, "no seed is of this URL, or the request has no-cache")
            }
            return says(true, "a seed")
        }
        return stored(rung, await core.explain(ask, on: loop), says)
    }

    /// - Parameter rung: `fresh` or `stale`.
    private func stored(
        _ rung: AnswerRung,
        _ found: StoredExplanation,
        _ says: (Bool, String) -> AdminExplanation.Rung
    ) -> AdminExplanation.Rung {
        let rules = found.rules
        guard let chosen = rules.chosen else { return says(false, "nothing is stored for this request") }
        let variant = rules.variants[chosen]
        let left = variant.lifetime.seconds - variant.timeInUse
        if rung == .fresh {
            if case .fresh? = rules.decision { return says(true, "fresh for \(Lifetimes.text(max(0, left)))") }
            return says(false, "\(rules.reason) (\(rules.section))")
        }
        switch variant.ifError {
        case .allowed(let limit):
            return says(true, "may answer up to \(Lifetimes.text(limit)) past its freshness (RFC 5861 section 4)")
        case .refused(let refusal): return says(false, "\(refusal.rawValue) (\(refusal.section))")
        }
    }

    private func source(of step: ServiceStep) -> (any FetchSource)? {
        switch step {
        case .pass(_, let source), .post(_, let source), .store(_, let source): source
        case .demo, .ladder: nil
        }
    }
}
