// One download as metrics and traces see it: from its beginning to its end, which it has once.

import EventLoop
import FoundationEssentials
import HTTPTypes
import HTTPWire
import ServiceCore
import Synchronization
import Tracing

/// Sendable: its end is under a mutex, and what else it holds does not change.
final class DownloadObservation: Sendable {
    private let metrics: DownloadMetrics?
    private let tracer: (any Tracer)?
    private let span: (any Span)?
    /// Monotonic, in nanoseconds.
    private let began: UInt64
    private let isOver = Mutex(false)

    init(_ question: DownloadRequest, _ metrics: DownloadMetrics?, _ tracer: (any Tracer)?) {
        self.metrics = metrics
        self.tracer = tracer
        began = Monotonic.now()
        // The name that OpenTelemetry gives to the span of an HTTP client.
        let method = question.content == nil ? question.method.name : "POST"
        span = tracer?.startSpan(method, ofKind: .client)
        span?.updateAttributes { attributes in
            attributes["http.request.method"] = method
            attributes["url.full"] = question.shownURL
            attributes["server.address"] = question.origin.host
            attributes["server.port"] = Int(question.origin.effectivePort)
        }
    }

    deinit {
        // Nobody waited for the end.
        end(.cancelled)
    }

    /// Adds what continues the trace at an origin, such as `traceparent`, to the fields of requests.
    func inject(into fields: inout Fields) {
        guard let tracer, let span else { return }
        tracer.inject(span.context, into: &fields, using: FieldInjector())
    }

    /// The download has brought a response.
    /// - Parameter received: bytes of its body.
    func end(_ outcome: DownloadOutcome, _ status: Int, received: Int64) {
        end(outcome, received: received) { span in
            span.attributes["http.response.status_code"] = status
            span.attributes["http.response.body.size"] = received
            span.attributes["drydock.outcome"] = outcome.rawValue
            guard status >= 400 else { return }
            span.attributes["error.type"] = String(status)
            span.setStatus(SpanStatus(code: .error))
        }
    }

    /// The download has brought nothing.
    func end(_ error: DownloadError) {
        end(error.outcome, received: 0) { span in
            span.attributes["drydock.outcome"] = error.outcome.rawValue
            span.attributes["error.type"] = error.kindName
            span.recordError(error)
            span.setStatus(SpanStatus(code: .error, message: error.description))
        }
    }

    private func end(_ outcome: DownloadOutcome, received: Int64, _ describe: (any Span) -> Void) {
        let isFirst = isOver.withLock { isOver in
            defer { isOver = true }
            return !isOver
        }
        guard isFirst else { return }
        metrics?.note(outcome, received: received, nanoseconds: Monotonic.now() &- began)
        guard let span else { return }
        describe(span)
        span.end()
    }
}

/// Writes what a tracer wants to hand on into the fields of a request.
private struct FieldInjector: Injector {
    func inject(_ value: String, forKey key: String, into fields: inout Fields) { fields.set(key, value) }
}

extension DownloadError {
    /// The case, as one word of few.
    fileprivate var kindName: String {
        switch self {
        case .cancelled: "cancelled"
        case .invalidRequest: "invalidRequest"
        case .closed: "closed"
        case .unavailable: "unavailable"
        case .origin(let failure): "\(failure.kind)"
        case .unacceptableStatus(let result): String(result.head.status.code)
        case .notStored: "notStored"
        case .busy: "busy"
        case .tooLarge: "tooLarge"
        case .file, .notInPlace: "file"
        case .requestBody: "requestBody"
        }
    }
}
