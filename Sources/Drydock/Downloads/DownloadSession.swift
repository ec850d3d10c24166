// One download from the side of the task that waits for it: asks, reads piece by piece, and can be ended from anywhere.

import CacheStore
import Content
import DownloadCore
import EventLoop
import FoundationEssentials
import HTTPCaching
import HTTPTypes
import Synchronization

/// Sendable: its state is under its own mutex, and its reader in a box of the loop that it belongs to.
final class DownloadSession: DownloadUnderWay {
    private struct State {
        var body: LoopBox<BodyReader>?
        var storing: StoreCompletion?
        /// Takes the codings off the body; nil where it has none.
        var decoded: DecodedBody?
        /// Bytes of the body that have come, coded where they are.
        var received: Int64 = 0
        /// Ends the work that is being waited for now.
        var interrupt: (@Sendable () -> Void)?
        /// Told when the download is ended from outside.
        var onCancel: (@Sendable () -> Void)?
        var isSuspended = false
        var isCancelled = false
        var isSilent = false
        /// What metrics and traces see of the download; nil if nobody wants to know of it, or it has not begun.
        var observation: DownloadObservation?
        /// What the end of the body ends; nil for a stale response, which a final one follows.
        var head: Head?
    }

    /// A body that is left to be read, and what waits until it is stored.
    private typealias Unread = (body: LoopBox<BodyReader>, storing: StoreCompletion?)

    /// Bytes that one read hands over at most, of those that have come already.
    private static let portion = 1 << 20

    let question: DownloadRequest
    let engine: DownloadEngine
    private let loop: EventLoop
    private let sessions: DownloadSessions
    let isOfTransport: Bool
    /// Metrics and traces have it.
    private let isObserved: Bool
    private let state = Mutex(State())
    private let wasRefused = Atomic<Bool>(false)

    /// - Parameters:
    ///   - isObserved: metrics and traces have it, which is for downloads, and not for looks at what is stored.
    ///   - isOfTransport: it carries a request of somebody who uses the manager as a transport.
    /// - Throws: `DownloadError.closed`.
    init(
        _ question: DownloadRequest,
        _ engine: DownloadEngine,
        _ sessions: DownloadSessions,
        isObserved: Bool = true,
        isOfTransport: Bool = false
    ) throws(DownloadError) {
        self.question = engine.identified(question)
        self.engine = engine
        self.sessions = sessions
        self.isObserved = isObserved
        self.isOfTransport = isOfTransport
        loop = engine.chooseLoop()
        loop.connections.add(1)
        try sessions.add(self)
    }

    deinit {
        loop.connections.add(-1)
        // On the loop of the reader, and before any work that is submitted to the loop after this: a reader that stays
        // open would hold up the next download of the resource.
        if let body = state.withLock({ $0.body }) { body.loop.submit { loop in body.take(on: loop)?.close() } }
        sessions.remove(self)
    }

    var asked: DownloadRequest? { question }
    var isCancelled: Bool { state.withLock { $0.isCancelled } }

    /// Whether the budget of retries had none left for what it asks.
    var isRetryRefused: Bool { wasRefused.load(ordering: .relaxed) }

    /// Whether the iteration ends without an error.
    var isSilent: Bool { state.withLock { $0.isSilent } }

    /// Ends the download for the task that waits for it. The transfer goes on if other downloads wait for it, or if it
    /// is stored.
    /// - Parameter silently: an iteration ends without an error.
    func cancel(silently: Bool) {
        let (interrupt, onCancel) = state.withLock { state in
            state.isCancelled = true
            state.isSilent = silently
            return (state.interrupt, state.onCancel)
        }
        interrupt?()
        onCancel?()
    }

    /// - Parameter tell: called on any thread when the download is ended from outside.
    func onCancel(_ tell: @escaping @Sendable () -> Void) {
        let isCancelled = state.withLock { state in
            state.onCancel = tell
            return state.isCancelled
        }
        if isCancelled { tell() }
    }

    /// Takes nothing for a while, or goes on. Where no other download wants the bytes, the transfer pauses, and none of
    /// its timeouts runs. Any thread.
    func setSuspended(_ isWanted: Bool) {
        state.withLock { $0.isSuspended = isWanted }
        suspendReader()
    }

    /// Lets the reader, where there is one, do as the session is told.
    private func suspendReader() {
        guard let body = state.withLock({ $0.body }) else { return }
        body.loop.submit { [self] loop in
            // As it is by then: calls of several threads come in any order.
            body.value(on: loop)?.isSuspended = state.withLock { $0.isSuspended }
        }
    }

