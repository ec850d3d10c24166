// A service as the origin of another one, inside the daemon: no socket, the same answers.

import CacheStore
import DownloadCore
import EventLoop
import HTTPWire
import Upstream

/// Loop-bound.
final class InnerSource: FetchSource {
    private let handler: ProxyHandler
    private let route: ServiceRoute
    private let depth: Int

    init(handler: ProxyHandler, route: ServiceRoute, depth: Int) {
        self.handler = handler
        self.route = route
        self.depth = depth
    }

    func start(
        _ request: FetchRequest,
        sink: any FetchSink,
        on loop: isolated EventLoop
    ) async throws(FetchError) -> any FetchHandle {
        let fetch = InnerFetch(sink: sink)
        var fields = request.fields
        if let host = request.clientHost { fields.set(.host, host) }
        let routed = RoutedRequest(
            route: route,
            head: RequestHead(method: request.method, target: request.path, fields: fields),
            rest: request.path,
            originFields: request.fields,
            framing: request.framing,
            body: request.body,
            bindBody: request.bindBody,
            onInterim: { [weak fetch] in fetch?.sink?.received(interim: $0) },
            depth: depth
        )
        let handler = handler
        fetch.task = Task.immediate(executorPreference: loop.taskExecutor) {
            // Never before `start` has returned: the sink's owner has the handle by then.
            await Task.yield()
            await fetch.run(routed, handler, on: loop)
        }
        return fetch
    }
}

@available(*, unavailable) extension InnerSource: Sendable {}

/// One answer of a service on its way to another.
private final class InnerFetch: FetchHandle {
    fileprivate var sink: (any FetchSink)?
    fileprivate var task: Task<Void, Never>?
    private var waiter: UnsafeContinuation<Void, Never>?

    init(sink: any FetchSink) { self.sink = sink }

    func resume() {
        waiter?.resume()
        waiter = nil
    }

    func bodyAvailable() {}

    func cancel() {
        sink = nil
        task?.cancel()
        resume()
    }

    func run(_ request: RoutedRequest, _ handler: ProxyHandler, on loop: isolated EventLoop) async {
        let answer: ServiceAnswer
        do throws(Problem) {
            answer = try await handler.answer(request, on: loop)
        } catch {
            return give(error)
        }
        if let failure = answer.answer.failure {
            sink?.failed(failure)
            return end()
        }
        var head = answer.answer.head
        if let demo = answer.demo { head.fields.set("Drydock-Demo", demo) }
        if let age = answer.answer.age { head.fields.set(.age, String(age)) }
        let length = answer.answer.length
        let isHead = request.head.method == .head
        if let length { head.fields.set(.contentLength, String(length)) }
        sink?.received(head, framing: isHead ? .none : length.map { .length(UInt64(clamping: $0)) } ?? .chunked)
        await stream(answer.answer.reader, on: loop)
    }

    private func stream(_ reader: BodyReader?, on loop: isolated EventLoop) async {
        do throws(BodyError) {
            while let piece = try await reader?.next(maxBytes: 65536, on: loop) {
                let part = try await piece.load(on: loop)
                guard let sink else { return }
                let flow = part.chunk.withBytes { sink.received(UnsafeRawBufferPointer(rebasing: $0[part.range])) }
                if flow == .pause, self.sink != nil { await withUnsafeContinuation { waiter = $0 } }
            }
            sink?.finished(trailers: reader?.body.trailers ?? Fields())
        } catch {
            sink?.failed(.inner(error.description))
        }
        end()
    }

    /// An error document of the inner service is an answer like any other.
    private func give(_ problem: Problem) {
        let body = problem.body
        var head = problem.head(name: "drydock")
        head.fields.set(.contentLength, String(body.count))
        sink?.received(head, framing: .length(UInt64(body.count)))
        _ = body.withUnsafeBytes { sink?.received($0) }
        sink?.finished(trailers: Fields())
        end()
    }

    private func end() {
        sink = nil
        task = nil
    }
}

@available(*, unavailable) extension InnerFetch: Sendable {}
