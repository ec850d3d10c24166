// A response whose head has come: publishes it, passes its bytes to the readers, and commits it when it is whole.

internal import CacheStore
internal import EventLoop
internal import HTTPCaching
internal import HTTPWire

/// Loop-bound. Whole means that the origin's framing said so; what is cut short is never stored and never ends well.
final class Arrival {
    /// Up to this length the body's own window serves the memory tier; a longer one is collected beside it.
    private static let windowed = 256 * 1024

    private let runner: FillRunner
    private let head: FetchStream.Head
    private let stream: FetchStream
    private let now: Int64
    private let decision: StoreDecision
    /// The head as it would be stored.
    private let described: StoredHead
    private let replaces: Bool
    private let partRefusal: String?
    private var spill: SpillFile?
    private var keeping: Keeping?
    /// The bytes for the memory tier, while they are few enough; nil where none are collected.
    private var collected: [UInt8]?
    private var received = 0

    private var core: DownloadCore { runner.core }
    private var ask: CacheAsk { runner.ask }

    /// - Parameters:
    ///   - replaces: a stored response was checked before and found to be changed.
    ///   - partRefusal: why a 206 is passed on without being stored.
    ///   - url: the absolute URL of a POST whose answer may be stored.
    init(
        runner: FillRunner,
        head: FetchStream.Head,
        stream: FetchStream,
        requestTime: Int64,
        now: Int64,
        replaces: Bool,
        partRefusal: String? = nil,
        url: String? = nil
    ) {
        self.runner = runner
        self.head = head
        self.stream = stream
        self.now = now
        self.replaces = replaces
        self.partRefusal = partRefusal
        let (request, policy) = (runner.ask.request, runner.ask.policy)
        decision = Caching.decideStore(request: request, response: head.response, policy: policy, now: now, url: url)
        described = Caching.makeStoredHead(
            request: request,
            response: head.response,
            requestTime: requestTime,
            responseTime: now,
            policy: policy,
            url: url
        )
    }

    private var keepsInMemory: Bool { keeping?.inMemory ?? false }
    private var keepsOnDisk: Bool { keeping?.onDisk ?? false }
    private var isStored: Bool { if case .store = decision { true } else { false } }

    private var knownLength: Int? {
        switch head.framing {
        case .length(let length): Int(clamping: length)
        case .none: 0
        case .chunked, .untilClose: nil
        }
    }

    /// Goes to both tiers from the body's window, at the end.
    private var isWindowed: Bool { knownLength.map { $0 <= Self.windowed } ?? false }

    /// Nobody needs to read the body for it to be stored.
    private var canBeStoredUnread: Bool {
        isWindowed ? keepsInMemory || keepsOnDisk : keepsInMemory && collected != nil
    }

    /// Publishes the head and lets the bytes flow.
    /// - Throws: `FetchError.cancelled` where the fill was given up while it waited for room.
    func begin(on loop: isolated EventLoop) async throws(FetchError) {
        var seat: FillSeat?
        if isStored {
            // Only what is stored queues: it ends by itself, while a stream that is passed on may never end.
            seat = try? await core.budget.waitForRoom(on: loop)
            if seat == nil {
                stream.cancel()
                throw .cancelled
            }
            core.uncacheable.forget(ask.key)
            prepareToStore()
        } else if case .refuse(let refusal) = decision, isLasting(refusal) {
            core.uncacheable.note(ask.key, now: now)
            // What was stored is outdated, and nothing takes its place.
            if let stale = runner.stale, isAnswer { core.store.remove(stale) }
        }
        if !isStored, !runner.hasLeader {
            // Nobody is to read it: who has waited fetches for itself.
            stream.cancel()
            throw .cancelled
        }
        // What fits the memory tier and goes nowhere else is held whole, so that it never waits for a reader.
        let isHeldWhole = keepsInMemory && spill == nil && knownLength != nil
        let options = FillOptions(
            window: isHeldWhole ? max(knownLength ?? 0, 1 << 20) : 1 << 20,
            spill: spill,
            budget: core.budget,
            keepsStart: isStored
        )
        let (body, writer) = Body.growing(options, expectedLength: knownLength.map(Int64.init), on: loop)
        if runner.hasLeader { runner.leaderReader = body.makeReader(on: loop) }
        var answer = head.response
        answer.fields = HopByHop.forwardable(answer.fields, isRequest: false)
        runner.fill.outcome.set(
            .streaming(
                FetchedResponse(
                    head: answer,
                    body: body,
                    decision: decision,
                    described: described,
                    keepRefusal: keeping?.refusal,
                    replacesStale: replaces,
                    partRefusal: partRefusal,
                    token: runner.generation.concerned(by: InvalidationRule.concerning(described, ask.key))
                )
            )
        )
        // What is not stored is nobody's but theirs who wait already.
        if !isStored { core.fills.end(runner.fill) }
        let pump = BodyPump(
            stream: stream,
            body: body,
            writer: writer,
            seat: seat,
            isUnread: spill == nil,
            goesOnUnread: { [self] in canBeStoredUnread }
        ) { [self] in
            collect($0)
        } whole: { [self] trailers, writer in
            complete(body, writer, trailers)
        } broken: { [self] in
            keepCut(body)
            spill = nil
            core.finish(runner.fill)
        }
        stream.flow(into: pump)
    }

