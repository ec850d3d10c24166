// Runs one shared fetch: checks what is stored by HEAD or by a conditional GET, fetches, and stores what may be stored.

import CacheStore
import EventLoop
import HTTPCaching
import HTTPWire
import Policies
import Upstream

/// The runner of one shared fetch. Loop-bound: it lives on the loop of the request that started it, and its task
/// retains it.
///
/// States: checking → (refreshed | stale kept | fetching) → streaming → committed or failed.
final class SharedFetchRunner {
    let context: FetchContext
    let fetch: SharedFetch
    let ask: CacheRequest
    let source: any FetchSource
    /// The stored response that may not be used without a check; nil on a miss.
    let stale: StoredResponse?
    let generation: InvalidationToken
    /// Whether a HEAD has failed: only a GET can show whether the origin fails at all, or only at HEAD.
    var hasHeadFailed = false
    /// Whether there are stored responses that other requests select.
    let hasOtherVariants: Bool
    /// The part to request; nil for the whole.
    let plan: RangeFetchPlan?
    /// Called with 1xx responses while the leader waits.
    var onInterim: ((ResponseHead) -> Void)?
    /// The body's reader for the leader, the request on this loop that waits for the outcome: opened with the body, so
    /// that no byte can be missed.
    var leaderReader: BodyReader?
    /// The arriving part with its reader for the leader; nil unless a part arrives.
    var leaderPart: RangeInFlight?
    /// The Set-Cookie lines of the answer to a validation or a range request: they are only for the client whose
    /// request was sent.
    private(set) var ownCookies: [String] = []
    private var stream: FetchStream?
    /// The pump of the body; nil before there is a body.
    weak var pump: BodyPump?
    private var ticket: FetchRegistration?
    private var isCancelled = false
    private var task: Task<Void, Never>?

    init(
        context: FetchContext,
        fetch: SharedFetch,
        ask: CacheRequest,
        source: any FetchSource,
        stale: StoredResponse?,
        hasOtherVariants: Bool = false,
        plan: RangeFetchPlan? = nil
    ) {
        self.context = context
        self.fetch = fetch
        self.ask = ask
        self.source = source
        self.stale = stale
        self.hasOtherVariants = hasOtherVariants
        self.plan = plan
        generation = context.invalidations.token(for: ask.key)
    }

    /// Whether the leader waits for the outcome.
    var isLed: Bool { fetch.state.isLed }

    /// Starts a task of its own, so that the fetch outlives the request that began it.
    func start(on loop: isolated EventLoop) {
        attach(on: loop)
        task = Task.immediate(executorPreference: loop.taskExecutor) { await run(on: loop) }
    }

    /// Runs until the outcome is published.
    private func run(on loop: isolated EventLoop) async {
        do throws(FetchError) {
            try await checkAndFetch(on: loop)
        } catch {
            failed(error)
        }
    }

    /// Ends the fetch before its head is published, even while it waits for admission. Once the body flows, the body
    /// itself notices that it has no readers.
    private func cancel() {
        isCancelled = true
        task?.cancel()
        stream?.cancel()
    }

    /// Registers the fetch in the table by which an operator can end it.
    func attach(on loop: isolated EventLoop) {
        let (fetch, table) = (fetch, context.inFlight)
        let ticket = FetchRegistration(context.fetches, ask.key, on: loop) {
            fetch.audience
        } told: { error in
            table.stop(fetch, error)
        } dropWaiters: { error in
            table.dropWaiters(of: fetch, error)
        } keepGoing: {
            table.send(.wanted, to: fetch)
        }
        ticket.onStop = { [weak self] in self?.stop($0) }
        self.ticket = ticket
        let link = Link(self)
        fetch.connect { actions in loop.submit { _ in link.runner?.perform(actions) } }
    }

    /// The way from other threads, on which requests leave, to the runner.
    private final class Link: @unchecked Sendable {  // `runner` is touched on the loop of the fetch only
        private(set) weak var runner: SharedFetchRunner?

        init(_ runner: SharedFetchRunner) { self.runner = runner }
    }

    /// Applies an event to the shared fetch, and does what follows.
    @discardableResult
    func send(_ event: SharedFetchState.Event) -> SharedFetchState.Actions {
        let actions = context.inFlight.send(event, to: fetch)
        perform(actions)
        return actions
    }

    /// Does the runner's part of actions before the body flows; later ``IncomingResponse`` does it.
    private func perform(_ actions: SharedFetchState.Actions) {
        if actions.contains(.reportAbandoned) { context.notes.noteAbandoned(ask, received: 0) }
        if actions.contains(.cancel) { cancel() }
        if actions.contains(.checkReaders) { pump?.checkReaders() }
    }

    private func stop(_ error: FetchError) {
        let pump = pump
        cancel()
        pump?.stop(error)
    }

    /// The leader's reader; nil after the first call.
    func takeLeaderReader() -> BodyReader? {
        defer { leaderReader = nil }
        return leaderReader
    }

