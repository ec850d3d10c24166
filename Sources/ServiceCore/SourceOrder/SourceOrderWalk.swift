// One call on its way over the sources of its route: each stage is asked, and its answer is judged.

import CacheStore
import DownloadCore
import EventLoop
import HTTPCaching
import HTTPWire
import Policies
import Upstream

/// Asks the stages of a route for one call. Loop-bound, since its call is.
struct SourceOrderWalk {
    private let order: SourceOrder<EndpointRoute>
    private var call: ServiceCall
    private var rest: ArraySlice<SourceOrder<EndpointRoute>.Stage>
    /// The content of the request, which each stage gets anew; nil if there is none, or if only one stage gets it.
    private var content: [UInt8]?
    /// The answer that is sent if no source has one: the origin's if it was asked.
    private(set) var last: ServiceAnswer?

    init(_ order: SourceOrder<EndpointRoute>, _ call: ServiceCall) {
        self.order = order
        self.call = call
        rest = order.stages[...]
    }

    /// Reads the content if several stages may need it. More than 1 MiB is not kept: only the origin gets it then, if
    /// it is a source.
    /// - Throws: an error if the client did not send all of it.
    mutating func readContent(on loop: isolated EventLoop) async throws(FetchError) {
        guard order.stages.count > 1, !call.isPlain else { return }
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
            rest = order.stages.filter { $0.sources.contains(.live) }[...]
        }
    }

    mutating func next() -> SourceOrder<EndpointRoute>.Stage? { rest.popFirst() }

    /// The call as a stage gets it.
    func attempt(_ stage: SourceOrder<EndpointRoute>.Stage) -> ServiceCall {
        var attempt = stage.call(call)
        if let content { attempt.body = ContentSource(content) }
        if let directives = stage.directives { attempt.head.fields.append(.cacheControl, directives) }
        return attempt
    }

    /// Judges the answer of a stage.
    /// - Returns: the answer for the client; nil if the next stage has to be asked.
    mutating func judge(_ result: ServiceAnswer, of stage: SourceOrder<EndpointRoute>.Stage, cacheName: String)
        -> ServiceAnswer?
    {
        // A fault has replaced the origin's answer; that is no reason to ask another source.
        if result.answer.isUnasked {
            last?.answer.reader?.close()
            return result
        }
        if let source = stage.source(of: result.answer, stage.route.request.policy) {
            last?.answer.reader?.close()
            call.match.route.runtime.countAnswer(of: source)
            var result = result
            result.source = source
            if source == .demo { result.answer.cacheStatus = CacheStatus(cacheName: cacheName, hit: true) }
            return result
        }
        // The failure is the client's or an operator's: another source would give no better answer.
        if let failure = result.answer.failure, !failure.isOfSource { return result }
        // If the origin is a source, its failure is the best explanation of why there is no answer.
        if stage.isOfOrigin(result.answer) || order.sources == [.recording] {
            last?.answer.reader?.close()
            last = result
        } else {
            result.answer.reader?.close()
        }
        return nil
    }

    /// The failure of a call that no source has answered.
    var refusal: FetchError {
        let sources = order.sources.map(\.rawValue).joined(separator: ", ")
        return .unanswered(
            "service \(call.match.route.plan.name) answers \(call.head.method.name) requests of this target from "
                + "\(sources) alone, and none has an answer; see 'drydock explain', or add a rung to 'from'"
        )
    }
}

@available(*, unavailable) extension SourceOrderWalk: Sendable {}

extension SourceOrder.Stage where Route == EndpointRoute {
    /// The call with the endpoint of this stage.
    package func call(_ call: ServiceCall) -> ServiceCall {
        let match = call.match
        var result = call
        result.match = match.staged(route)
        return result
    }
}

extension FetchError {
    /// True if another source may have an answer.
    fileprivate var isOfSource: Bool {
        switch self {
        case .onlyIfCached, .unrecorded: true
        default: isOriginFailure
        }
    }
}
