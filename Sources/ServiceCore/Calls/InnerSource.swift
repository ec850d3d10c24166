// A service as the origin of another one in the same daemon: no socket, the same answers.

import CacheStore
import DownloadCore
import EventLoop
import HTTPWire
import Upstream

/// The source that asks another service. The field rules and the query of the asking service apply, as for a real
/// origin.
///
/// Loop-bound; made for one request.
final class InnerSource: FetchSource {
    private let client: ServiceClient
    private let route: ServiceRoute
    private var call: ServiceCall

    /// The inner service opens no socket; a source that it asks answers this for itself.
    var opensSockets: Bool { false }

    /// Makes a source.
    /// - Parameters:
    ///   - route: the service that answers.
    ///   - call: the call of the service whose base URL names `route`.
    init(_ client: ServiceClient, _ route: ServiceRoute, askedBy call: ServiceCall) {
        self.client = client
        self.route = route
        self.call = call
        // Each request brings its own body.
        self.call.body = nil
        self.call.bindBody = nil
        self.call.onInterim = nil
        self.call.endWithClient = nil
    }

    func start(
        _ request: FetchRequest,
        sink: any FetchSink,
        on loop: isolated EventLoop
    ) async throws(FetchError) -> any FetchHandle {
        let (asking, plan) = (call.match.route, call.match.endpoint.request)
        do throws(AdmissionRefusal) {
            try await asking.runtime.admission.acquire(request.urgency, on: loop)
        } catch {
            throw FetchError(error, service: asking.plan)
        }
        let fetch = InnerFetch(sink: sink, admission: asking.runtime.admission)
        var fields = request.fields
        asking.plan.change(plan).apply(to: &fields)
        var headFields = fields
        if let host = request.clientHost { headFields.set(.host, host) }
        let head = RequestHead(method: request.method, target: request.path, fields: headFields)
        var inner = ServiceCall(
            RouteMatch(route, request.path, head),
            request,
            fields,
            depth: call.depth + 1,
            hidden: call.hidden.adding(plan.query, of: asking, to: request.path)
        )
        inner.onInterim = { [weak fetch] in fetch?.sink?.received(interim: $0) }
        inner.trace = call.trace?.within(fields)
        inner.whenEnding = call.whenEnding
        fetch.limit(by: plan.timeouts, asking: "\(asking.plan.name) asking service \(route.plan.name)", on: loop)
        fetch.task = Task.immediate(executorPreference: loop.taskExecutor) { [client, inner] in
            // The answer comes only after `start` has returned, so that the owner of the sink has the handle.
            await Task.yield()
            await fetch.run(inner, client, on: loop)
        }
        return fetch
    }
}

@available(*, unavailable) extension InnerSource: Sendable {}

/// One answer of a service on its way to another; it returns its slot exactly once.
private final class InnerFetch: EndHandle {
    fileprivate var sink: (any FetchSink)?
    fileprivate var task: Task<Void, Never>?
    private(set) var isEndProven = true
    private var admission: Admission?
    private var waiter: UnsafeContinuation<Void, Never>?
    private var deadlines = Deadlines(.none, now: 0)
    private var timer: LoopTimer?

    init(sink: any FetchSink, admission: Admission) {
        self.sink = sink
        self.admission = admission
    }

    deinit { admission?.release() }

    func resume() {
        waiter?.resume()
        waiter = nil
    }

    // The source of the inner service reads the body, and is woken by it directly.
    func bodyAvailable() {}

    func cancel() {
        let task = task
        end()
        task?.cancel()
        resume()
    }

    /// Fails when a deadline passes. There is no connection, so that `timeout.connect` has no effect.
    func limit(by timeouts: Timeouts, asking services: String, on loop: isolated EventLoop) {
        deadlines = Deadlines(timeouts, now: Monotonic.now())
        deadlines.enter(.waiting, now: Monotonic.now())
        timer = LoopTimer(on: loop) { [weak self] in self?.timerFired(services) }
        armTimer()
    }

