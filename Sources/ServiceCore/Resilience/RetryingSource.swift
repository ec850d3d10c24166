// Repeats a failed fetch behind the shared fetch, so that all who wait for the fetch wait for its attempts together.

import Content
package import DownloadCore
package import EventLoop
import HTTPWire
package import Policies
import Upstream

/// The source that repeats fetches. Loop-bound; it keeps nothing of a request. Between two attempts the fetch has no
/// slot of its service, and queues for one like any other.
package final class RetryingSource: FetchSource {
    private let source: any FetchSource
    private let policy: RetryPolicy
    private let expect: ContentExpectation
    private let resilience: Resilience
    private let clock: WallClock
    private let mayAsk: () -> Bool
    private let onRefusal: (() -> Void)?

    /// Makes a source.
    /// - Parameters:
    ///   - expect: what a body must be, where the policy repeats what is something else.
    ///   - resilience: of the service: its budget, its counters and its log.
    ///   - clock: for a Retry-After that is a date.
    ///   - mayAsk: whether another attempt may be made now; not while the daemon is offline, or the
    ///     origin's breaker is open.
    ///   - onRefusal: called on the loop where the budget has no attempt left for a failure that would have been
    ///     repeated, before it is passed on.
    package init(
        _ source: any FetchSource,
        _ policy: RetryPolicy,
        expect: ContentExpectation = .anything,
        resilience: Resilience,
        clock: WallClock,
        mayAsk: @escaping () -> Bool = { true },
        onRefusal: (() -> Void)? = nil
    ) {
        self.source = source
        self.policy = policy
        self.expect = policy.causes.contains(.content) ? expect : .anything
        self.resilience = resilience
        self.clock = clock
        self.mayAsk = mayAsk
        self.onRefusal = onRefusal
    }

    package var opensSockets: Bool { source.opensSockets }

    package func start(
        _ request: FetchRequest,
        sink: any FetchSink,
        on loop: isolated EventLoop
    ) async throws(FetchError) -> any FetchHandle {
        let fetch = RetryingFetch(
            request,
            policy,
            expect,
            resilience,
            clock,
            mayAsk,
            onRefusal,
            sink: sink
        )
        do throws(FetchError) {
            fetch.handle = try await source.start(fetch.attempt(), sink: fetch, on: loop)
            resilience.earnRetries(policy.budget)
        } catch {
            if case .upstream = error { resilience.earnRetries(policy.budget) }
            // A failure to begin is repeated like a later one; the sink is not called before this returns.
            guard fetch.mayRetry(.failed(error)) else { throw fetch.explained(error) }
        }
        repeatAttempts(fetch, on: loop)
        return fetch
    }

    // The members of a fetch that waits after a failure are separate, because most fetches never fail.

    @inline(never) private func repeatAttempts(_ fetch: RetryingFetch, on loop: isolated EventLoop) {
        let source = source
        fetch.task = Task.immediate(executorPreference: loop.taskExecutor) {
            while let wait = await fetch.nextWait(on: loop) {
                guard await fetch.attempt(of: source, after: wait, on: loop) else { return }
            }
        }
    }
}

@available(*, unavailable) extension RetryingSource: Sendable {}

/// One fetch with its attempts; loop-bound.
///
/// States: asking → passing (everything is passed to the sink) | holding (the body is examined first) → passing |
/// waiting → asking | ended.
private final class RetryingFetch: PassingFetch {
    /// The most bytes that are held until the content of a body is known to be the expected one; a longer body is
    /// forwarded.
    private static let held = 1 << 20

    private enum State { case asking, holding, passing, waiting, ended }

