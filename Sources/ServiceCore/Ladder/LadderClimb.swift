// One call on its way over the rungs of its route: each stage is asked, and its answer is judged.

import CacheStore
import DownloadCore
import EventLoop
import HTTPCaching
import HTTPWire
import Policies
import Upstream

/// Asks the stages of a route for one call. Loop-bound, since its call is.
struct LadderClimb {
    private let ladder: Ladder<EndpointRoute>
    private var call: ServiceCall
    private var rest: ArraySlice<Ladder<EndpointRoute>.Stage>
    /// The content of the request, which each stage gets anew; nil if there is none, or if only one stage gets it.
    private var content: [UInt8]?
    /// The answer that is sent if no rung has one: the origin's if it was asked.
    private(set) var last: ServiceAnswer?

    init(_ ladder: Ladder<EndpointRoute>, _ call: ServiceCall) {
        self.ladder = ladder
        self.call = call
        rest = ladder.stages[...]
    }

    /// Reads the content if several stages may need it. More than 1 MiB is not kept: only the origin gets it then, if
    /// it is a rung.
    /// - Throws: an error if the client did not send all of it.
    mutating func readContent(on loop: isolated EventLoop) async throws(FetchError) {
        guard ladder.stages.count > 1, !call.isPlain else { return }
        let read = try await PostedContent.read(
            call.body,
            bind: call.bindBody,
            atMost: RecordingSource.longestContent,
            on: loop
        )
        call.originFields.remove(.expect)
        if read.isWhole {
            content = read.bytes
            call.bindBody = nil
        } else {
            call.body = ContentSource(read.bytes, then: call.body)
            rest = ladder.stages.filter { $0.rungs.contains(.live) }[...]
        }
    }

    mutating func next() -> Ladder<EndpointRoute>.Stage? { rest.popFirst() }

    /// The call as a stage gets it.
    func attempt(_ stage: Ladder<EndpointRoute>.Stage) -> ServiceCall {
        var attempt = stage.call(call)
        if let content { attempt.body = ContentSource(content) }
        if let directives = stage.directives { attempt.head.fields.append(.cacheControl, directives) }
        return attempt
    }

    /// Judges the answer of a stage.
    /// - Returns: the answer for the client; nil if the next stage has to be asked.
    mutating func judge(_ result: ServiceAnswer, of stage: Ladder<EndpointRoute>.Stage, cacheName: String)
        -> ServiceAnswer?
    {
        // A fault has replaced the origin's answer; that is no reason to ask another rung.
        if result.answer.isUnasked {
            last?.answer.reader?.close()
            return result
        }
        if let rung = stage.rung(of: result.answer, stage.route.request.policy) {
            last?.answer.reader?.close()
            call.match.route.runtime.countAnswer(of: rung)
            var result = result
            result.rung = rung
            if rung == .demo { result.answer.cacheStatus = CacheStatus(cacheName: cacheName, hit: true) }
            return result
        }
        // The failure is the client's or an operator's: another rung would give no better answer.
        if let failure = result.answer.failure, !failure.isOfRung { return result }
        // If the origin is a rung, its failure is the best explanation of why there is no answer.
        if stage.isOfOrigin(result.answer) || ladder.rungs == [.recording] {
            last?.answer.reader?.close()
            last = result
        } else {
            result.answer.reader?.close()
        }
        return nil
    }

    /// The failure of a call that no rung has answered.
    var refusal: FetchError {
        let rungs = ladder.rungs.map(\.rawValue).joined(separator: ", ")
        return .unanswered(
            "service \(call.match.route.plan.name) answers \(call.head.method.name) requests of this target from "
                + "\(rungs) alone, and none has an answer; see 'drydock explain', or add a rung to 'from'"
        )
    }
}

@available(*, unavailable) extension LadderClimb: Sendable {}

extension Ladder.Stage where Route == EndpointRoute {
    /// The call with the endpoint of this stage.
    package func call(_ call: ServiceCall) -> ServiceCall {
        let match = call.match
        var result = call
        result.match = RouteMatch(match.route, match.rest, match.request, endpoint: route)
        return result
    }
}

extension FetchError {
    /// True if another rung may have an answer.
    fileprivate var isOfRung: Bool {
        switch self {
        case .onlyIfCached, .unrecorded: true
        default: isOriginFailure
        }
    }
}