    private func timerFired(_ services: String) {
        guard let phase = deadlines.expired(now: Monotonic.now()) else { return armTimer() }
        guard let sink else { return }
        cancel()
        let detail = "service \(services) got no answer in time; raise timeout.\(phase.rawValue), or lower its latency"
        sink.failed(.upstream(UpstreamError(.timeout(phase), detail: detail)))
    }

    private func armTimer() {
        guard let next = deadlines.next else { return }
        let now = Monotonic.now()
        timer?.start(after: next.at > now ? next.at - now : 0)
    }

    /// Waits until the sink wants bytes again; the deadlines pause meanwhile.
    private func waitForResume(on loop: isolated EventLoop) async {
        deadlines.setSuspended(true, now: Monotonic.now())
        await withUnsafeContinuation { waiter = $0 }
        deadlines.setSuspended(false, now: Monotonic.now())
        armTimer()
    }

    func run(_ call: ServiceCall, _ client: ServiceClient, on loop: isolated EventLoop) async {
        // The fetch may have been abandoned before it began.
        guard isWanted else { return }
        let answer: ServiceAnswer
        let isHead = call.head.method == .head
        do throws(RouteRefusal) {
            answer = try await client.answer(call, on: loop)
        } catch {
            return give(client.document(error), isHead: isHead)
        }
        deadlines.enter(.receiving, now: Monotonic.now())
        armTimer()
        if let failure = answer.answer.failure {
            let sink = sink
            end()
            sink?.failed(failure)
            return
        }
        var head = answer.answer.head
        if let demo = answer.demo { head.fields.set("Drydock-Demo", demo) }
        if let age = answer.answer.age { head.fields.set(.age, String(age)) }
        let length = answer.answer.length
        if let length { head.fields.set(.contentLength, String(length)) }
        let framing: BodyFraming =
            isHead || answer.answer.reader == nil ? .none : length.map { .length(UInt64(clamping: $0)) } ?? .chunked
        sink?.received(head, framing: framing)
        await stream(answer.answer.reader, on: loop)
    }

    private func stream(_ reader: BodyReader?, on loop: isolated EventLoop) async {
        defer { reader?.close() }
        let result: Result<Fields, FetchError>
        do throws(BodyError) {
            while let piece = try await reader?.next(maxBytes: 65536, on: loop) {
                let part = try await piece.load(on: loop)
                guard let sink else { return }
                let flow = part.chunk.withBytes { sink.received(UnsafeRawBufferPointer(rebasing: $0[part.range])) }
                deadlines.progress(now: Monotonic.now())
                if flow == .pause, self.sink != nil { await waitForResume(on: loop) }
            }
            isEndProven = reader?.isEndProven ?? true
            result = .success(reader?.trailers ?? Fields())
        } catch {
            result = .failure(.inner(error.description))
        }
        let sink = sink
        end()
        switch result {
        case .success(let trailers): sink?.finished(trailers: trailers)
        case .failure(let error): sink?.failed(error)
        }
    }

    /// Delivers a refusal of the inner service, which is an answer like any other.
    private func give(_ document: RefusalDocument, isHead: Bool) {
        var (head, body) = (document.head, document.body)
        // The asking service adds Via to every answer, and two would name this daemon twice.
        head.fields.remove(.via)
        head.fields.set(.contentLength, String(body.count))
        guard let sink else { return }
        sink.received(head, framing: isHead ? .none : .length(UInt64(body.count)))
        // The sink may abandon the fetch in each call, and must not be called again then.
        if !isHead, isWanted { body.withUnsafeBytes { bytes in _ = sink.received(bytes) } }
        guard isWanted else { return }
        end()
        sink.finished(trailers: Fields())
    }

    private var isWanted: Bool { sink != nil }

    private func end() {
        sink = nil
        task = nil
        timer?.cancel()
        timer = nil
        admission?.release()
        admission = nil
    }
}

@available(*, unavailable) extension InnerFetch: Sendable {}
