// One call on its way over the rungs of its route: what each is asked, which answers, and what is said if none does.

import CacheStore
import DownloadCore
import EventLoop
import HTTPCaching
import HTTPWire
import Policies
import Upstream

/// Loop-bound, because its call is.
struct LadderClimb {
    private let ladder: Ladder<EndpointRoute>
    private var call: ServiceCall
    private var rest: ArraySlice<Ladder<EndpointRoute>.Stage>
    /// The content of the request, for each stage anew; nil: there is none, or one stage alone has it.
    private var content: [UInt8]?
    /// The answer that stands if none is better: that of the origin where it was asked.
    private(set) var last: ServiceAnswer?

    init(_ ladder: Ladder<EndpointRoute>, _ call: ServiceCall) {
        self.ladder = ladder
        self.call = call
        rest = ladder.stages[...]
    }

    /// Reads the content where several stages may need it. Of more than 1 MiB nothing is held: the origin gets it, if it
    /// is a rung, and no other rung is asked.
    /// - Throws: that the client did not send all of it.
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

    /// The call as a stage is asked.
    func attempt(_ stage: Ladder<EndpointRoute>.Stage) -> ServiceCall {
        var attempt = stage.call(call)
        if let content { attempt.body = ContentSource(content) }
        if let directives = stage.directives { attempt.head.fields.append(.cacheControl, directives) }
        return attempt
    }

    /// - Returns: what the client gets; nil where the next stage is to be asked.
    mutating func judge(_ result: ServiceAnswer, of stage: Ladder<EndpointRoute>.Stage, cacheName: String)
        -> ServiceAnswer?
    {
        // A fault has taken the place of the origin's answer; it is no reason to ask another rung.
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
        // It is of the client, or of an operator: no other place would do better.
        if let failure = result.answer.failure, !failure.isOfRung { return result }
        // Where the origin is a rung, it says best why there is no answer.
        if stage.isOfOrigin(result.answer) || ladder.rungs == [.recording] {
            last?.answer.reader?.close()
            last = result
        } else {
            result.answer.reader?.close()
        }
        return nil
    }

    /// Why nobody has answered.
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
    /// The call with what the rungs leave of its endpoint.
    package func call(_ call: ServiceCall) -> ServiceCall {
        let match = call.match
        var result = call
        result.match = RouteMatch(match.route, match.rest, match.request, endpoint: route)
        return result
    }
}

extension FetchError {
    /// Another place may have an answer.
    fileprivate var isOfRung: Bool {
        switch self {
        case .onlyIfCached, .unrecorded: true
        default: isOriginFailure
        }
    }
}

/// Loop-bound. It has no answer, and opens no socket.
final class NobodySource: FetchSource {
    private let service: String

    /// - Parameter service: its name, for messages.
    init(service: String) { self.service = service }

    var opensSockets: Bool { false }

    func start(
        _ request: FetchRequest,
        sink: any FetchSink,
        on loop: isolated EventLoop
    ) async throws(FetchError) -> any FetchHandle {
        throw .unanswered("service \(service) asks no origin for it")
    }
}

@available(*, unavailable) extension NobodySource: Sendable {}
