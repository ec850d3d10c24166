// Downloads resources, keeps them, and asks their origins again when they are no longer valid: the library's front
// door.

import DownloadCore
import EventLoop
public import FoundationEssentials
import HTTPCaching
public import HTTPTypes
public import Logging
public import Policies
import ServiceCore
import Synchronization

/// Fetches resources and keeps them, without a daemon and without a configuration file.
///
/// A resource is looked for in memory, then on disk. What is found and valid is the result, and nobody is asked. What
/// is found and no longer valid is checked with its origin, and fetched again only where it has changed. Downloads of
/// one resource at the same time are one transfer, whose bytes reach all of them while they arrive.
///
/// ```swift
/// let result = try await DownloadManager.shared.download(url)
/// print(result.outcome, result.data.count)
/// ```
///
/// A task that is cancelled leaves its download with ``DownloadError/cancelled``: others that wait for
/// the same resource do not notice, and what can be stored is stored all the same.
/// ``events(for:to:options:)`` tells of the progress.
///
/// Any task may use a manager. Its threads and its folder are there from the first download until ``close()``, or until
/// the last reference to it goes.
public final class DownloadManager: Sendable {
    /// The manager for a whole program, with the default configuration. Two processes of one program cannot use it at
    /// the same time, since they would have the same folder: give each a manager with a
    /// ``DownloadConfiguration/DiskStore/folder`` of its own.
    public static let shared = DownloadManager()

    private enum Opening {
        case notYet
        case underWay(Task<Result<DownloadEngine, DownloadError>, Never>)
        case open(DownloadEngine)
        /// With what ends it.
        case closed(Task<Void, Never>)
    }

    /// What the manager was made with.
    public let configuration: DownloadConfiguration
    let logger: Logger
    /// The metrics and the tracer; nil is what the program has set up when the manager opens.
    private let telemetry: Telemetry?
    let sessions = DownloadSessions()
    /// Protects the way from the first download to the end.
    private let opening = Mutex(Opening.notYet)
    /// What an engine is told that is opened after the switch; changed under ``opening`` alone.
    private let offline = Atomic<Bool>(false)

    /// Makes a manager. It opens its folder and starts its threads at the first download, or by ``open()``.
    /// - Parameters:
    ///   - configuration: the defaults where it is left out.
    ///   - logger: where downloads are told of, at `debug`; troubles of the store, and what is wrong with a response,
    ///     at `warning`; why else a response was not stored at `notice`.
    public convenience init(
        configuration: DownloadConfiguration = DownloadConfiguration(),
        logger: Logger = Logger(label: "drydock.download")
    ) {
        self.init(configuration: configuration, logger: logger, telemetry: nil)
    }

    init(configuration: DownloadConfiguration, logger: Logger, telemetry: Telemetry?) {
        self.configuration = configuration
        self.logger = logger
        self.telemetry = telemetry
    }

    deinit {
        // A task that waits for a download holds the manager, so that no download is under way here.
        guard case .open(let engine) = opening.withLock({ $0 }) else { return }
        Task { await engine.stop() }
    }

    // MARK: - Downloading

    /// Downloads a resource, or takes it from what is stored.
    /// - Parameters:
    ///   - url: `http` or `https`; a fragment is left out.
    ///   - options: what this download wants otherwise than the manager has it.
    /// - Returns: the resource, with its body in ``DownloadResult/data``.
    /// - Throws: `DownloadError`; ``DownloadError/cancelled`` as soon as the task is cancelled.
    public func download(_ url: URL, options: DownloadOptions = DownloadOptions()) async throws(DownloadError)
        -> DownloadResult
    {
        try await result(of: try question(url, options))
    }

    /// Not inlined, so that a call that waits has no frame of it.
    @inline(never)
    private func question(_ url: URL, _ options: DownloadOptions) throws(DownloadError) -> DownloadRequest {
        try DownloadRequest(url, configuration, options.withoutStale)
    }