    /// The leader's part with its reader; nil after the first call.
    func takeLeaderPart() -> RangeInFlight? {
        defer { leaderPart = nil }
        return leaderPart
    }

    // MARK: - Fetching

    func keepCookies(of answer: ResponseHead) { ownCookies = answer.fields.all(.setCookie) }

    func settle(_ outcome: FillOutcome) {
        context.notes.noteCheck(ask, outcome)
        fetch.outcome.set(outcome)
        context.inFlight.end(fetch)
    }

    /// One request for the whole representation that is under way.
    private final class Attempt {
        /// The stored responses that a validation may confirm; nil for a request without conditions.
        let known: RevalidationCandidates?
        let check: Revalidation?
        let replaces: Bool
        /// The time of the request, Unix seconds.
        let requestTime: Int64
        let request: FetchRequest

        init(_ runner: SharedFetchRunner, _ known: RevalidationCandidates?, replaces: Bool) {
            let (context, ask) = (runner.context, runner.ask)
            let capabilities = context.notes.capabilities[ask.key, context.clock.now()]
            check = known?.check(capabilities: capabilities, byGet: true)
            requestTime = context.clock.now()
            request = runner.request(.get, check)
            self.known = known
            self.replaces = replaces
        }
    }

    /// The consequence of an answer's head.
    private enum Whole {
        case arrives(IncomingResponse)
        /// The answer is about a stored response, if there is one.
        case validates(VariantUpdate, Revalidation)
        /// The outcome is published.
        case settled
    }

    /// Fetches the whole representation.
    /// - Parameter known: the stored responses that a validation may confirm; nil fetches without conditions.
    func fetchWhole(_ known: RevalidationCandidates?, replaces: Bool, on loop: isolated EventLoop)
        async throws(FetchError)
    {
        let attempt = attempt(known, replaces: replaces)
        let stream = try makeStream(.get)
        switch try judge(try await stream.start(attempt.request, from: source, on: loop), stream, attempt) {
        case .arrives(let incoming): try await incoming.begin(on: loop)
        case .validates(let update, let check):
            if let response = await update.by304(check, on: loop) { return confirm(response, by: update.answer) }
            // The 304 is about a response that is not stored (RFC 9111 section 4.3.4).
            try await fetchWhole(nil, replaces: replaces || stale != nil, on: loop)
        case .settled: break
        }
    }

    // What precedes and follows a wait is in separate functions, so that a waiting fetch has none of their variables in
    // its frame.

    @inline(never) private func attempt(_ known: RevalidationCandidates?, replaces: Bool) -> Attempt {
        Attempt(self, known, replaces: replaces)
    }

    @inline(never) private func judge(
        _ head: FetchStream.Head,
        _ stream: FetchStream,
        _ attempt: Attempt
    ) throws(FetchError) -> Whole {
        let answer = head.response
        let times = context.clock.times(since: attempt.requestTime)
        if hasHeadFailed, answer.status < 400 || answer.status == stale?.head.status {
            context.notes.capabilities.note(ask.key) { $0.noteFailedHead(now: times.responseTime) }
        }
        if let check = attempt.check, let known = attempt.known {
            context.notes.capabilities.note(ask.key) { capabilities in
                if let stored = known.preferred { capabilities.noteConditional(stored: stored.head, answer: answer) }
            }
            if answer.status == 304 {
                stream.flow(into: BodyDrain(stream))
                return .validates(VariantUpdate(context, known, generation, answer, times), check)
            }
        } else if answer.status == 304 {
            stream.flow(into: BodyDrain(stream))
            throw .upstream(
                UpstreamError(
                    .unexpectedStatus(304),
                    detail: "\(ask.key) answered 304 to a request without conditions; the origin is at fault"
                )
            )
        }
        if let stale, ask.policy.countsAsFailure(answer.status), mayServeStale(errorStatus: answer.status) {
            stream.flow(into: BodyDrain(stream))
            settle(.stale(stale, cause: .status(answer.status)))
            return .settled
        }
        let isUnaskedPart = answer.status == 206
        if isUnaskedPart, ask.policy.mode == .library {
            stream.cancel()
            throw .wrongPart(ask.key.description, "of all", .unasked)
        }
        return .arrives(
            IncomingResponse(
                runner: self,
                head: head,
                stream: stream,
                times: times,
                // A part replaces nothing.
                replaces: !isUnaskedPart && (attempt.replaces || attempt.check != nil && stale != nil),
                partRefusal: isUnaskedPart ? PartMismatch.unasked.detail : nil
            )
        )
    }

    /// The request that checks the stored responses, or the one without conditions.
    @inline(never) func request(_ method: Method, _ check: Revalidation?) -> FetchRequest {
        var fields = ask.originFields
        if let check { check.apply(to: &fields) } else { fields.removeConditions() }
        var request = ask.fetchRequest(method, fields)
        request.isCheck = check != nil
        return request
    }

