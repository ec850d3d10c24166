// A response whose head has arrived: publishes it, checks its content if a route expects something of it, feeds its
// readers, and commits it to the store when it is complete.

import CacheStore
import Content
import EventLoop
import HTTPCaching
import HTTPWire
import Policies

/// An arriving response. Loop-bound. It is complete only if its framing says so; one that is cut short is never stored,
/// and its readers get an error.
final class IncomingResponse {
    /// The largest body, in bytes, that goes to both tiers from memory; a longer one is written to the disk as it
    /// arrives.
    private static let windowed = BodyBudget.smallBody

    private let runner: SharedFetchRunner
    private let head: FetchStream.Head
    private let stream: FetchStream
    private let now: Int64
    private var decision: StoreDecision
    /// The head as it would be stored.
    private let described: StoredHead
    private let replaces: Bool
    private let partRefusal: String?
    /// A stored response that is removed, without a replacement, once this response is complete.
    private var outdated: StoredResponse?
    private var spill: SpillFile?
    private var placement: TierPlacement?
    /// Whether the body is held as a whole for the memory tier, as far as is known.
    private var isCollecting = false
    private var received = 0
    private let expected: ExpectedContent

    private var context: FetchContext { runner.context }
    private var ask: CacheRequest { runner.ask }

    /// Makes an arriving response.
    /// - Parameters:
    ///   - replaces: whether a validation has shown that the stored response changed.
    ///   - partRefusal: the reason why a forwarded 206 is not stored.
    ///   - url: the absolute URL of a POST whose answer may be stored.
    init(
        runner: SharedFetchRunner,
        head: FetchStream.Head,
        stream: FetchStream,
        times: ResponseTimes,
        replaces: Bool,
        partRefusal: String? = nil,
        url: String? = nil
    ) {
        self.runner = runner
        self.head = head
        self.stream = stream
        now = times.responseTime
        self.replaces = replaces
        self.partRefusal = partRefusal
        expected = ExpectedContent(runner.context, runner.ask)
        let (request, policy) = (runner.ask.request, runner.ask.policy)
        decision = Caching.decideStore(
            request: request,
            response: head.response,
            policy: policy,
            times: times,
            url: url
        )
        described = Caching.makeStoredHead(
            request: request,
            response: head.response,
            times: times,
            policy: policy,
            url: url
        )
    }

    private var keepsInMemory: Bool { placement?.inMemory ?? false }
    private var keepsOnDisk: Bool { placement?.onDisk ?? false }
    private var isStored: Bool { if case .store = decision { true } else { false } }

    private var knownLength: Int? {
        switch head.framing {
        case .length(let length): Int(clamping: length)
        case .none: 0
        case .chunked, .untilClose: nil
        }
    }

    /// Whether the body goes to both tiers from its window, at the end.
    private var isWindowed: Bool { knownLength.map { $0 <= Self.windowed } ?? false }

    /// Whether the fetch continues although the body has no reader.
    private func continuesWithoutReaders(_ body: Body) -> Bool {
        // Read before the readers are counted: a reader opened since then has not left, whatever the count says.
        let opened = runner.fetch.state.readersOpened
        guard body.readerCount == 0 else { return true }
        let mayGoOn = ask.onClientAbort.goesOn(received: Int64(received), length: knownLength.map(Int64.init))
        let isKept = body.isFiling || (isWindowed ? keepsInMemory || keepsOnDisk : keepsInMemory) && body.isKeptWhole
        let event = SharedFetchState.Event.unread(opened: opened, mayEnd: !mayGoOn, isKept: isKept)
        let actions = context.inFlight.send(event, to: runner.fetch)
        if actions.contains(.reportAbandoned) { context.notes.noteAbandoned(ask, received: Int64(received)) }
        if actions.contains(.noteUnkept) { context.notes.recentlyNotKept.note(ask.key, now: now) }
        // The stale response is outdated, as it would be at the end of this one, although nothing replaces it now.
        if actions.contains(.removeOutdated), isAnswer, !expected.isInspected, let stale = runner.stale,
            !context.store.isSuperseded(stale)
        {
            context.store.remove(stale)
        }
        return !actions.contains(.cancel)
    }