    /// Downloads what a request asks for, or takes it from what is stored; ``send(_:)`` says which requests are looked
    /// up, and what becomes of the others.
    /// - Parameters:
    ///   - request: of any method but CONNECT, with a scheme and an authority. Its fields win over
    ///     ``DownloadConfiguration/headerFields``.
    ///   - body: its content; none by default.
    ///   - options: what this download wants otherwise than the manager has it.
    /// - Returns: the resource, with its body in ``DownloadResult/data``.
    /// - Throws: `DownloadError`; ``DownloadError/cancelled`` as soon as the task is cancelled.
    public func download(
        _ request: HTTPRequest,
        body: RequestBody? = nil,
        options: DownloadOptions = DownloadOptions()
    ) async throws(DownloadError) -> DownloadResult {
        try await result(of: try question(request, body, options))
    }

    @inline(never)
    private func question(
        _ request: HTTPRequest,
        _ body: RequestBody?,
        _ options: DownloadOptions
    ) throws(DownloadError) -> DownloadRequest {
        try DownloadRequest(request, body: body, configuration, options.withoutStale)
    }

    /// Downloads a resource into a file, or copies it there from what is stored.
    ///
    /// The folders on the way are made. The file appears, or takes the place of the one that
    /// was there, when it is whole.
    /// - Parameters:
    ///   - url: `http` or `https`; a fragment is left out.
    ///   - file: a file URL.
    ///   - options: what this download wants otherwise than the manager has it.
    /// - Returns: the resource; ``DownloadResult/data`` is empty.
    /// - Throws: `DownloadError`; ``DownloadError/cancelled`` as soon as the task is cancelled.
    @discardableResult
    public func download(
        _ url: URL,
        to file: URL,
        options: DownloadOptions = DownloadOptions()
    ) async throws(DownloadError) -> DownloadResult {
        try await result(of: course(of: url, to: file, options.withoutStale))
    }

    /// Downloads what a request asks for into a file, as ``download(_:to:options:)`` does for a URL, or copies it there
    /// from what is stored; ``send(_:)`` says which requests are looked up.
    /// - Parameters:
    ///   - request: of any method but CONNECT, with a scheme and an authority.
    ///   - body: its content; none by default.
    ///   - file: a file URL.
    ///   - options: what this download wants otherwise than the manager has it.
    /// - Returns: the resource; ``DownloadResult/data`` is empty.
    /// - Throws: `DownloadError`; ``DownloadError/cancelled`` as soon as the task is cancelled.
    @discardableResult
    public func download(
        _ request: HTTPRequest,
        body: RequestBody? = nil,
        to file: URL,
        options: DownloadOptions = DownloadOptions()
    ) async throws(DownloadError) -> DownloadResult {
        try await result(of: course(of: request, body, to: file, options.withoutStale))
    }

    /// A download as it happens: its head, its progress, and its result. Each iteration is a download of its own, which
    /// begins with the first event that is asked for.
    ///
    /// Whoever stops iterating, or cancels the task that does, leaves the download: others that wait for the same
    /// resource do not notice, and what can be stored is stored all the same. A program that is slow to ask for the next
    /// event holds nobody up but itself, unless the body can be stored nowhere. A download that ``cancelAll(silently:)``
    /// ends silently has no result, and no error.
    /// - Parameters:
    ///   - url: `http` or `https`; a fragment is left out.
    ///   - file: where the body goes, by a file URL; nil, the default, puts it into ``DownloadResult/data``.
    ///   - options: what this download wants otherwise than the manager has it.
    public func events(
        for url: URL,
        to file: URL? = nil,
        options: DownloadOptions = DownloadOptions()
    ) -> some AsyncSequence<DownloadEvent, DownloadError> & Sendable {
        course(of: url, to: file, options)
    }

