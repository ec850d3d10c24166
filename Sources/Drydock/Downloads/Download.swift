// A download that goes on by itself, as an object: suspended, resumed, cancelled and looked at from anywhere.

import FoundationEssentials
import Synchronization

/// A download under way, which ``DownloadManager/start(_:to:options:)`` has begun.
///
/// ```swift
/// let download = manager.start(url, to: file)
/// download.suspend()
/// download.resume()
/// let result = try await download.result
/// ```
///
/// It goes on when nobody holds it; one that is suspended then is cancelled. Any thread may use it.
public final class Download: Sendable {
    /// Where a download is.
    public enum State: Sendable, Hashable, CaseIterable {
        /// It waits for its turn or for its origin, or bytes come.
        case running
        /// It was suspended.
        case suspended
        /// It is whole.
        case finished
        /// It has failed; ``Download/result`` says why.
        case failed
        /// It was cancelled.
        case cancelled
    }

    private let run: DownloadRun

    init(_ events: DownloadEvents) {
        run = DownloadRun(events)
        Task { [run] in await run.drive() }
    }

    deinit {
        if run.state == .suspended { run.cancel() }
    }

    /// Where it is.
    public var state: State { run.state }

    /// How far it has come; nil before its head has come.
    public var progress: DownloadProgress? { run.progress }

    /// Stops reading. Once the head has come, the transfer pauses, unless other downloads want it: none of its timeouts
    /// runs, and it keeps its slot among ``DownloadConfiguration/maximumFetches``. Nothing happens where it has ended.
    ///
    /// An origin may close a connection on which nothing moves. What has come by then is kept, and after ``resume()`` the
    /// rest is fetched by its range, or all of it where the origin sends no ranges.
    public func suspend() { run.setSuspended(true) }

    /// Goes on where it was suspended.
    public func resume() { run.setSuspended(false) }

    /// Ends it; ``result`` throws ``DownloadError/cancelled``. What is stored stays as it is, and others that wait for
    /// the same resource do not notice.
    public func cancel() { run.cancel() }

    /// Waits for the end. A task that is cancelled meanwhile leaves the download alone.
    /// - Throws: `DownloadError`: why it has failed; ``DownloadError/cancelled`` where it or the waiting task was
    ///   cancelled.
    public var result: DownloadResult {
        get async throws(DownloadError) {
            for await _ in events {}
            guard let end = run.end else { throw .cancelled }
            return try end.get()
        }
    }

    /// What happens, from the beginning: whoever comes later is told first what has happened by then. Of the progress
    /// only the latest counts for who is slow. It ends with the download; how that ended, ``result`` says.
    public var events: some AsyncSequence<DownloadEvent, Never> & Sendable { DownloadNews(run) }
}

/// The events of a download for one who listens; each iteration is one of its own.
struct DownloadNews: AsyncSequence, Sendable {
    typealias Element = DownloadEvent
    typealias Failure = Never

    private let run: DownloadRun

    init(_ run: DownloadRun) { self.run = run }

    func makeAsyncIterator() -> Iterator { Iterator(run.listen()) }

    struct Iterator: AsyncIteratorProtocol {
        private let mailbox: DownloadMailbox
        private var bell: AsyncStream<Void>.AsyncIterator

        fileprivate init(_ mailbox: DownloadMailbox) {
            self.mailbox = mailbox
            bell = mailbox.bell.makeAsyncIterator()
        }

        mutating func next(isolation actor: isolated (any Actor)? = #isolation) async -> DownloadEvent? {
            while true {
                if let event = mailbox.take() { return event }
                // Nothing comes any more, or the task is cancelled. What came since the look above counts.
                if await bell.next(isolation: actor) == nil { return mailbox.take() }
            }
        }
    }
}