    var handle: (any FetchHandle)?
    var task: Task<Void, Never>?
    private(set) var isEndProven = true
    private var state = State.asking
    private(set) var sink: (any FetchSink)?
    private let request: FetchRequest
    private let body: WatchedBody?
    private let policy: RetryPolicy
    private let expect: ContentExpectation
    private let resilience: Resilience
    private let clock: WallClock
    private let mayAsk: () -> Bool
    private let onRefusal: (() -> Void)?
    /// The result of the last attempt, in case no other one follows the wait.
    private var lastEnd = ""
    private var retries = 0
    /// Whether a retry was due, and the budget was used up.
    private var isRefused = false
    private var wait: UInt64?
    private var waiter: UnsafeContinuation<UInt64?, Never>?
    private var inspection: ContentInspection?
    private var head: (ResponseHead, BodyFraming)?
    private var bytes: [UInt8] = []
    /// The trailers of a body that ended while the sink held back.
    private var trailers: Fields?
    private var isPaused = false

    init(
        _ request: FetchRequest,
        _ policy: RetryPolicy,
        _ expect: ContentExpectation,
        _ resilience: Resilience,
        _ clock: WallClock,
        _ mayAsk: @escaping () -> Bool,
        _ onRefusal: (() -> Void)?,
        sink: any FetchSink
    ) {
        self.request = request
        body = request.body.map { $0 as? WatchedBody ?? WatchedBody($0) }
        self.policy = policy
        self.expect = expect
        self.resilience = resilience
        self.clock = clock
        self.mayAsk = mayAsk
        self.onRefusal = onRefusal
        self.sink = sink
    }

    /// The request for another attempt.
    func attempt() -> FetchRequest {
        var request = request
        request.body = body?.forAttempt()
        return request
    }

    /// Decides about an attempt that ended before anything of its answer was sent on.
    /// - Returns: whether another one follows, whose wait has begun.
    func mayRetry(_ end: AttemptEnd) -> Bool {
        let verdict = resilience.verdict(
            on: end,
            policy,
            retry: retries + 1,
            method: request.method,
            path: request.path,
            hasSentBody: body.map { !$0.canBeRepeated } ?? false,
            now: clock.now(),
            mayAsk: mayAsk
        )
        guard case .retry(let wait) = verdict else {
            guard verdict == .unaffordable else { return false }
            isRefused = true
            onRefusal?()
            return false
        }
        retries += 1
        (sink as? CallFetch)?.retrying(after: wait, status: end.status, why: end.text)
        state = .waiting
        lastEnd = end.text
        self.wait = wait
        wake()
        return true
    }

    /// The final error, with the reason if the budget kept it from being repeated.
    func explained(_ error: FetchError) -> FetchError {
        isRefused ? error.adding("it was not repeated: " + RetryBudget.refusal) : error
    }

    /// Makes the next attempt.
    /// - Parameter wait: the nanoseconds before it.
    /// - Returns: false if there is none any more.
    @inline(never) func attempt(of source: any FetchSource, after wait: UInt64, on loop: isolated EventLoop) async
        -> Bool
    {
        do { try await loop.sleep(nanoseconds: wait) } catch { return false }
        guard mayGoOn() else { return false }
        startAgain()
        do throws(FetchError) {
            began(try await source.start(attempt(), sink: self, on: loop))
        } catch {
            failed(error)
        }
        return true
    }

    /// Waits until the next attempt is due; nil if there is none any more.
    func nextWait(on loop: isolated EventLoop) async -> UInt64? {
        if wait == nil, state == .asking || state == .holding {
            return await withUnsafeContinuation { waiter = $0 }
        }
        return take()
    }

    private func take() -> UInt64? {
        defer { wait = nil }
        if state == .waiting, wait != nil { state = .asking }
        return wait
    }

    /// Resumes the task, with a wait or at its end.
    private func wake() {
        guard let waiter, state != .asking, state != .holding else { return }
        self.waiter = nil
        waiter.resume(returning: take())
    }

    /// Whether another attempt may still be made after its wait; if not, the fetch has failed.
    func mayGoOn() -> Bool {
        if state == .ended { return false }
        if mayAsk() { return true }
        end {
            $0.failed(
                .offline(
                    "no further attempt was made, since the origin is not to be asked any more: before, \(lastEnd)"
                )
            )
        }
        return false
    }

