// The trace of one request in log lines, made only if it is logged.

import CacheStore
import DemoMode
import DownloadCore
import EventLoop
import HTTPCaching
import HTTPWire
package import Policies
import Upstream

/// The receiver of the log lines about one request.
package struct RequestTrace: Sendable {
    /// Writes a line of a module with a text and facts, see ``say(_:_:of:)``.
    private let line: @Sendable (LogModule, String, [(String, String)]) -> Void

    package init(_ line: @escaping @Sendable (_ module: LogModule, _ text: String, _ facts: [(String, String)]) -> Void)
    {
        self.line = line
    }

    /// Writes a line.
    /// - Parameters:
    ///   - facts: names and values that follow the text; empty values are left out. They contain no secrets of the
    ///     configuration.
    ///   - module: the module of the log whose level decides whether the line is written.
    package func say(_ text: String, _ facts: [(String, String)], of module: LogModule = .request) {
        line(module, text, facts)
    }
}

extension ServiceCall {
    /// Logs the service of a request, how it was found, and the next step.
    func tell(_ step: ServiceStep) {
        guard let trace else { return }
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

/// A source that logs its requests, before secret items are added, and their answers. Loop-bound, made for one request.
final class TracedSource: FetchSource {
    private let source: any FetchSource
    private let trace: RequestTrace
    private let base: String
    private let proxy: [(String, String)]

    /// Makes a source.
    /// - Parameters:
    ///   - base: what stands before the path of what is asked.
    ///   - proxy: the one on the way there.
    init(_ source: any FetchSource, _ trace: RequestTrace, _ base: String, through proxy: String?) {
        self.source = source
        self.trace = trace
        self.base = base
        self.proxy = proxy.map { [("proxy", $0)] } ?? []
    }

    var opensSockets: Bool { source.opensSockets }

    func start(
        _ request: FetchRequest,
        sink: any FetchSink,
        on loop: isolated EventLoop
    ) async throws(FetchError) -> any FetchHandle {
        let conditions: [KnownField] = [.ifNoneMatch, .ifModifiedSince, .ifMatch, .ifUnmodifiedSince, .range, .ifRange]
        let asked = conditions.flatMap { field in
            request.fields.combined(field).map { [(field.name.lowercased(), $0)] } ?? []
        }
        let url = [("method", request.method.name), ("url", base + request.path)] + proxy
        trace.say("asks the origin", url + asked, of: .download)
        do throws(FetchError) {
            return try await source.start(request, sink: TracedSink(sink, trace, url), on: loop)
        } catch {
            trace.say("the origin was not asked", url + [("error", error.description)], of: .download)
            throw error
        }
    }
}

@available(*, unavailable) extension TracedSource: Sendable {}

/// A sink that logs a fetch, and passes everything on. Loop-bound.
private final class TracedSink: PassingSink {
    let sink: (any FetchSink)?
    private let trace: RequestTrace
    private let asked: [(String, String)]
    private let began = Monotonic.now()

    init(_ sink: any FetchSink, _ trace: RequestTrace, _ asked: [(String, String)]) {
        self.sink = sink
        self.trace = trace
        self.asked = asked
    }

    private var took: [(String, String)] { [("took", "\((Monotonic.now() &- began) / 1_000_000) ms")] }

    func received(_ head: ResponseHead, framing: BodyFraming) {
        trace.say("the origin answered", asked + [("status", "\(head.status)")] + took, of: .download)
        sink?.received(head, framing: framing)
    }

    func failed(_ error: FetchError) {
        trace.say("the origin failed", asked + [("error", error.description)] + took, of: .download)
        sink?.failed(error)
    }
}

@available(*, unavailable) extension TracedSink: Sendable {}