    /// Publishes the head and lets the bytes flow.
    /// - Throws: `FetchError.cancelled` if no request waits for it any more, or the error of a fetch that failed before
    ///   the
    ///   beginning of an inspected body had arrived.
    func begin(on loop: isolated EventLoop) async throws(FetchError) {
        let status = head.response.status
        if isStored, status >= 500, await context.hasGood(ask, besides: status, on: loop) {
            decision = .refuse(.errorOverStored)
        }
        if stream.isCancelled { throw .cancelled }
        if isStored { try await expected.inspectBeginning(head.response, stream, on: loop) }
        if isStored {
            if stream.isCancelled { throw .cancelled }
            if expected.mismatch == nil { context.notes.noteCacheable(ask) }
            prepareToStore()
        } else if case .refuse(let refusal) = decision {
            context.notes.noteRefusal(refusal, ask, status: status, now: now)
            if refusal.isLasting(status: status), isAnswer, refusal != .tooShort, refusal != .statusNotSuccessful {
                outdated = runner.stale
            }
        }
        noteCheck()
        // Nothing waits from here to the start of the pump, so that a check of the readers that is requested meanwhile
        // comes after it.
        let actions = runner.fetch.handle(.headCame(isStored: isStored))
        guard actions.contains(.publish) else {
            context.inFlight.carryOut(actions, on: runner.fetch)
            stream.cancel()
            // Not if an operator ended the fetch, because then no stored response changes.
            if actions.contains(.removeOutdated), let outdated, !context.store.isSuperseded(outdated) {
                context.store.remove(outdated)
            }
            throw .cancelled
        }
        // What was asked for later than this and has been stored meanwhile is not gone.
        if let stale = runner.stale, isGone, ask.policy.gone == .remove, !context.store.isSuperseded(stale) {
            context.store.remove(stale)
        }
        var options = GrowingBodyOptions(spill: spill, budget: context.budget, keepsStart: isStored)
        options.isAtHand = stream.isAtHand
        // A body for the memory tier never waits for a reader; nor does a small body, which is written to the disk from
        // memory.
        if keepsInMemory || keepsOnDisk && isWindowed { options.keepsUpTo = knownLength ?? context.memoryMaxObject }
        options.watchesReaders = ask.onClientAbort != .finish
        let (body, writer) = Body.growing(options, expectedLength: knownLength.map(Int64.init), on: loop)
        let isLed = runner.isLed
        if isLed { runner.leaderReader = body.makeReader(on: loop) }
        var answer = head.response
        answer.fields = HopByHop.forwardable(answer.fields, isRequest: false)
        runner.fetch.outcome.set(
            .streaming(
                FetchedResponse(
                    head: answer,
                    body: body,
                    decision: decision,
                    described: described,
                    placementRefusal: placement?.refusal,
                    replacesStale: replaces,
                    partRefusal: partRefusal,
                    token: runner.generation.concerned(by: InvalidationRule.concerning(described, ask.key)),
                    end: runner.fetch.end
                )
            )
        )
        // A response that is not stored has no later readers: the fetch leaves the table, so that no request joins it.
        context.inFlight.carryOut(actions, on: runner.fetch)
        let pump = BodyPump(
            stream: stream,
            body: body,
            writer: writer,
            isUnread: spill == nil,
            continuesWithoutReaders: { [self] in continuesWithoutReaders(body) }
        ) { [self] in
            collect($0, body)
        } whole: { [self] trailers, writer in
            complete(body, writer, trailers)
        } broken: { [self] in
            keepCut(body)
            noteCut(body)
            body.stopKeeping()
            spill = nil
            context.inFlight.end(runner.fetch)
        }
        runner.pump = pump
        stream.flow(into: pump)
        // The leader left before there was a body, so that no reader of its own reports that.
        if !isLed { pump.checkReaders() }
    }

    private func noteCheck() {
        let (policy, status) = (ask.policy, head.response.status)
        if runner.stale != nil, isGone, !isStored {
            let check = FailedCheck(errorStatus: status)
            context.notes.failedChecks.note(ask.key, check, now: now, pause: policy.checkPause)
        } else if !policy.countsAsFailure(status) {
            context.notes.failedChecks.forget(ask.key)
        }
    }