    /// Asks for the head of what the question is about.
    /// - Parameters:
    ///   - staleWanted: the stored response is wanted, however stale, and nothing else.
    ///   - meter: told how much of the request's content is sent; nil by default.
    /// - Throws: `DownloadError.cancelled`, `.closed`, `.requestBody`; what the origin did is in the head.
    func ask(staleWanted: Bool = false, meter: UploadMeter? = nil) async throws(DownloadError) -> Head {
        let upload = try await question.upload(engine.files, meter)
        let found = try await perform(work(staleWanted: staleWanted, upload, meter))
        return try taken(found, upload, staleWanted: staleWanted)
    }

    /// What the core has said: the head, the body, what waits until it is stored, and whether nothing was to be taken of it.
    private typealias Found = (Head, LoopBox<BodyReader>?, StoreCompletion?, Bool)

    @inline(never)
    private func work(
        staleWanted: Bool,
        _ upload: Upload?,
        _ meter: UploadMeter?
    ) -> @Sendable (isolated EventLoop) async -> Found? {
        var ask = question.ask(engine.configuration, staleWanted: staleWanted, seed: engine.seed)
        observation()?.inject(into: &ask.originFields)
        return { [ask] loop in
            guard let arrived = await self.arrival(ask, upload, meter, on: loop) else { return nil }
            guard let reader = arrived.reader else { return (arrived.head, nil, nil, false) }
            reader.isSuspended = self.state.withLock { $0.isSuspended }
            return (arrived.head, LoopBox(reader, on: loop), arrived.storing, reader.isSuspended)
        }
    }

    /// What a session needs of an answer. Loop-bound, as its reader.
    private struct Arrival {
        let head: Head
        let reader: BodyReader?
        let storing: StoreCompletion?
        /// The length of the body as it comes, in bytes; nil if it is not known.
        let length: Int64?
    }

    /// Waits for the answer; nil if the engine has ended. Not inlined, so that what follows has no frame of the answer.
    @inline(never)
    private func arrival(
        _ ask: CacheRequest,
        _ upload: Upload? = nil,
        _ meter: UploadMeter? = nil,
        on loop: isolated EventLoop
    ) async -> Arrival? {
        let refused = { [weak self] in _ = self?.wasRefused.exchange(true, ordering: .relaxed) }
        return arrival(await engine.answer(ask, to: question, upload, meter, onRefusal: refused, on: loop))
    }

    @inline(never)
    private func arrival(_ answer: Answer?) -> Arrival? {
        guard let answer else { return nil }
        let head = Head(answer, isDecoded: question.isDecoded, holder: question.identity?.holder)
        return Arrival(head: head, reader: answer.reader, storing: answer.storing, length: answer.length)
    }

    @inline(never)
    private func taken(_ found: Found?, _ upload: Upload?, staleWanted: Bool) throws(DownloadError) -> Head {
        guard let (head, body, storing, wasSuspended) = found else { throw .closed }
        let isFinal = !staleWanted || head.outcome == .stillValid || head.outcome == .seeded
        let before = state.withLock { state in
            defer {
                (state.body, state.storing) = (body, storing)
                (state.head, state.received) = (isFinal ? head : nil, 0)
                state.decoded = head.codings.isEmpty ? nil : DecodedBody(head.codings)
            }
            return (state.body, state.storing, state.isSuspended)
        }
        // It may have changed on the way here.
        if before.2 != wasSuspended { suspendReader() }
        if isFinal, let failure = head.failure {
            _ = note(DownloadError(failure))
        } else if body == nil {
            noteEnd()
        }
        withExtendedLifetime(before) {}
        try checkCancellation()
        if let failure = question.failure(of: head, upload, engine.configuration) { throw failure }
        return head
    }

    /// Asks for the head and the whole body at once: one piece of work on the loop, whatever pieces the body comes in.
    /// - Parameter limit: bytes of the body; one that says to be longer, or is in a coding, is left for ``read()``.
    /// - Throws: as ``ask(staleWanted:)`` and ``read()`` do, and `DownloadError.tooLarge`.
    func askForAll(upTo limit: Int) async throws(DownloadError) -> (head: Head, data: Data) {
        try taken(try await perform(workForAll(upTo: limit)), upTo: limit)
    }

    /// What the core has said: the head, a body that is left to be read, and the bytes.
    private typealias FoundAll = (Head, Unread?, Result<Data, BodyError>)

    @inline(never)
    private func workForAll(upTo limit: Int) -> @Sendable (isolated EventLoop) async -> FoundAll? {
        var ask = question.ask(engine.configuration, seed: engine.seed)
        observation()?.inject(into: &ask.originFields)
        return { [ask] loop in
            guard let arrived = await self.arrival(ask, on: loop) else { return nil }
            return await self.all(of: arrived, upTo: limit, on: loop)
        }
    }