    /// Begins the next attempt.
    func startAgain() { (sink as? CallFetch)?.startAgain() }

    /// A slow source may have been abandoned meanwhile.
    func began(_ handle: any FetchHandle) {
        if state == .ended { handle.cancel() } else { self.handle = handle }
    }

    // MARK: - FetchHandle

    func resume() {
        guard isPaused else { return handle?.resume() ?? () }
        isPaused = false
        if let trailers { end { $0.finished(trailers: trailers) } } else { handle?.resume() }
    }

    func pause() { if state == .passing { handle?.pause() } }

    func cancel() {
        let handle = handle
        end { _ in }
        handle?.cancel()
        // The task may sleep, or wait for admission.
        task?.cancel()
    }

    // MARK: - FetchSink

    var acceptsReentrantBytes: Bool { state == .passing && sink?.acceptsReentrantBytes ?? false }
    var supportsSplice: Bool { state == .passing && sink?.supportsSplice ?? false }

    func received(_ head: ResponseHead, framing: BodyFraming) {
        let end = AttemptEnd.head(status: head.status, retryAfter: head.fields.first(.retryAfter))
        if let failed = handle, mayRetry(end) {
            handle = nil
            return failed.cancel()
        }
        guard expect != .anything, head.status == 200 || head.status == 203, request.method != .head else {
            return pass(head, framing)
        }
        let inspection = ContentInspection(expect, head.fields, limit: Self.held)
        // A content with an unknown coding cannot be examined, and another attempt would bring the same.
        if inspection.mismatch != nil { return pass(head, framing) }
        state = .holding
        self.head = (head, framing)
        self.inspection = inspection
    }

    func received(_ bytes: UnsafeRawBufferPointer) -> TransferFlow {
        guard state == .holding else { return state == .passing ? sink?.received(bytes) ?? .continue : .continue }
        self.bytes += bytes
        inspection?.push(bytes)
        if let mismatch = inspection?.mismatch, let failed = handle, mayRetry(.content(mismatch)) {
            handle = nil
            forget()
            failed.cancel()
            return .continue
        }
        let isKnown = inspection.map { $0.mismatch != nil || !expect.needsAll && $0.isBeginningKnown } ?? true
        if isKnown || self.bytes.count > Self.held { passHeld() }
        return isPaused ? .pause : .continue
    }

    func finished(trailers: Fields) {
        guard state == .holding || state == .passing else { return }
        isEndProven = handle?.isEndProven ?? true
        if state == .holding {
            if let mismatch = inspection?.finish(), mayRetry(.content(mismatch)) {
                handle = nil
                return forget()
            }
            passHeld()
        }
        if isPaused {
            self.trailers = trailers
        } else {
            end { $0.finished(trailers: trailers) }
        }
    }

    func failed(_ error: FetchError) {
        let isInBody = state == .holding
        let end: AttemptEnd = isInBody ? .content("ended early: \(error)") : .failed(error)
        if isInBody || state == .asking, mayRetry(end) {
            handle = nil
            return forget()
        }
        if isInBody { passHeld() }
        let told = explained(error)
        self.end { $0.failed(told) }
    }

    /// Passes on the answer from now on.
    private func pass(_ head: ResponseHead, _ framing: BodyFraming) {
        state = .passing
        wake()
        sink?.received(head, framing: framing)
    }

    private func passHeld() {
        guard let (head, framing) = head else { return }
        let held = bytes
        forget()
        pass(head, framing)
        guard !held.isEmpty, let sink else { return }
        isPaused = held.withUnsafeBytes { sink.received($0) } == .pause
    }

    private func forget() {
        head = nil
        bytes = []
        inspection = nil
    }

    private func end(_ tell: (any FetchSink) -> Void) {
        guard state != .ended else { return }
        state = .ended
        wait = nil
        trailers = nil
        let sink = sink
        self.sink = nil
        handle = nil
        forget()
        wake()
        if let sink { tell(sink) }
    }
}

@available(*, unavailable) extension RetryingFetch: Sendable {}