/// What somebody has still to hear of a download; of several progresses in a row the last.
///
/// Sendable: the list is under its own mutex; the bell is rung outside of it.
final class DownloadMailbox: Sendable {
    let bell: AsyncStream<Void>
    private let ring: AsyncStream<Void>.Continuation
    private let waiting: Mutex<[DownloadEvent]>

    init(_ events: [DownloadEvent]) {
        waiting = Mutex(events)
        (bell, ring) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
    }

    func add(_ event: DownloadEvent) {
        waiting.withLock { waiting in
            if case .progress = event, case .progress? = waiting.last { waiting.removeLast() }
            waiting.append(event)
        }
        ring.yield()
    }

    func take() -> DownloadEvent? { waiting.withLock { $0.isEmpty ? nil : $0.removeFirst() } }

    /// Nothing comes any more.
    func finish() { ring.finish() }
}

// MARK: - Its way

/// Sendable: its state is under its own mutex; nobody is woken or told under it.
final class DownloadRun: Sendable {
    private struct State {
        var isSuspended = false
        /// It has been suspended since the origin was asked last.
        var wasSuspended = false
        var isCancelled = false
        var end: Result<DownloadResult, DownloadError>?
        /// The session of the last attempt, so that the manager finds it while nothing is under way.
        var session: DownloadSession?
        /// The run, while it is suspended.
        var waiter: UnsafeContinuation<Void, Never>?
        /// What has happened: of the progress, the last.
        var history: [DownloadEvent] = []
        var mailboxes: [DownloadMailbox] = []
    }

    private let events: DownloadEvents
    private let guarded = Mutex(State())

    init(_ events: DownloadEvents) { self.events = events }

    // MARK: - Looking

    var end: Result<DownloadResult, DownloadError>? { guarded.withLock { $0.end } }

    var state: Download.State {
        guarded.withLock { state in
            switch state.end {
            case .success?: .finished
            case .failure(.cancelled)?: .cancelled
            case .failure?: .failed
            case nil: state.isCancelled ? .cancelled : state.isSuspended ? .suspended : .running
            }
        }
    }

    var progress: DownloadProgress? {
        for event in guarded.withLock({ $0.history }).reversed() {
            if case .progress(let progress) = event { return progress }
            if case .began(_, let expected) = event { return DownloadProgress(completed: 0, total: expected) }
        }
        return nil
    }

    /// What has happened is in it already.
    func listen() -> DownloadMailbox {
        let (mailbox, isOver) = guarded.withLock { state in
            let mailbox = DownloadMailbox(state.history)
            if state.end == nil { state.mailboxes.append(mailbox) }
            return (mailbox, state.end != nil)
        }
        if isOver { mailbox.finish() }
        return mailbox
    }

    // MARK: - From outside

    func setSuspended(_ isWanted: Bool) {
        let (session, waiter) = guarded.withLock { state -> (DownloadSession?, UnsafeContinuation<Void, Never>?) in
            guard state.end == nil, !state.isCancelled, state.isSuspended != isWanted else { return (nil, nil) }
            state.isSuspended = isWanted
            if isWanted { state.wasSuspended = true }
            return (state.session, isWanted ? nil : state.waiter.take())
        }
        if let session { passOn(to: session) }
        waiter?.resume()
    }

    /// Tells a session whether it is suspended. Several threads may do so at once: each looks again after it has told, so
    /// that what the session hears last is what holds.
    private func passOn(to session: DownloadSession) {
        var told: Bool?
        while case let isSuspended = guarded.withLock({ $0.isSuspended }), isSuspended != told {
            session.setSuspended(isSuspended)
            told = isSuspended
        }
    }

    func cancel() {
        let (session, waiter) = guarded.withLock { state in
            state.isCancelled = true
            return (state.session, state.waiter.take())
        }
        session?.cancel(silently: false)
        waiter?.resume()
    }

    // MARK: - The run

