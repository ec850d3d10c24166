// The spans of the steps between a call and its origin: attempts to repeat a fetch, and mapping.

import DownloadCore
import EventLoop
import HTTPWire

/// A source behind another one of a call, whose requests name the span that it makes a step of. Loop-bound, made for one
/// request that is traced.
class StepSource {
    fileprivate let source: any FetchSource
    fileprivate let call: ServiceCall

    init(_ source: any FetchSource, _ call: ServiceCall) {
        self.source = source
        self.call = call
    }

    var opensSockets: Bool { source.opensSockets }

    /// The span that a request names; nil if it names none.
    fileprivate func span(of request: FetchRequest) -> OpenSpan? { call.trace?.span?.named(by: request.fields) }
}

@available(*, unavailable) extension StepSource: Sendable {}

/// The source of the attempts of a call, which makes a span of each but the first one: that is the fetch itself.
final class AttemptSource: StepSource, FetchSource {
    /// The span of the fetch that was begun last, and how often it was repeated.
    private var last: UInt64?
    private var repetitions = 0

    func start(
        _ request: FetchRequest,
        sink: any FetchSink,
        on loop: isolated EventLoop
    ) async throws(FetchError) -> any FetchHandle {
        guard let fetch = span(of: request), fetch.context.span == last else {
            (last, repetitions) = (span(of: request)?.context.span, 0)
            return try await source.start(request, sink: sink, on: loop)
        }
        repetitions += 1
        let span = FetchSpan(fetch.child(), request, call, repetition: repetitions)
        var request = request
        span.open.context.write(to: &request.fields)
        do throws(FetchError) {
            let told = TracedSink(sink, RequestTrace(nil), [], span)
            return try await source.start(request, sink: told, on: loop)
        } catch {
            span.end(error: error.description)
            throw error
        }
    }
}

/// The source of documents that are mapped, which makes a span of that: from the head of the document until it is mapped.
final class MappedSource: StepSource, FetchSource {
    func start(
        _ request: FetchRequest,
        sink: any FetchSink,
        on loop: isolated EventLoop
    ) async throws(FetchError) -> any FetchHandle {
        let told = span(of: request).map { MappedSink(sink, $0) } ?? sink
        return try await source.start(request, sink: told, on: loop)
    }
}

/// The mapping's sink with its span. Loop-bound; a document that is given up ends the span by dropping it.
private final class MappedSink: PassingSink {
    let sink: (any FetchSink)?
    private let fetch: OpenSpan
    /// Nil before the head, and once it has ended.
    private var span: OpenSpan?

    init(_ sink: any FetchSink, _ fetch: OpenSpan) {
        self.sink = sink
        self.fetch = fetch
    }

    deinit { end(error: "given up") }

    func received(_ head: ResponseHead, framing: BodyFraming) {
        span = fetch.child()
        sink?.received(head, framing: framing)
    }

    // The mapping has its result when these return.

    func finished(trailers: Fields) {
        sink?.finished(trailers: trailers)
        end(error: nil)
    }

    func failed(_ error: FetchError) {
        sink?.failed(error)
        end(error: error.description)
    }

    private func end(error: String?) {
        let span = span
        self.span = nil
        span?.end("mapping", .internal, error: error)
    }
}

@available(*, unavailable) extension MappedSink: Sendable {}
