// The choice of the requests that are traced, and the beginning and the end of their spans.

import EventLoop
import HTTPWire
import ServiceCore

/// Chooses the requests of one loop that are traced. Loop-bound; made anew with each configuration.
///
/// A draw waits for the next request that brings no decision. The hot path only looks at it, and uses it up if it answers; a
/// request that takes another way uses it up there.
final class RequestSampler {
    private let queue: SpanQueue
    /// What a draw of 64 bits must be below; nil if each request is traced.
    private let threshold: UInt64?
    private var draws = RequestIDs()
    private var draw: UInt64

    /// - Returns: nil if tracing is off.
    init?(_ queue: SpanQueue) {
        let settings = queue.settings
        guard settings.collector != nil else { return nil }
        self.queue = queue
        threshold = settings.sample >= 1 ? nil : UInt64(max(0, settings.sample) * 0x1p64)
        draw = draws.next()
    }

    /// Whether a request is traced: if it brings a decision, that counts.
    private func samples(_ parent: TraceContext?) -> Bool {
        parent?.isSampled ?? threshold.map { draw < $0 } ?? true
    }

    /// Whether the hot path has to leave a request to the waiting path, because it is traced.
    func samples(_ request: borrowing HotRequest) -> Bool { samples(request.traceParent) }

    /// Uses the draw up for a request that the hot path has answered.
    func answered() { draw = draws.next() }

    /// Begins the span of a request off the hot path.
    /// - Parameter startedAt: monotonic nanoseconds.
    func begin(_ fields: Fields, at startedAt: UInt64) -> OpenSpan {
        let parent = TraceContext(fields)
        let span = OpenSpan(below: parent, isSampled: samples(parent), at: startedAt, to: queue)
        if parent == nil { draw = draws.next() }
        return span
    }
}

@available(*, unavailable) extension RequestSampler: Sendable {}

extension HotRequest {
    /// The context that the request brings, but for its state; nil if it brings none, or one that is not valid.
    fileprivate var traceParent: TraceContext? {
        guard present.contains(.other) else { return nil }
        var (lines, parent) = (0, TraceContext?.none)
        fields.forEachLine { name, value, known in
            guard known == .other, name.equalsIgnoringCase(TraceContext.parentField) else { return }
            lines += 1
            parent = TraceContext(parent: value)
        }
        return lines == 1 ? parent : nil
    }
}

extension Exchange {
    /// Ends the span of the request with what the counters and the access log say of its answer.
    /// - Parameter isAborted: the client did not get the whole of it.
    func end(_ span: OpenSpan, _ kind: AnswerKind, isAborted: Bool) {
        let reason = isAborted && outcome.error.isEmpty ? "the client did not get the whole answer" : outcome.error
        let error = isAborted || kind.status >= 500 ? reason : nil
        span.end(request.method.traceName, .server, spanAttributes(kind), error: error)
    }

    private func spanAttributes(_ kind: AnswerKind) -> [TraceSpan.Attribute] {
        var attributes = [
            TraceSpan.Attribute("http.request.method", request.method.traceName),
            TraceSpan.Attribute("http.response.status_code", kind.status),
            TraceSpan.Attribute("url.scheme", client.connection.scheme),
            TraceSpan.Attribute("client.address", client.name),
            TraceSpan.Attribute("drydock.outcome", kind.outcome.label),
            TraceSpan.Attribute("drydock.tier", kind.tier.label),
        ]
        if case .other(let name) = request.method { attributes.append(.init("http.request.method_original", name)) }
        attributes += Self.attributes(ofTarget: shownTarget)
        let host = request.fields.first(.host).flatMap { Authority.parse($0) }
        if let server = client.connection.authority ?? host {
            attributes.append(.init("server.address", server.host))
            if let port = server.port { attributes.append(.init("server.port", Int(port))) }
        }
        if !outcome.route.isEmpty { attributes.append(.init("drydock.service", outcome.route)) }
        if !outcome.endpoint.isEmpty { attributes.append(.init("drydock.endpoint", outcome.endpoint)) }
        if kind.status >= 500 { attributes.append(.init("error.type", "\(kind.status)")) }
        return attributes
    }

    /// Path and query of a target without secrets, which has the form of a URL through the proxy and in tunnels; nothing of
    /// one without a path.
    private static func attributes(ofTarget target: String) -> [TraceSpan.Attribute] {
        guard let first = target.first(where: { $0 == "/" || $0 == "?" || $0 == ":" }) else { return [] }
        var rest = target[...]
        if first == ":" {
            let behind = rest.drop { $0 != ":" }
            guard behind.hasPrefix("://") else { return [] }
            rest = behind.dropFirst(3).drop { $0 != "/" }
        }
        let path = rest.prefix { $0 != "?" }
        let attributes = [TraceSpan.Attribute("url.path", path.isEmpty ? "/" : String(path))]
        return path.endIndex == rest.endIndex
            ? attributes : attributes + [TraceSpan.Attribute("url.query", String(rest[path.endIndex...].dropFirst()))]
    }
}