    /// As ``events(for:to:options:)``, of what a request asks for. With a body they begin with what of it is sent.
    public func events(
        for request: HTTPRequest,
        body: RequestBody? = nil,
        to file: URL? = nil,
        options: DownloadOptions = DownloadOptions()
    ) -> some AsyncSequence<DownloadEvent, DownloadError> & Sendable {
        course(of: request, body, to: file, options)
    }

    private func course(of url: URL, to file: URL?, _ options: DownloadOptions) -> DownloadEvents {
        let question = Result { () throws(DownloadError) in try DownloadRequest(url, configuration, options) }
        return DownloadEvents(self, question, to: file)
    }

    private func course(
        of request: HTTPRequest,
        _ body: RequestBody?,
        to file: URL?,
        _ options: DownloadOptions
    ) -> DownloadEvents {
        let question = Result { () throws(DownloadError) in
            try DownloadRequest(request, body: body, configuration, options)
        }
        return DownloadEvents(self, question, to: file)
    }

    /// The result in memory: at once if memory answers, else at the end of a download.
    private func result(of question: DownloadRequest) async throws(DownloadError) -> DownloadResult {
        if let result = memoryResult(of: question) { return result }
        return try await WholeDownload(self, question).result()
    }

    @inline(never)
    private func memoryResult(of question: DownloadRequest) -> DownloadResult? {
        guard let hit = memoryHit(question, accepting: configuration.acceptedStatuses) else { return nil }
        let result = DownloadResult(
            url: question.url,
            outcome: hit.head.outcome,
            head: hit.head.response,
            data: hit.data,
            age: hit.head.age,
            validity: hit.head.validity
        )
        note(result)
        return result
    }

    /// Begins a download that goes on by itself, and that can be suspended and resumed.
    /// - Parameters:
    ///   - url: `http` or `https`; a fragment is left out.
    ///   - file: where the body goes, by a file URL; nil, the default, puts it into ``DownloadResult/data``.
    ///   - options: what this download wants otherwise than the manager has it.
    public func start(_ url: URL, to file: URL? = nil, options: DownloadOptions = DownloadOptions()) -> Download {
        Download(course(of: url, to: file, options))
    }

    /// As ``start(_:to:options:)``, of what a request asks for.
    public func start(
        _ request: HTTPRequest,
        body: RequestBody? = nil,
        to file: URL? = nil,
        options: DownloadOptions = DownloadOptions()
    ) -> Download {
        Download(course(of: request, body, to: file, options))
    }

    private func result(of events: DownloadEvents) async throws(DownloadError) -> DownloadResult {
        var iterator = events.makeAsyncIterator()
        while let event = try await iterator.next() {
            if case .finished(let result) = event { return result }
        }
        throw .cancelled
    }

    /// A list of downloads that belong together; nothing is asked for before ``DownloadBatch/size()``
    /// or ``DownloadBatch/run()``.
    /// - Parameters:
    ///   - items: what is to be downloaded, in the order in which it is begun.
    ///   - concurrency: items at a time, at least 1: with 1 they come one after the other. 10 by default.
    ///   - onFailure: what happens to the others when one fails; they go on by default.
    /// - Returns: the batch; what cannot be asked for is an item that fails.
    public func batch(
        _ items: [DownloadBatch.Item],
        concurrency: Int = 10,
        onFailure: BatchFailurePolicy = .continue
    ) -> DownloadBatch {
        let options = BatchOptions(concurrency: concurrency, onError: onFailure)
        return DownloadBatch(items, options: options, configuration, sessions) { [self] () throws(DownloadError) in
            try await engine()
        }
    }

    // MARK: - Ending

    /// Opens the folder and starts the threads, which the first download would do otherwise.
    /// - Throws: `DownloadError.unavailable` where something cannot be had, `.closed` after ``close()``.
    public func open() async throws(DownloadError) { _ = try await engine() }