    @inline(never)
    private func all(of arrived: Arrival, upTo limit: Int, on loop: isolated EventLoop) async -> FoundAll {
        let head = arrived.head
        guard let reader = arrived.reader else { return (head, nil, .success(Data())) }
        guard head.codings.isEmpty, arrived.length ?? 0 <= limit else {
            return (head, (LoopBox(reader, on: loop), arrived.storing), .success(Data()))
        }
        do throws(BodyError) {
            let data = try await reader.collect(upTo: limit, expected: arrived.length, on: loop)
            reader.close()
            // As at the end of ``read()``.
            if data.count <= limit { await arrived.storing?.wait(on: loop) }
            return (head, nil, .success(data))
        } catch {
            return (head, nil, .failure(error))
        }
    }

    @inline(never)
    private func taken(_ found: FoundAll?, upTo limit: Int) throws(DownloadError) -> (head: Head, data: Data) {
        guard let (head, unread, bytes) = found else { throw .closed }
        try checkCancellation()
        let data: Data
        switch bytes {
        case .success(let all) where all.count <= limit: data = all
        case .success: throw note(.tooLarge(limit: limit))
        case .failure(let error): throw note(DownloadError(error, question.url.absoluteString))
        }
        state.withLock { state in
            (state.body, state.storing) = (unread?.body, unread?.storing)
            state.decoded = head.codings.isEmpty ? nil : DecodedBody(head.codings)
            (state.head, state.received) = (head, Int64(data.count))
        }
        if let failure = head.failure { _ = note(DownloadError(failure)) } else if unread == nil { noteEnd() }
        return (head, data)
    }

    /// Bytes of the body that have come, coded where they are.
    var received: Int64 { state.withLock { $0.received } }

    /// The next bytes of the body, decoded; waits until there are some.
    /// - Returns: nil at its end.
    /// - Throws: `DownloadError`: cancelled, closed, or why the body does not come whole.
    func read() async throws(DownloadError) -> Data? {
        guard let decoded = state.withLock({ $0.decoded }) else { return try await readCoded() }
        while true {
            switch decoded.next() {
            case .piece(let piece): return piece
            case .broken: throw broken()
            case .hungry:
                guard let coded = try await readCoded() else {
                    if decoded.isWhole { return nil }
                    throw broken()
                }
                decoded.take(coded)
            }
        }
    }

    /// The error of a body that is not in its coding. What is stored of it goes, so that the next download asks for it.
    private func broken() -> DownloadError {
        if !question.isPassed { engine.core.housekeeping.invalidate(question.key) }
        let detail =
            "\(question.url) sent a body that is not in the coding which its Content-Encoding names, or not whole: "
            + "correct the origin, or ask with an Accept-Encoding of your own"
        return failed(.origin(OriginFailure(kind: .protocolViolation, detail: detail)))
    }

    private func readCoded() async throws(DownloadError) -> Data? {
        let (held, storing) = state.withLock { ($0.body, $0.storing) }
        guard let body = held else { return nil }
        let result = try await perform { loop -> Result<Data?, BodyError> in
            do throws(BodyError) {
                let data = try await Self.read(body, on: loop)
                if data == nil {
                    body.take(on: loop)?.close()
                    // Wait for the store: a program may end after its last download, and would find nothing stored at
                    // its next start.
                    await storing?.wait(on: loop)
                }
                return .success(data)
            } catch {
                body.take(on: loop)?.close()
                return .failure(error)
            }
        }
        try checkCancellation()
        switch result {
        case .success(let data?):
            state.withLock { $0.received += Int64(data.count) }
            return data
        case .success(nil):
            // `held` has it still, so that it is not let go of under the mutex.
            withExtendedLifetime(held) { state.withLock { $0.body = nil } }
            noteEnd()
        case .failure(let error):
            throw failed(DownloadError(error, question.url.absoluteString))
        }
        return nil
    }

    /// The body has failed; with it the download, unless it is a stale one, which a final one follows.
    private func failed(_ error: DownloadError) -> DownloadError {
        state.withLock { $0.head == nil } ? error : note(error)
    }

    /// What observes the download, which begins with the first question.
    private func observation() -> DownloadObservation? {
        if let known = state.withLock({ $0.observation }) { return known }
        guard isObserved, let begun = engine.telemetry.begin(question) else { return nil }
        state.withLock { $0.observation = begun }
        return begun
    }

    /// The download brings nothing.
    @discardableResult
    func note(_ error: DownloadError) -> DownloadError {
        state.withLock { $0.observation }?.end(error)
        return error
    }

