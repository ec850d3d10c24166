// Runs one fill: checks a stale stored response by HEAD or by a conditional GET, fetches, and stores what may be stored.

internal import CacheStore
internal import EventLoop
internal import HTTPCaching
internal import HTTPWire
internal import Upstream

/// Loop-bound: it lives on the loop of the request that started it, and its task keeps it.
///
/// States: checking → (refreshed | stale kept | fetching) → streaming → committed or failed.
final class FillRunner {
    let core: DownloadCore
    let fill: Fill
    let ask: CacheAsk
    let source: any FetchSource
    /// A stored response that may not be used without asking; nil on a miss.
    let stale: StoredResponse?
    let generation: GenerationToken
    /// Hears 1xx answers while the leader waits.
    var onInterim: ((ResponseHead) -> Void)?
    /// A request on this loop waits for the outcome: the body is made with its reader, so that no byte can be missed.
    var hasLeader = false
    var leaderReader: BodyReader?
    private var stream: FetchStream?
    private var isCancelled = false
    private var task: Task<Void, Never>?

    init(core: DownloadCore, fill: Fill, ask: CacheAsk, source: any FetchSource, stale: StoredResponse?) {
        self.core = core
        self.fill = fill
        self.ask = ask
        self.source = source
        self.stale = stale
        generation = core.generations.note(ask.key)
    }

    /// Runs as a task of its own, so that the fill outlives the request that began it.
    func start(on loop: isolated EventLoop) {
        task = Task.immediate(executorPreference: loop.taskExecutor) { await run(on: loop) }
    }

    /// Until the outcome is published.
    private func run(on loop: isolated EventLoop) async {
        do throws(FetchError) {
            try await checkAndFetch(on: loop)
        } catch {
            fill.outcome.set(outcome(of: error))
            core.finish(fill)
        }
    }

    /// Ends the fetch while nobody has its head, also where it waits for admission or for room; once the body flows,
    /// the body knows when nobody reads it.
    func cancel() {
        isCancelled = true
        task?.cancel()
        stream?.cancel()
    }

    /// The leader's reader, once.
    func takeLeaderReader() -> BodyReader? {
        defer {
            leaderReader = nil
            hasLeader = false
        }
        return leaderReader
    }

    // MARK: - Checking

    private func checkAndFetch(on loop: isolated EventLoop) async throws(FetchError) {
        var replaces = false
        var check: Revalidation?
        if let stale {
            check = Caching.revalidation(request: ask.request, stored: stale.head, policy: ask.policy)
            if let byHead = check, byHead.kind == .head {
                switch try await checkByHead(stale, byHead, on: loop) {
                case .settled: return
                case .changed:
                    // Known to be different: a conditional GET could only confirm that.
                    check = nil
                    replaces = true
                case .askByGet:
                    check = Caching.revalidation(
                        request: ask.request,
                        stored: stale.head,
                        policy: ask.policy,
                        forceConditional: true
                    )
                }
            }
        }
        try await fetch(check: check, replaces: replaces, on: loop)
    }

    private enum HeadResult { case settled, changed, askByGet }

    private func checkByHead(
        _ stale: StoredResponse,
        _ check: Revalidation,
        on loop: isolated EventLoop
    ) async throws(FetchError) -> HeadResult {
        if core.headRefusers.contains(ask.key) { return .askByGet }
        let requestTime = core.clock.now()
        let (stream, head) = try await start(.head, check, on: loop)
        stream.flow(into: Discard(stream))
        let now = core.clock.now()
        let verdict = Caching.judgeHead(
            stored: stale.head,
            headAnswer: head.response,
            now: now,
            requestTime: requestTime,
            request: ask.request,
            policy: ask.policy
        )
        switch verdict {
        case .unchanged(let freshened):
            await refreshed(stale, freshened, status: head.response.status, on: loop)
            return .settled
        case .changed(.noValidator): return .askByGet
        case .changed, .gone: return .changed
        case .unsupported:
            core.headRefusers.insert(ask.key)
            return .askByGet
        case .failed(let status):
            guard mayServeStale(errorStatus: status) else { return .askByGet }
            fill.outcome.set(.stale(stale, cause: .status(status)))
            core.finish(fill)
            return .settled
        }
    }

    private func refreshed(
        _ stale: StoredResponse,
        _ head: StoredHead,
        status: Int,
        on loop: isolated EventLoop
    ) async {
        let response = await core.store.freshen(stale, head: head, ask: ask, token: generation, on: loop)
        fill.outcome.set(.refreshed(response, status: status))
        core.finish(fill)
    }

    // MARK: - Fetching

    private func fetch(check: Revalidation?, replaces: Bool, on loop: isolated EventLoop) async throws(FetchError) {
        let requestTime = core.clock.now()
        let (stream, head) = try await start(.get, check, on: loop)
        let now = core.clock.now()
        let status = head.response.status
        if status == 304 {
            stream.flow(into: Discard(stream))
            guard let stale, check != nil else {
                throw .upstream(
                    UpstreamError(
                        .unexpectedStatus(304),
                        detail: "\(ask.key) answered 304 to a request without conditions; the origin is at fault"
                    )
                )
            }
            let freshened = Caching.freshened(
                stored: stale.head,
                by: head.response,
                requestTime: requestTime,
                responseTime: now,
                request: ask.request,
                policy: ask.policy
            )
            return await refreshed(stale, freshened, status: 304, on: loop)
        }
        if let stale, (500...599).contains(status), mayServeStale(errorStatus: status) {
            stream.flow(into: Discard(stream))
            fill.outcome.set(.stale(stale, cause: .status(status)))
            return core.finish(fill)
        }
        let arrival = Arrival(
            runner: self,
            head: head,
            stream: stream,
            requestTime: requestTime,
            now: now,
            replaces: replaces || check != nil
        )
        try await arrival.begin(on: loop)
    }

    private func start(
        _ method: Method,
        _ check: Revalidation?,
        on loop: isolated EventLoop
    ) async throws(FetchError) -> (FetchStream, FetchStream.Head) {
        if isCancelled { throw .cancelled }
        var fields = ask.originFields
        if let check { check.apply(to: &fields) } else { fields.removeConditions() }
        let stream = FetchStream()
        // Through the runner: it forgets a leader that has left.
        stream.onInterim = { [weak self] in self?.onInterim?($0) }
        self.stream = stream
        let request = FetchRequest(
            method: method,
            path: ask.path,
            fields: fields,
            clientHost: ask.request.fields.first(.host)
        )
        return (stream, try await stream.start(request, from: source, on: loop))
    }

    // MARK: - Failing

    private func mayServeStale(errorStatus: Int?) -> Bool {
        stale.map { core.mayServeStale($0, ask, errorStatus: errorStatus) } ?? false
    }

    private func outcome(of error: FetchError) -> FillOutcome {
        guard let stale, error.isOriginFailure, mayServeStale(errorStatus: nil) else { return .failed(error) }
        return .stale(stale, cause: .error(error))
    }
}

@available(*, unavailable) extension FillRunner: Sendable {}
