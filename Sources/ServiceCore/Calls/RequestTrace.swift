// The trace of one request: in log lines, and in spans; made only if one of them is wanted.

import CacheStore
import DemoMode
import DownloadCore
import EventLoop
import HTTPCaching
import HTTPWire
package import Policies
import Upstream

/// The receiver of the log lines and of the spans of one request.
package struct RequestTrace: Sendable {
    /// Writes a line of a module with a text and facts.
    package typealias Line = @Sendable (_ module: LogModule, _ text: String, _ facts: [(String, String)]) -> Void

    /// Writes a line, see ``say(_:_:of:)``; nil if the request is not logged.
    private let line: Line?
    /// The span that the steps of the request are parts of; nil if tracing is off.
    package let span: OpenSpan?

    package init(span: OpenSpan? = nil, _ line: Line?) {
        self.line = line
        self.span = span
    }

    /// Whether lines are written.
    package var isLogged: Bool { line != nil }

    /// The trace of a request that one of its steps has made.
    /// - Parameter fields: name the span of that step.
    func within(_ fields: Fields) -> RequestTrace { RequestTrace(span: span?.named(by: fields), line) }

    /// Writes a line.
    /// - Parameters:
    ///   - facts: names and values that follow the text; empty values are left out. They contain no secrets of the
    ///     configuration.
    ///   - module: the module of the log whose level decides whether the line is written.
    package func say(
        _ text: String,
        _ facts: @autoclosure () -> [(String, String)],
        of module: LogModule = .request
    ) {
        line?(module, text, facts())
    }
}

extension ServiceCall {
    /// Logs the service of a request, how it was found, and the next step, and begins the span of a look-up.
    func tell(_ step: ServiceStep) {
        guard let trace else { return }
        if case .store(let ask, let source) = step, ask.policy.mode != .none {
            (source as? TracedSource)?.beginLookup()
        }
        guard trace.isLogged else { return }
        let method = head.method.name
        let (source, rule, key): (String, String, String) =
            switch step {
            case .demo(let plan): ("demo", "demo answer \(plan.name)", "")
            case .order(let order): (order.sources.map(\.rawValue).joined(separator: ", then "), "from", "")
            case .store(let ask, _) where ask.policy.mode == .none:
                ("origin", "cache: nothing is stored or looked up", "\(ask.key)")
            case .store(let ask, _): ("store, then origin", "cache: \(method) is answered from the store", "\(ask.key)")
            case .post(let ask, _): ("store, then origin", "cache.methods: POST is stored", "\(ask.key)")
            case .pass: ("origin", "\(method) is passed on", "")
            }
        let route = match.route
        let mounted = route.host.map { "host \($0)" } ?? "prefix \(String(decoding: route.prefix, as: UTF8.self))"
        let found = match.isProxied ? mounted + ", through the proxy" : mounted
        let matched = route.isForward ? "the target names the origin" : found
        trace.say(
            "decided",
            [
                ("service", route.label), ("matched", depth > 0 ? "asked by another service" : matched),
                ("endpoint", match.endpoint.name), ("source", source), ("rule", rule),
                ("origin", route.asksTarget ? match.origin?.root ?? "" : ""), ("key", key),
            ]
        )
    }
}

extension RequestTrace {
    /// Logs the answer, and why it was stored or not.
    package func tell(_ result: ServiceAnswer) {
        guard isLogged else { return }
        if let demo = result.demo { return say("answer", [("what", "a demo answer"), ("demo", demo)]) }
        guard let status = result.answer.cacheStatus else {
            return say("answer", [("what", "an answer without a cache")])
        }
        let what =
            if result.answer.failure != nil {
                "no answer from the origin"
            } else if result.answer.isUnasked {
                "a fault's; the origin was not asked"
            } else if status.hit {
                "what is stored"
            } else if status.detail == CacheStatus.Detail.revalidated.rawValue {
                "what is stored, which the origin has confirmed"
            } else if status.detail == CacheStatus.Detail.staleIfError.rawValue {
                "what is stored, in place of the origin's failure"
            } else if status.detail == CacheStatus.Detail.otherVariant.rawValue {
                "another variant that is stored, in place of the origin's failure"
            } else {
                status.stored ? "the origin's, which is stored" : "the origin's, which is not stored"
            }
        say(
            "answer",
            [
                ("what", what), ("cache_status", status.value),
                ("rule", result.answer.storeReason?.section ?? status.section ?? ""),
                ("error", result.answer.failure?.description ?? result.answer.cause ?? ""),
            ]
        )
    }

}

