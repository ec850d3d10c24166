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
    private var spill: SpillFile?
    private var keepsInMemory = false
    private var keepsOnDisk = false
    /// The bytes for the memory tier, while they are few enough; nil where none are collected.
    private var collected: [UInt8]?
    private var received = 0

    private var core: DownloadCore { runner.core }
    private var ask: CacheAsk { runner.ask }

    init(
        runner: FillRunner,
        head: FetchStream.Head,
        stream: FetchStream,
        requestTime: Int64,
        now: Int64,
        replaces: Bool
    ) {
        self.runner = runner
        self.head = head
        self.stream = stream
        self.now = now
        self.replaces = replaces
        let (request, policy) = (runner.ask.request, runner.ask.policy)
        decision = Caching.decideStore(request: request, response: head.response, policy: policy, now: now)
        described = Caching.makeStoredHead(
            request: request,
            response: head.response,
            requestTime: requestTime,
            responseTime: now,
            policy: policy
        )
    }

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
        } else if case .refuse(let refusal) = decision, refusal != .requestNoStore, refusal != .authorization {
            // What one request forbids says nothing about the next one.
            core.uncacheable.note(ask.key, now: now)
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
                    isKept: keepsInMemory || keepsOnDisk,
                    replacesStale: replaces
                )
            )
        )
        // What is not stored is nobody's but theirs who wait already.
        if !isStored { core.fills.remove(runner.fill) }
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
            spill = nil
            core.finish(runner.fill)
        }
        stream.flow(into: pump)
    }

    private func prepareToStore() {
        let length = knownLength
        keepsInMemory = ask.policy.memory && (length ?? 0) <= core.memoryMaxObject
        keepsOnDisk = ask.policy.disk && core.disk != nil && (length ?? 0) <= core.diskMaxObject
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

    private func complete(_ body: Body, _ writer: BodyWriter, _ trailers: Fields) {
        writer.finish(trailers: trailers)
        guard isStored, case .complete(let length) = body.end else { return core.finish(runner.fill) }
        var stored = described
        stored.bodyLength = length
        let whole = collected.map { Body.complete($0) } ?? body.inMemory()
        let (core, fill) = (core, runner.fill)
        core.store.commit(
            stored,
            ask,
            runner.generation,
            body: body,
            whole: whole,
            spill: spill,
            keepsInMemory: keepsInMemory,
            keepsOnDisk: keepsOnDisk
        ) {
            core.finish(fill)
        }
    }
}

@available(*, unavailable) extension Arrival: Sendable {}