    /// To the end; called once.
    func drive() async {
        while true {
            var iterator = events.makeIterator { [weak self] in self?.began($0) }
            do throws(DownloadError) {
                while true {
                    try await waitWhileSuspended()
                    if guarded.withLock({ $0.isCancelled }) { throw .cancelled }
                    guard let event = try await iterator.next() else { throw .cancelled }
                    tell(event)
                    if case .finished(let result) = event { return finish(.success(result)) }
                }
            } catch {
                guard mayBeginAgain(after: error) else { return finish(.failure(error)) }
            }
        }
    }

    /// - Throws: `DownloadError.closed`.
    private func waitWhileSuspended() async throws(DownloadError) {
        let isUnknown = guarded.withLock { $0.isSuspended && $0.session == nil }
        // Before the first attempt there is no session by which the manager would find it.
        if isUnknown { try events.sessions.add(self) }
        defer { if isUnknown { events.sessions.remove(self) } }
        await withUnsafeContinuation { waiter in
            let waits = guarded.withLock { state in
                guard state.isSuspended, !state.isCancelled else { return false }
                state.waiter = waiter
                return true
            }
            if !waits { waiter.resume() }
        }
    }

    private func began(_ session: DownloadSession) {
        let (old, isCancelled) = guarded.withLock { state in
            defer { state.session = session }
            // What happens from now on may be due to a suspension from now on.
            state.wasSuspended = state.isSuspended
            return (state.session, state.isCancelled)
        }
        withExtendedLifetime(old) {}
        // The manager may end it while the run waits.
        session.onCancel { [weak self] in self?.cancelledOutside() }
        passOn(to: session)
        if isCancelled { session.cancel(silently: false) }
    }

    private func cancelledOutside() {
        let waiter = guarded.withLock { state in
            state.isCancelled = true
            return state.waiter.take()
        }
        waiter?.resume()
    }

    /// Whether an origin that was left waiting may have done this: it closes what is silent for long.
    private func mayBeginAgain(after error: DownloadError) -> Bool {
        // The origin may have acted on a request that it got.
        guard events.mayBeSentAgain, case .origin(let failure) = error else { return false }
        switch failure.kind {
        case .cutShort, .timeout, .unreachable:
            return guarded.withLock { state in
                guard state.wasSuspended, !state.isCancelled else { return false }
                // Once for each suspension: one that lasts is waited for before the next attempt.
                state.wasSuspended = state.isSuspended
                return true
            }
        default: return false
        }
    }

    /// What is told again after a new beginning is left out.
    private func tell(_ event: DownloadEvent) {
        let mailboxes = guarded.withLock { state -> [DownloadMailbox] in
            switch event {
            case .progress(let progress):
                if case .progress(let old)? = state.history.last {
                    guard progress.completed > old.completed else { return [] }
                    state.history.removeLast()
                }
            case .began(_, let expected):
                let before = state.history.firstIndex { if case .began = $0 { true } else { false } }
                if let before, case .began(_, expected) = state.history[before] { return [] }
                // It is another one than before.
                if let before { state.history.removeSubrange(before...) }
            case .uploaded(let progress):
                if case .uploaded(let old)? = state.history.last {
                    guard progress.completed > old.completed else { return [] }
                    state.history.removeLast()
                }
            case .stale, .finished: break
            }
            state.history.append(event)
            return state.mailboxes
        }
        for mailbox in mailboxes { mailbox.add(event) }
    }

    private func finish(_ end: Result<DownloadResult, DownloadError>) {
        let (mailboxes, session) = guarded.withLock { state in
            state.end = end
            defer { (state.mailboxes, state.session) = ([], nil) }
            return (state.mailboxes, state.session)
        }
        withExtendedLifetime(session) {}
        for mailbox in mailboxes { mailbox.finish() }
    }
}

extension DownloadRun: DownloadUnderWay {
    var asked: DownloadRequest? { events.asked }
    var isCancelled: Bool { guarded.withLock { $0.isCancelled } }

    /// Who waits for its result hears of it all the same.
    func cancel(silently: Bool) { cancel() }
}