    /// Ends every download with ``DownloadError/cancelled``, writes what is to be written, and ends the threads. Every
    /// later call fails with ``DownloadError/closed``.
    ///
    /// When it returns, the bodies that have come whole are stored, and the file of ``CookieSettings/file(_:)`` has every
    /// cookie that outlives the manager, whoever else has called it before, and whether the caller is cancelled or not.
    /// Closures of the program are not waited for.
    public func close() async {
        let (end, old) = opening.withLock { state -> (Task<Void, Never>, Opening) in
            let old = state
            if case .closed(let end) = state { return (end, old) }
            // In a task of its own, so that a cancelled caller waits for the end, too.
            let end = Task { [sessions] in
                await sessions.close()
                await Self.stop(old)
            }
            state = .closed(end)
            return (end, old)
        }
        withExtendedLifetime(old) {}
        await end.value
    }

    private static func stop(_ opening: Opening) async {
        switch opening {
        case .open(let engine): await engine.stop()
        case .underWay(let task): if case .success(let engine) = await task.value { await engine.stop() }
        case .notYet, .closed: break
        }
    }

    /// Whether no origin is asked; false by default. While it is true, a stored response is the result however old it
    /// is, and everything else fails with ``DownloadError/notStored(_:)``. Transfers under way go on. It may be changed
    /// at any time, on any thread, and before the first download, too.
    public var isOffline: Bool {
        get { offline.load(ordering: .relaxed) }
        set {
            opening.withLock { state in
                offline.store(newValue, ordering: .relaxed)
                if case .open(let engine) = state { engine.core.isOffline = newValue }
            }
        }
    }

    /// Downloads that have begun and have not ended.
    public var downloadCount: Int { sessions.count }

    /// Counts the downloads and batches that have begun and have not ended. A download that memory answers at once is not
    /// among them.
    public var activity: ActivityStream { ActivityStream(counters: [sessions.activity]) }

    /// What the manager is doing at this moment, and what it has asked for so far; all but ``downloadCount`` is zero
    /// before the first download, and after ``close()``.
    public var statistics: DownloadStatistics { DownloadStatistics(downloads: downloadCount, opened) }

    // MARK: - For downloads

    /// - Parameters:
    ///   - isObserved: it is a download, and no look at what is stored.
    ///   - isOfTransport: it carries a request of somebody who uses the manager as a transport.
    /// - Throws: `DownloadError.unavailable`, `.closed`.
    func begin(
        _ question: DownloadRequest,
        isObserved: Bool = true,
        isOfTransport: Bool = false
    ) async throws(DownloadError) -> DownloadSession {
        if let engine = opened { return try session(question, engine, isObserved, isOfTransport) }
        return try session(question, try await engine(), isObserved, isOfTransport)
    }

    @inline(never)
    private func session(
        _ question: DownloadRequest,
        _ engine: DownloadEngine,
        _ isObserved: Bool,
        _ isOfTransport: Bool
    ) throws(DownloadError) -> DownloadSession {
        try DownloadSession(question, engine, sessions, isObserved: isObserved, isOfTransport: isOfTransport)
    }

    /// What memory answers at once; nil where a download has to begin.
    /// - Parameter statuses: those of a success; nil: every status is one.
    func memoryHit(
        _ question: DownloadRequest,
        accepting statuses: Range<Int>? = nil
    ) -> (head: DownloadSession.Head, data: Data)? {
        guard let engine = opened, let hit = MemoryHit(question, engine) else { return nil }
        let head = DownloadSession.Head(hit.answer, isDecoded: question.isDecoded, holder: hit.holder)
        guard statuses?.contains(head.response.status.code) ?? true else { return nil }
        engine.telemetry.begin(question)?.end(head.outcome, head.response.status.code, received: Int64(hit.data.count))
        return (head, hit.data)
    }

    /// The engine where there is one.
    var opened: DownloadEngine? {
        guard case .open(let engine) = opening.withLock({ $0 }) else { return nil }
        return engine
    }