    /// What one request forbids, or one bad moment of the origin, says nothing about the next answer.
    private func isLasting(_ refusal: StoreRefusal) -> Bool {
        switch refusal {
        case .requestNoStore, .authorization, .status206, .statusConditional, .statusNeverStored: false
        default: head.response.status < 500
        }
    }

    /// The origin says what the resource is now, or that there is none.
    private var isAnswer: Bool {
        switch head.response.status {
        case 200..<400, 404, 410: true
        default: false
        }
    }

    private func prepareToStore() {
        let length = knownLength
        keeping = Keeping(ask.policy, core, length: length)
        if keepsInMemory, !isWindowed {
            collected = []
            if let length { collected?.reserveCapacity(length) }
        }
        // A small body of known length goes to the disk from memory, in one piece, at the end.
        if keepsOnDisk, !isWindowed { spill = core.store.makeSpill(expected: Int64(knownLength ?? 0)) }
    }

    private func collect(_ bytes: UnsafeRawBufferPointer) {
        received += bytes.count
        guard collected != nil else { return }
        if received <= core.memoryMaxObject { collected?.append(contentsOf: bytes) } else { collected = nil }
    }

    /// What came of a body that was cut short: the rest can be asked for later.
    private func keepCut(_ body: Body) {
        guard let keeping, received > 0, Caching.mayResume(described), let length = described.bodyLength,
            body.arrived < length
        else { return }
        let partial: Partial
        if let spill, let file = SparseFile(of: spill) {
            let extents = Extents(length: length, file: file)
            partial = Partial(key: ask.key, token: runner.generation, head: described, extents: extents)
        } else {
            partial = core.newPartial(ask, runner.generation, described, keeping)
        }
        if let collected, partial.extents.file == nil {
            partial.extents.add(0..<Int64(collected.count), .complete(collected))
        } else {
            partial.extents.keep(from: body, at: 0)
        }
        guard !partial.extents.isEmpty else { return }
        core.keep(partial)
        core.partials.shrink()
    }

    private func complete(_ body: Body, _ writer: BodyWriter, _ trailers: Fields) {
        writer.finish(trailers: trailers)
        guard let keeping, case .complete(let length) = body.end else { return core.finish(runner.fill) }
        var stored = described
        stored.bodyLength = length
        core.partials.remove(ask.key) { $0.head.isSameVariant(as: stored) }
        let whole = collected.map { Body.complete($0) } ?? body.inMemory()
        let (core, fill) = (core, runner.fill)
        core.store.commit(
            stored,
            ask,
            runner.generation,
            body: body,
            whole: whole,
            spill: spill,
            keeping: keeping
        ) {
            core.finish(fill)
        }
    }
}

@available(*, unavailable) extension Arrival: Sendable {}