    // MARK: - Storing

    /// Whether the answer says what the resource is now.
    private var isAnswer: Bool {
        (200..<400).contains(head.response.status) && ask.policy.isSuccess(head.response.status)
    }

    private var isGone: Bool { head.response.status == 404 || head.response.status == 410 }

    private func prepareToStore() {
        let length = knownLength
        let placement: TierPlacement
        if expected.mismatch != nil {
            placement = TierPlacement(refused: .unexpectedContent)
        } else if case .untilClose = head.framing, context.notes.unproven.contains(ask.key, now: now) {
            placement = TierPlacement(refused: .unprovenEnd)
        } else {
            placement = TierPlacement(ask.policy, context, length: length)
        }
        self.placement = placement
        if let refusal = placement.refusal {
            context.notes.noteUnkept(ask, refusal, now: now)
            return
        }
        context.notes.recentlyNotKept.forget(ask.key)
        isCollecting = keepsInMemory && !isWindowed
        // A small body of known length goes to the disk from memory, in one piece, at the end.
        if keepsOnDisk, !isWindowed { spill = context.store.makeSpill(expected: Int64(knownLength ?? 0)) }
    }

    private func collect(_ bytes: UnsafeRawBufferPointer, _ body: Body) {
        received += bytes.count
        expected.inspect(bytes)
        guard isCollecting, received > context.memoryMaxObject || !body.isKeptWhole else { return }
        isCollecting = false
        body.stopKeeping()
        runner.pump?.checkReaders()
    }

    /// Keeps the received part of a body that was cut short, so that a later request fetches only the rest.
    private func keepCut(_ body: Body) {
        // The content of a part cannot be inspected.
        if expected.isUnknownInPart || described.mapped != nil { return }
        guard let placement, received > 0, ask.content == nil, Caching.mayResume(described),
            let length = described.bodyLength,
            body.arrived < length
        else { return }
        let partial: IncompleteResponse
        if let spill, let file = SparseFile(of: spill) {
            let extents = Extents(length: length, file: file)
            partial = IncompleteResponse(key: ask.key, token: runner.generation, head: described, extents: extents)
        } else {
            partial = context.newPartial(ask, runner.generation, described, placement)
        }
        partial.extents.keep(from: body, at: 0)
        guard !partial.extents.isEmpty else { return }
        context.keep(partial)
        context.partials.shrink()
    }

    private func noteCut(_ body: Body) {
        guard isStored, let placement, placement.refusal == nil else { return }
        // A fetch that all clients abandoned is reported as such, and no client saw a wrong `stored`.
        if case .failed(.abandoned) = body.end { return }
        context.notes.noteStoring(ask, .cut)
    }

    /// Ends a fetch of which nothing is stored.
    private func finishUnstored(_ reason: UnstoredReason) {
        if let placement, placement.refusal == nil { context.notes.noteStoring(ask, reason) }
        context.inFlight.end(runner.fetch, unstored: reason)
    }