    /// The engine, opened once for all who ask at the same time.
    /// - Throws: `DownloadError.unavailable`, `.closed`.
    @inline(never)
    func engine() async throws(DownloadError) -> DownloadEngine {
        let task: Task<Result<DownloadEngine, DownloadError>, Never>? = try withOpening { state throws(DownloadError) in
            switch state {
            case .closed: throw .closed
            case .open: return nil
            case .underWay(let task): return task
            case .notYet:
                let (configuration, logger, telemetry) = (configuration, logger, telemetry ?? .ofProgram)
                let task = Task {
                    do throws(DownloadError) {
                        let engine = try await DownloadEngine.open(configuration, logger, telemetry: telemetry)
                        return Result<DownloadEngine, DownloadError>.success(engine)
                    } catch {
                        return .failure(error)
                    }
                }
                state = .underWay(task)
                return task
            }
        }
        let result = await task?.value
        return try withOpening { state throws(DownloadError) in
            switch (state, result) {
            case (.closed, _): throw .closed
            case (.open(let engine), _): return engine
            case (_, .success(let engine)):
                state = .open(engine)
                engine.core.isOffline = offline.load(ordering: .relaxed)
                return engine
            case (.underWay(let current), .failure(let error)):
                // The next call tries again, unless another one is trying already.
                if current == task { state = .notYet }
                throw error
            case (_, .failure(let error)): throw error
            case (_, nil): throw .unavailable("the download manager could not be opened: try again")
            }
        }
    }

    private func withOpening<Value>(
        _ body: (inout Opening) throws(DownloadError) -> sending Value
    ) throws(DownloadError) -> Value {
        try opening.withLock { state throws(DownloadError) in try body(&state) }
    }

    /// Logs a download that has ended well.
    func note(_ result: DownloadResult) {
        logger.debug(
            "downloaded",
            metadata: [
                "url": "\(result.url)", "outcome": "\(result.outcome.rawValue)",
                "status": "\(result.head.status.code)",
            ]
        )
    }

    /// Logs a download that has failed.
    func note(_ error: DownloadError, of question: DownloadRequest?) {
        if case .unavailable = error { logger.warning("\(error)") }
        guard let question else { return }
        logger.debug("download failed", metadata: ["url": "\(question.url)", "error": "\(error)"])
    }
}

extension DownloadOptions {
    /// For a caller who waits for the result alone: a stale response would never reach it.
    fileprivate var withoutStale: Self {
        var options = self
        options.yieldsStaleFirst = false
        return options
    }
}

// MARK: - Statistics

/// What a manager is doing, and what it has asked for since it was opened.
public struct DownloadStatistics: Sendable, Hashable {
    /// Downloads and batches that have begun and have not ended.
    public internal(set) var downloads = 0
    /// Requests to origins that are under way, checks among them.
    public internal(set) var running = 0
    /// Requests that wait, since ``DownloadConfiguration/maximumFetches`` are under way.
    public internal(set) var waiting = 0
    /// Requests that were sent to origins, checks, retries and redirects among them.
    public internal(set) var requests = 0
    /// Requests that were made again after a failure.
    public internal(set) var retries = 0
    /// Retries that were due, and for which the budget had nothing left.
    public internal(set) var refusedRetries = 0
    /// Origins that are left alone at the moment.
    public internal(set) var openBreakers = 0
    /// Requests that were not sent, since their origin is left alone.
    public internal(set) var refusedByBreakers = 0

    /// - Parameter engine: nil before the first download, and after the end.
    init(downloads: Int, _ engine: DownloadEngine?) {
        self.downloads = downloads
        guard let runtime = engine?.admission else { return }
        running = runtime.admission.running
        waiting = runtime.admission.waiting
        requests = runtime.fetchCount
        retries = runtime.resilience.retryCount
        refusedRetries = runtime.resilience.unaffordableCount
        openBreakers = runtime.resilience.openBreakerCount
        refusedByBreakers = runtime.resilience.refusalCount
    }
}