    /// The body is whole.
    private func noteEnd() {
        let (observation, head, received) = state.withLock { ($0.observation, $0.head, $0.received) }
        guard let head else { return }
        observation?.end(head.outcome, head.response.status.code, received: received)
        // It is over, however long the response is kept.
        sessions.remove(self)
    }

    /// The state of the stored response; no origin is asked.
    /// - Throws: `DownloadError.cancelled`, `.closed`.
    func storedState() async throws(DownloadError) -> StoredState {
        let (engine, question) = (engine, question)
        // Nothing of it is ever stored; its key is that of a GET.
        if question.isPassed { return .absent }
        let ask = question.ask(engine.configuration, seed: engine.seed)
        let state = try await perform { loop in
            if let seed = ask.seed, await seed.lookup(ask.key, request: ask.request) != nil {
                return StoredState.seeded
            }
            return StoredState(await engine.core.lookup.explain(ask, on: loop))
        }
        try checkCancellation()
        return state
    }

    private static func read(
        _ body: LoopBox<BodyReader>,
        on loop: isolated EventLoop
    ) async throws(BodyError) -> Data? {
        guard let reader = body.value(on: loop) else { throw .cancelled }
        guard let first = try await reader.next(maxBytes: portion, on: loop) else { return nil }
        var data = Data()
        var piece = first
        while true {
            let part = try await piece.load(on: loop)
            part.chunk.withBytes { data.append(contentsOf: UnsafeRawBufferPointer(rebasing: $0[part.range])) }
            guard data.count < portion, case .piece(let next) = reader.nextIfReady(maxBytes: portion - data.count)
            else { return data }
            piece = next
        }
    }

    private func checkCancellation() throws(DownloadError) {
        if Task.isCancelled || state.withLock({ $0.isCancelled }) { throw .cancelled }
    }

    /// Runs `work` as a task on the session's loop and waits for it; the caller's cancellation
    /// and the session's reach it.
    /// - Throws: `DownloadError.closed`, `.cancelled` before it has begun.
    private func perform<Value: Sendable>(
        _ work: @escaping @Sendable (isolated EventLoop) async -> Value
    ) async throws(DownloadError) -> Value {
        try checkCancellation()
        try sessions.begin()
        defer { sessions.end() }
        let value = await loop.perform(
            onStart: { running in
                let isCancelled = state.withLock { state in
                    state.interrupt = { running.cancel() }
                    return state.isCancelled
                }
                if isCancelled { running.cancel() }
            },
            work
        )
        let interrupt = state.withLock { state in
            defer { state.interrupt = nil }
            return state.interrupt
        }
        withExtendedLifetime(interrupt) {}
        return value
    }
}

// MARK: - The head

extension DownloadSession {
    /// The head of an answer, as the program sees it. A reference, for it goes through many frames of tasks. Sendable:
    /// nothing in it changes.
    final class Head: Sendable {
        let response: HTTPResponse
        let outcome: DownloadOutcome
        /// The length of the body as it comes, in bytes: the coded length if it is coded.
        let expected: Int64?
        /// What is taken off the body before the program gets it.
        let codings: [ContentCoding]
        let age: Duration
        let validity: Duration?
        /// The digest of its owner; nil if it is nobody's.
        let holder: String?
        /// Why no answer has come; nil if one has.
        let failure: FetchError?

        /// The length of the body as the program gets it, in bytes.
        var length: Int64? { codings.isEmpty ? expected : nil }

        /// - Parameter isDecoded: the program gets decoded bytes.
        init(_ answer: Answer, isDecoded: Bool, holder: String?) {
            self.holder = holder
            codings = isDecoded ? answer.codings : []
            response = HTTPResponse(codings.isEmpty ? answer : answer.decodedHead)
            outcome = DownloadOutcome(answer.cacheStatus)
            expected = answer.length
            age = .seconds(answer.age ?? 0)
            validity = answer.cacheStatus?.ttl.map { .seconds($0) }
            failure = answer.failure
        }
    }
}

// MARK: - The whole body

extension BodyReader {
    /// All bytes that are still to come.
    /// - Parameters:
    ///   - limit: with more bytes than these it stops.
    ///   - expected: bytes of the whole, where anybody knows.
    func collect(
        upTo limit: Int,
        expected: Int64?,
        on loop: isolated EventLoop
    ) async throws(BodyError) -> Data {
        var data = Data()
        if let expected { data.reserveCapacity(Int(clamping: expected)) }
        while data.count <= limit, let piece = try await next(maxBytes: 1 << 20, on: loop) {
            let part = try await piece.load(on: loop)
            part.chunk.withBytes { data.append(contentsOf: UnsafeRawBufferPointer(rebasing: $0[part.range])) }
        }
        return data
    }
}
