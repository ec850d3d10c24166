// The downloads of one manager: found again to be cancelled, and waited for before the manager ends.

import CacheStore
import EventLoop
import Synchronization

/// A download or a batch, as something that can be cancelled from outside.
protocol DownloadUnderWay: AnyObject, Sendable {
    /// What it downloads, where that is one resource.
    var asked: DownloadRequest? { get }
    /// Somebody outside has ended it.
    var isCancelled: Bool { get }
    /// It carries a request of a loader, a service or another user of a transport, who ends it.
    var isOfTransport: Bool { get }
    /// - Parameter silently: an iteration ends without an error.
    func cancel(silently: Bool)
}

extension DownloadUnderWay {
    var isOfTransport: Bool { false }
}

/// Sendable: its state is under its own mutex; waiters are resumed outside it.
final class DownloadSessions: Sendable {
    private struct Entry {
        weak var session: (any DownloadUnderWay)?
        /// Works of it that have begun and not ended.
        var works = 1
    }

    private struct State {
        var sessions: [ObjectIdentifier: Entry] = [:]
        /// The most at once since there was none.
        var most = 0
        /// Pieces of work on the loops that tasks wait for.
        var calls = 0
        var isClosed = false
        var waiters: [UnsafeContinuation<Void, Never>] = []
    }

    /// So many at once leave memory behind that is worth giving back.
    static let crowd = 256

    private let state = Mutex(State())
    /// Counts downloads and batches that have not ended.
    let activity = ActivityCounter()
    private let onQuiet: @Sendable () -> Void

    /// - Parameter onQuiet: called on any thread when the last of a ``crowd`` has ended; by default the pages that their
    ///   tasks have freed go back to the kernel, a moment later, since the heap keeps them otherwise.
    init(onQuiet: @escaping @Sendable () -> Void = DownloadSessions.giveBackSoon) { self.onQuiet = onQuiet }

    private static let giveBackSoon: @Sendable () -> Void = {
        Task.detached {
            // Tasks that have just been resumed are still to end.
            try? await Task.sleep(for: .milliseconds(500))
            await DetachedThread.wait { ProcessMemory.giveBack() }
        }
    }

    /// Downloads and batches that have not ended, whether a task reads them at the moment or not.
    var count: Int { state.withLock { $0.sessions.count } }

    /// It begins. One that has begun already has one more work.
    /// - Throws: `DownloadError.closed`.
    func add(_ session: any DownloadUnderWay) throws(DownloadError) {
        let identifier = ObjectIdentifier(session)
        let (isOpen, change) = state.withLock { state -> (Bool, ActivityCounter.Change?) in
            guard !state.isClosed else { return (false, nil) }
            guard state.sessions[identifier] == nil else {
                state.sessions[identifier]?.works += 1
                return (true, nil)
            }
            state.sessions[identifier] = Entry(session: session)
            state.most = max(state.most, state.sessions.count)
            return (true, activity.change(by: 1))
        }
        guard isOpen else { throw .closed }
        change?.tell()
    }

    /// One of its works has ended. Nothing happens where none has begun.
    func remove(_ session: any DownloadUnderWay) {
        let identifier = ObjectIdentifier(session)
        let ended = state.withLock { state -> (ActivityCounter.Change, isQuiet: Bool)? in
            guard let entry = state.sessions[identifier] else { return nil }
            guard entry.works == 1 else {
                state.sessions[identifier]?.works -= 1
                return nil
            }
            state.sessions[identifier] = nil
            let isQuiet = state.sessions.isEmpty && state.most >= Self.crowd
            if state.sessions.isEmpty { state.most = 0 }
            return (activity.change(by: -1), isQuiet)
        }
        guard let (change, isQuiet) = ended else { return }
        change.tell()
        if isQuiet { onQuiet() }
    }

    /// Ends those downloads for their waiters.
    /// - Returns: how many there were.
    @discardableResult
    func cancel(silently: Bool, where isMeant: (any DownloadUnderWay) -> Bool = { _ in true }) -> Int {
        let all = state.withLock { state in state.sessions.values.compactMap(\.session) }
        var count = 0
        for session in all where isMeant(session) {
            session.cancel(silently: silently)
            count += 1
        }
        return count
    }

    /// What is asked for by those who use the manager as a transport, and have not been ended.
    var keysOfTransport: Set<CacheKey> {
        let all = state.withLock { state in state.sessions.values.compactMap(\.session) }
        return Set(all.filter { $0.isOfTransport && !$0.isCancelled }.compactMap { $0.asked?.key })
    }

    /// Whether there is such a download that nobody has ended.
    func contains(where isMeant: (any DownloadUnderWay) -> Bool) -> Bool {
        let all = state.withLock { state in state.sessions.values.compactMap(\.session) }
        return all.contains { !$0.isCancelled && isMeant($0) }
    }

    /// No work may begin any more.
    var isClosed: Bool { state.withLock { $0.isClosed } }

    /// - Throws: `DownloadError.closed`: no work may begin any more.
    func begin() throws(DownloadError) {
        let isOpen = state.withLock { state in
            guard !state.isClosed else { return false }
            state.calls += 1
            return true
        }
        guard isOpen else { throw .closed }
    }

    func end() {
        let waiters = state.withLock { state in
            state.calls -= 1
            guard state.calls == 0 else { return [UnsafeContinuation<Void, Never>]() }
            defer { state.waiters = [] }
            return state.waiters
        }
        for waiter in waiters { waiter.resume() }
    }

    /// Lets nothing begin any more, cancels what is under way, and waits until none of it runs on a loop.
    func close() async {
        state.withLock { $0.isClosed = true }
        cancel(silently: false)
        await withUnsafeContinuation { (waiter: UnsafeContinuation<Void, Never>) in
            let isIdle = state.withLock { state in
                if state.calls > 0 { state.waiters.append(waiter) }
                return state.calls == 0
            }
            if isIdle { waiter.resume() }
        }
    }
}
