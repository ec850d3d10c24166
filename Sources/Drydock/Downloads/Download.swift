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
    public enum State: String, Sendable, Hashable, CaseIterable {
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
    /// runs, and it keeps its place among ``DownloadConfiguration/maximumFetches``. Nothing happens where it has ended.
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