    private func complete(_ body: Body, _ writer: BodyWriter, _ trailers: Fields) {
        var trailers = trailers
        // All waiting requests read the same trailers, and a cookie in them is for one client only, as in the head.
        if isStored { trailers.remove(.setCookie) }
        writer.finish(trailers: trailers, isProven: stream.isEndProven)
        defer { body.stopKeeping() }
        if let outdated, case .complete = body.end, !context.store.isSuperseded(outdated) {
            context.store.remove(outdated)
        }
        if isStored {
            guard stream.isEndProven else {
                context.notes.noteUnproven(ask)
                return finishUnstored(.unprovenEnd)
            }
            context.notes.unproven.forget(ask.key)
        }
        // A body of unknown length may turn out to be too short only now.
        guard let placement, case .complete(let length) = body.end else {
            noteCut(body)
            return context.inFlight.end(runner.fetch)
        }
        let isTooShort = ask.policy.isTooShort(length, status: described.status)
        guard !isTooShort, expected.isMet(now: now) else {
            return finishUnstored(isTooShort ? .tooShort : .unexpectedContent)
        }
        var stored = described
        stored.bodyLength = length
        context.partials.remove(ask.key) { $0.head.isSameVariant(as: stored) }
        let whole = keepsInMemory || keepsOnDisk && isWindowed ? body.inMemory() : nil
        // If the length was not known before, or the disk has failed, a lack of room shows only now.
        let hasRoom = context.store.takesInMemory(received) && context.store.hasMemory(for: received)
        let isInMemory = keepsInMemory && whole != nil && hasRoom
        let isOnDisk = keepsOnDisk && (isWindowed ? whole != nil : body.isFiling)
        if !isInMemory, !isOnDisk { context.notes.recentlyNotKept.note(ask.key, now: now) }
        let (context, fetch, ask, wasSaid) = (context, runner.fetch, ask, placement.refusal == nil)
        context.inFlight.send(.bodyCame, to: fetch)
        context.store.commit(
            stored,
            ask,
            runner.generation,
            body: body,
            whole: whole,
            spill: spill,
            placement: placement,
            otherwise: placement.shortfall(context, length: received, isWindowed: isWindowed)
        ) { reason in
            if wasSaid { context.notes.noteStoring(ask, reason) }
            context.inFlight.end(fetch, unstored: reason)
        }
    }
}

@available(*, unavailable) extension IncomingResponse: Sendable {}

// MARK: - Expected content

/// The inspection of an arriving body. Loop-bound. Its result decides about storing, never about what readers get.
final class ExpectedContent {
    private let context: FetchContext
    private let ask: CacheRequest
    /// The inspection of the body; nil if nothing is expected of it, or nothing has arrived yet.
    private var inspection: ContentInspection?
    /// The number of bytes that the inspection has seen before they flow.
    private var inspected = 0
    private var isReported = false

    init(_ context: FetchContext, _ ask: CacheRequest) {
        self.context = context
        self.ask = ask
    }

    /// Whether the route expects something of the body.
    var isInspected: Bool { inspection != nil }

    /// The reason why the body is not what the route expects; nil if none is known.
    var mismatch: String? { inspection?.mismatch }

    /// Whether the bytes of a body that was cut short may not be stored, because a part cannot be inspected.
    var isUnknownInPart: Bool { inspection.map { $0.mismatch != nil || ask.phases?.expect.needsAll == true } ?? false }

    /// Holds the head back until enough of the body has arrived to recognise its content.
    /// - Throws: `FetchError` if the fetch failed or was cancelled meanwhile.
    func inspectBeginning(
        _ head: ResponseHead,
        _ stream: FetchStream,
        on loop: isolated EventLoop
    ) async throws(FetchError) {
        // Other statuses tell something else than what the resource is.
        guard let expect = ask.phases?.expect, expect != .anything, head.status == 200 || head.status == 203 else {
            return
        }
        let inspection = ContentInspection(expect, head.fields)
        self.inspection = inspection
        let isEnough = { [self] (bytes: UnsafeRawBufferPointer) in
            inspected += bytes.count
            return inspection.push(bytes)
        }
        try await stream.hold(until: isEnough, on: loop)
        if let found = mismatch ?? (inspection.isBeginningKnown ? nil : inspection.finish()) {
            report(found)
        }
    }

    /// Inspects bytes that flow, except those that were seen before.
    func inspect(_ bytes: UnsafeRawBufferPointer) {
        guard let inspection else { return }
        let known = min(inspected, bytes.count)
        inspected -= known
        inspection.push(UnsafeRawBufferPointer(rebasing: bytes[known...]))
    }

    /// Whether the whole body is what the route expects.
    /// - Parameter now: Unix seconds.
    func isMet(now: Int64) -> Bool {
        guard let found = inspection?.finish() else { return true }
        report(found)
        context.notes.noteUnkept(ask, .unexpectedContent, now: now)
        return false
    }

    private func report(_ found: String) {
        if !isReported { context.notes.noteUnexpected(ask, found) }
        isReported = true
    }
}

@available(*, unavailable) extension ExpectedContent: Sendable {}
