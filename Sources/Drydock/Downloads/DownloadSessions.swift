// The downloads of one manager: found again to be cancelled, all of a URL or those of one request, and waited for
// before the manager ends.

import CacheStore
import DownloadCore
import EventLoop
import FoundationEssentials
import HTTPTypes
import HTTPWire
import Synchronization

/// A download or a batch, as something that can be cancelled from outside.
protocol DownloadUnderWay: AnyObject, Sendable {
    /// What it downloads, where that is one resource.
    var asked: DownloadRequest? { get }
    /// Somebody outside has ended it.
    var isCancelled: Bool { get }
    /// It carries a request of a service or another user of a transport, who ends it.
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

    /// The number of downloads at once that leave memory behind which is worth giving back.
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

// MARK: - Which downloads are meant

struct DownloadTarget: Sendable {
    /// What a download that begins now would ask.
    private let question: DownloadRequest
    /// Whether all downloads of the URL are meant, whatever they ask with.
    private let isOfURL: Bool

    /// All downloads of a URL.
    /// - Throws: `DownloadError.invalidRequest`.
    init(_ url: URL, _ configuration: DownloadConfiguration) throws(DownloadError) {
        question = try DownloadRequest(url, configuration, DownloadOptions())
        isOfURL = true
    }

    /// Downloads of one request.
    /// - Throws: `DownloadError.invalidRequest`.
    init(
        _ request: HTTPRequest,
        body: Data?,
        _ configuration: DownloadConfiguration,
        _ engine: DownloadEngine?
    ) throws(DownloadError) {
        let plain = try DownloadRequest(request, body: body.map { .data($0) }, configuration, DownloadOptions())
        question = engine?.identified(plain) ?? plain
        isOfURL = false
    }

    /// - Parameter core: nil where nothing has been downloaded yet.
    /// - Returns: how many downloads there were.
    func cancel(in sessions: DownloadSessions, _ core: DownloadCore?, silently: Bool) -> Int {
        let count = sessions.cancel(silently: silently, where: means)
        // One key is that of requests whose fields differ, too.
        let isShared = !isOfURL && sessions.contains { $0.asked?.key == question.key }
        if !isShared { _ = core?.housekeeping.cancel(means) }
        return count
    }

    /// - Parameter core: nil where nothing has been downloaded yet.
    /// - Returns: how many downloads there were.
    func dropWaiters(in sessions: DownloadSessions, _ core: DownloadCore?, silently: Bool) -> Int {
        // Before they leave: a fetch must not end because the last of them does.
        core?.housekeeping.keepGoing(means)
        return sessions.cancel(silently: silently, where: means)
    }

    private func means(_ key: CacheKey) -> Bool {
        isOfURL ? key.urlBytes.elementsEqual(question.key.urlBytes) : key == question.key
    }

    private func means(_ download: any DownloadUnderWay) -> Bool {
        guard let other = download.asked else { return false }
        if isOfURL { return means(other.key) }
        // Whose credentials the manager has shown since it began makes no other request of it.
        guard other.plainKey == question.plainKey else { return false }
        // Contents that are not in memory are not told from one another: they are meant where none is named.
        guard other.sentMethod == question.sentMethod, other.sentData == question.sentData else { return false }
        // Options add directives to Cache-Control, and are no part of the request; a content that is not in memory
        // brings its media type along.
        let isElsewhere = other.body != nil && other.body?.data == nil
        let leftOut = isElsewhere ? ["cache-control", "content-type"] : ["cache-control"]
        return Self.lines(other.fields, without: leftOut) == Self.lines(question.fields, without: leftOut)
    }

    private static func lines(_ fields: Fields, without names: [String]) -> [String] {
        fields.lines.map { (name: $0.name.lowercased(), value: $0.value) }
            .filter { !names.contains($0.name) }
            .map { "\($0.name): \($0.value)" }
            .sorted()
    }
}