    /// The stream of the next request, which is not started yet.
    @inline(never) func makeStream(_ method: Method) throws(FetchError) -> FetchStream {
        if isCancelled { throw .cancelled }
        let stream = FetchStream()
        // Called through the runner, which forgets a leader that has left.
        stream.onInterim = { [weak self] in self?.onInterim?($0) }
        self.stream = stream
        try context.prepare(stream, for: method, to: source)
        return stream
    }

    // MARK: - Failing

    private func mayServeStale(errorStatus: Int?) -> Bool {
        stale.map { context.mayServeStale($0, ask, errorStatus: errorStatus) } ?? false
    }

    @inline(never) private func failed(_ error: FetchError) { settle(outcome(of: error)) }

    private func outcome(of error: FetchError) -> FillOutcome {
        if let plan, plan.isCheck, let partial = plan.partial, error.isOriginFailure,
            mayServeStale(partial, errorStatus: nil)
        {
            return .stalePart(partial, cause: .error(error))
        }
        guard let stale, error.isOriginFailure, mayServeStale(errorStatus: nil) else { return .failed(error) }
        return .stale(stale, cause: .error(error))
    }
}

@available(*, unavailable) extension SharedFetchRunner: Sendable {}

// MARK: - Validation

extension SharedFetchRunner {
    /// Checks and fetches until the outcome is published, or the error is known.
    func checkAndFetch(on loop: isolated EventLoop) async throws(FetchError) {
        if let plan { return try await fetchPart(plan, on: loop) }
        if mayCheck { return try await check(on: loop) }
        try await fetchWhole(nil, replaces: false, on: loop)
    }

    /// Whether a response is stored that a check may confirm.
    @inline(never) private var mayCheck: Bool {
        ask.policy.revalidate != .never && (stale != nil || hasOtherVariants)
    }

    private func check(on loop: isolated EventLoop) async throws(FetchError) {
        let known = RevalidationCandidates(ask, stale, await context.store.variants(ask, on: loop))
        guard let check = headCheck(known), let stale else {
            return try await fetchWhole(known, replaces: false, on: loop)
        }
        switch try await checkByHead(stale, known, check, on: loop) {
        case .settled: return
        // The representation is known to have changed: a conditional GET could only confirm that.
        case .changed: try await fetchWhole(nil, replaces: true, on: loop)
        case .askByGet: try await fetchWhole(known, replaces: false, on: loop)
        case .failed:
            hasHeadFailed = true
            try await fetchWhole(known, replaces: false, on: loop)
        }
    }

    /// Checks by HEAD; nil if a GET has to do it.
    @inline(never) private func headCheck(_ known: RevalidationCandidates) -> Revalidation? {
        let capabilities = context.notes.capabilities[ask.key, context.clock.now()]
        guard !hasHeadFailed, let check = known.check(capabilities: capabilities), check.kind == .head else {
            return nil
        }
        return check
    }

    private enum HeadResult { case settled, changed, askByGet, failed }

    private func checkByHead(
        _ stale: StoredResponse,
        _ known: RevalidationCandidates,
        _ check: Revalidation,
        on loop: isolated EventLoop
    ) async throws(FetchError) -> HeadResult {
        let requestTime = context.clock.now()
        let stream: FetchStream
        let head: FetchStream.Head
        do throws(FetchError) {
            stream = try makeStream(.head)
            let request = request(.head, check)
            head = try await stream.start(request, from: source, timeout: context.headTimeout, on: loop)
        } catch {
            guard error.mayBeOfMethodAlone else { throw error }
            return .failed
        }
        let (verdict, update) = judge(head, stream, stale, known, check, since: requestTime)
        if let response = await update.byHead(check, on: loop) {
            confirm(response, by: head.response)
            return .settled
        }
        switch verdict {
        case .changed(.noValidator): return .askByGet
        case .failed, .gone: return .failed
        case .unchanged, .changed: return .changed
        }
    }

    @inline(never) private func judge(
        _ head: FetchStream.Head,
        _ stream: FetchStream,
        _ stale: StoredResponse,
        _ known: RevalidationCandidates,
        _ check: Revalidation,
        since requestTime: Int64
    ) -> (HeadVerdict, VariantUpdate) {
        stream.flow(into: BodyDrain(stream))
        let answer = head.response
        let times = context.clock.times(since: requestTime)
        let verdict = Caching.judgeHead(
            stored: stale.head,
            headAnswer: answer,
            times: times,
            request: ask.request,
            policy: ask.policy
        )
        context.notes.capabilities.note(ask.key) {
            $0.noteHead(status: answer.status, verdict: verdict, hadConditions: !check.conditions.isEmpty)
        }
        return (verdict, VariantUpdate(context, known, generation, answer, times))
    }

    /// Publishes the stored response as current, as the answer to its check says.
    @inline(never) func confirm(_ response: StoredResponse, by answer: ResponseHead) {
        keepCookies(of: answer)
        settle(.refreshed(response, status: answer.status, isShared: ask.shares(response.head)))
    }
}