extension CacheStatus {
    /// The section behind `detail`, such as `RFC 9111 section 5.2.2.5`; nil if that is no reason.
    fileprivate var section: String? {
        guard let detail else { return nil }
        return StoreRefusal(rawValue: detail)?.section ?? UnstoredReason(rawValue: detail)?.section
            ?? StaleReason(rawValue: detail)?.section ?? StaleAllowance(rawValue: detail)?.section
            ?? StaleRefusal(rawValue: detail)?.section
    }
}

/// A source that logs its requests, before secret items are added, and their answers, and makes a span of each, which its
/// origin is told of. Loop-bound, made for one request.
final class TracedSource: FetchSource {
    private let source: any FetchSource
    private let trace: RequestTrace
    private let call: ServiceCall
    private let proxy: [(String, String)]
    /// The span of the look-up in the store before the first request; nil if there is none, and once it has ended.
    private var lookup: OpenSpan?

    /// Makes a source.
    /// - Parameters:
    ///   - call: the call that the requests are made for.
    ///   - proxy: the one on the way there.
    init(_ source: any FetchSource, _ trace: RequestTrace, _ call: ServiceCall, through proxy: String?) {
        self.source = source
        self.trace = trace
        self.call = call
        self.proxy = proxy.map { [("proxy", $0)] } ?? []
    }

    var opensSockets: Bool { source.opensSockets }

    /// Begins the look-up in the store, now.
    func beginLookup() { lookup = trace.span?.child() }

    /// Ends the look-up, unless it has ended.
    /// - Parameter result: what it led to: an `answer`, which the store has or another request gets, or a `fetch`.
    func endLookup(_ result: String) {
        let span = lookup
        lookup = nil
        span?.end("look-up", .internal, [TraceSpan.Attribute("drydock.lookup", result)])
    }

    func start(
        _ request: FetchRequest,
        sink: any FetchSink,
        on loop: isolated EventLoop
    ) async throws(FetchError) -> any FetchHandle {
        endLookup("fetch")
        var request = request
        let span = trace.span.map { FetchSpan($0.child(), request, call) }
        span?.open.context.write(to: &request.fields)
        let url = trace.isLogged ? [("method", request.method.name), ("url", call.asked + request.path)] + proxy : []
        trace.say("asks the origin", url + Self.conditions(of: request), of: .download)
        do throws(FetchError) {
            let isTold = trace.isLogged || span?.open.isSampled == true
            let told: any FetchSink = isTold ? TracedSink(sink, trace, url, span) : sink
            return try await source.start(request, sink: told, on: loop)
        } catch {
            trace.say("the origin was not asked", url + [("error", error.description)], of: .download)
            span?.end(error: error.description)
            throw error
        }
    }

    private static func conditions(of request: FetchRequest) -> [(String, String)] {
        let conditions: [KnownField] = [.ifNoneMatch, .ifModifiedSince, .ifMatch, .ifUnmodifiedSince, .range, .ifRange]
        return conditions.flatMap { field in
            request.fields.combined(field).map { [(field.name.lowercased(), $0)] } ?? []
        }
    }
}

@available(*, unavailable) extension TracedSource: Sendable {}

/// A sink that logs a fetch, ends its span, and passes everything on. Loop-bound.
final class TracedSink: PassingSink {
    let sink: (any FetchSink)?
    private let trace: RequestTrace
    private let asked: [(String, String)]
    private let span: FetchSpan?
    private let began = Monotonic.now()

    init(_ sink: any FetchSink, _ trace: RequestTrace, _ asked: [(String, String)], _ span: FetchSpan?) {
        self.sink = sink
        self.trace = trace
        self.asked = asked
        self.span = span
    }

    private var took: [(String, String)] { [("took", "\((Monotonic.now() &- began) / 1_000_000) ms")] }

    func received(_ head: ResponseHead, framing: BodyFraming) {
        trace.say("the origin answered", asked + [("status", "\(head.status)")] + took, of: .download)
        span?.status = head.status
        sink?.received(head, framing: framing)
    }

    func finished(trailers: Fields) {
        span?.end(error: nil)
        sink?.finished(trailers: trailers)
    }

    func failed(_ error: FetchError) {
        trace.say("the origin failed", asked + [("error", error.description)] + took, of: .download)
        span?.end(error: error.description)
        sink?.failed(error)
    }
}

@available(*, unavailable) extension TracedSink: Sendable {}
