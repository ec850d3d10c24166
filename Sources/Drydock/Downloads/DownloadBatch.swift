// A list of resources that are sized or downloaded together, with its own progress and an outcome for each.

import DownloadCore
import EventLoop
import FoundationEssentials
import HTTPTypes
import Policies
import Synchronization

/// A list of downloads that belong together.
///
/// ``size()`` finds out how many bytes are to come and downloads nothing; ``run()`` downloads, and what was sized
/// before is exactly what is downloaded then. Each counts its own bytes: other downloads of the same resources change
/// nothing in it. What comes is stored, and is there for whoever downloads it afterwards. An item that fails leaves
/// the others alone, unless the batch was made to stop; ``retry()`` downloads what has failed, and nothing else. An
/// empty batch is done at once.
///
/// ```swift
/// let batch = manager.batch(urls.map { DownloadBatch.Item($0) })
/// print(try await batch.size().progress.bytes)
/// let report = try await batch.run()
/// for failure in report.failures { print(failure.item.request, failure.reason ?? "") }
/// ```
public final class DownloadBatch: Sendable {
    /// What was asked for, in the order given.
    public let items: [Item]
    private let questions: BatchQuestions
    private let sessions: DownloadSessions
    private let followers = BatchFollowers()
    private let way: Mutex<Way>
    /// Opens the manager where it is not open.
    private let engine: @Sendable () async throws(DownloadError) -> DownloadEngine

    private enum Way {
        /// Nothing has been asked for, and the manager may not be open.
        case waiting(Batch)
        case begun(BatchRunner, EventLoop)
    }

    init(
        _ items: [Item],
        options: BatchOptions,
        _ configuration: DownloadConfiguration,
        _ sessions: DownloadSessions,
        engine: @escaping @Sendable () async throws(DownloadError) -> DownloadEngine
    ) {
        self.items = items
        self.sessions = sessions
        self.engine = engine
        questions = BatchQuestions(items, configuration)
        way = Mutex(.waiting(Batch(questions.items, options: options)))
    }

    /// What downloads the items, on the loop that it always has.
    /// - Throws: `DownloadError.unavailable`, `.closed`.
    private func begun() async throws(DownloadError) -> (BatchRunner, EventLoop) {
        let engine = try await engine()
        if sessions.isClosed { throw .closed }
        let (questions, followers) = (questions, followers)
        return way.withLock { way in
            let batch: Batch
            switch way {
            case .begun(let runner, let loop): return (runner, loop)
            case .waiting(let waiting): batch = waiting
            }
            let loop = engine.chooseLoop()
            let box = WeakRunner()
            let runner = BatchRunner(
                batch,
                core: engine.core,
                accepted: engine.configuration.acceptedStatuses,
                resolve: { item, loop throws(BatchRefusal) in try questions.route(item, engine, on: loop) },
                observe: { _ in
                    if let runner = box.runner { followers.tell(Progress(runner.progress)) }
                },
                files: BatchFiles(anywhereWith: engine.files, isDecoded: questions.isDecoded),
                // Who asks for sizes waits for all of them before anything is downloaded.
                sizePriority: .client
            )
            box.set(runner)
            way = .begun(runner, loop)
            return (runner, loop)
        }
    }

    // MARK: - Running

    /// Asks for the sizes of the items that are not stored and valid, by HEAD, and downloads nothing.
    /// - Returns: what each item came to. One whose size nobody says is downloaded by ``run()`` all the same; one that
    ///   failed here is not, until ``retry()``.
    /// - Throws: `DownloadError.cancelled` when the task is cancelled, `.closed`; the failures
    ///   of items are in the report.
    @discardableResult
    public func size() async throws(DownloadError) -> Report {
        try await work { runner, loop in await runner.check(on: loop) }
    }

    /// Downloads what is not stored and valid, and waits for all of it.
    /// - Returns: what each item came to.
    /// - Throws: `DownloadError.cancelled` when the task is cancelled, which cancels the batch; `.closed`; the failures
    ///   of items are in the report.
    @discardableResult
    public func run() async throws(DownloadError) -> Report {
        try await work { runner, loop in await runner.run(on: loop) }
    }

    /// Downloads what has failed or was cancelled, and nothing else, once the batch has ended.
    /// - Returns: what each item of the whole batch came to.
    /// - Throws: as ``run()``.
    @discardableResult
    public func retry() async throws(DownloadError) -> Report {
        try await work { runner, loop in
            runner.requeue()
            await runner.run(on: loop)
        }
    }

    /// Cancels what is under way and what waits. What is stored stays as it is.
    public func cancel() {
        let runner = way.withLock { way -> BatchRunner? in
            switch way {
            case .begun(let runner, _): return runner
            case .waiting(var batch):
                batch.cancel()
                way = .waiting(batch)
                return nil
            }
        }
        if let runner { runner.cancel() } else { followers.tell(progress) }
    }

    private func work(
        _ body: @escaping @Sendable (BatchRunner, isolated EventLoop) async -> Void
    ) async throws(DownloadError) -> Report {
        if Task.isCancelled { throw .cancelled }
        let (runner, loop) = try await begun()
        try sessions.begin()
        defer { sessions.end() }
        try sessions.add(self)
        defer { sessions.remove(self) }
        await withTaskCancellationHandler {
            await loop.perform { loop in await body(runner, loop) }
        } onCancel: {
            runner.cancel()
        }
        if Task.isCancelled { throw .cancelled }
        return report
    }

    // MARK: - Looking

    /// How far it is.
    public var progress: Progress {
        switch way.withLock({ $0 }) {
        case .waiting(let batch): Progress((batch.state, batch.totals))
        case .begun(let runner, _): Progress(runner.progress)
        }
    }

    /// What each item has come to so far.
    public var report: Report {
        let batch =
            switch way.withLock({ $0 }) {
            case .waiting(let batch): batch
            case .begun(let runner, _): runner.batch
            }
        return Report(
            progress: Progress((batch.state, batch.totals)),
            entries: zip(items, batch.entries).map { Entry($0, $1) }
        )
    }

    /// How far it is, now and whenever that changes; who is slow misses what was in between.
    ///
    /// It ends when the sizes are known, and when the batch comes to an end after that. Of a batch that has ended it
    /// tells how, and ends at once.
    public var updates: some AsyncSequence<Progress, Never> & Sendable {
        AsyncStream(bufferingPolicy: .bufferingNewest(1)) { follower in
            followers.add(follower)
            // Read after the follower was added: a change in between is told twice, and none is missed.
            let progress = progress
            follower.yield(progress)
            if progress.state.isEnd, progress.state != .checked { follower.finish() }
        }
    }
}

extension DownloadBatch: DownloadUnderWay {
    var asked: DownloadRequest? { nil }
    var isCancelled: Bool { progress.state == .cancelled }
    func cancel(silently: Bool) { cancel() }
}

/// Where a batch's changes go.
///
/// Sendable: the table is under its own mutex; followers are called without it.
private final class BatchFollowers: Sendable {
    private struct Table {
        var followers: [Int: AsyncStream<DownloadBatch.Progress>.Continuation] = [:]
        var last = 0
    }

    private let table = Mutex(Table())

    deinit { for follower in table.withLock({ Array($0.followers.values) }) { follower.finish() } }

    func add(_ follower: AsyncStream<DownloadBatch.Progress>.Continuation) {
        let number = table.withLock { table in
            table.last += 1
            table.followers[table.last] = follower
            return table.last
        }
        follower.onTermination = { [weak self] _ in self?.remove(number) }
    }

    private func remove(_ number: Int) {
        let removed = table.withLock { $0.followers.removeValue(forKey: number) }
        // Let go of without the mutex: the end of a stream calls this again.
        withExtendedLifetime(removed) {}
    }

    func tell(_ progress: DownloadBatch.Progress) {
        let all = table.withLock { Array($0.followers.values) }
        for follower in all {
            follower.yield(progress)
            if progress.state.isEnd { follower.finish() }
        }
    }
}

/// A weak reference to the runner for its own observer, which would keep the runner alive otherwise.
///
/// Sendable: the reference is under its own mutex.
private final class WeakRunner: Sendable {
    private struct Reference { weak var runner: BatchRunner? }
    private let state = Mutex(Reference())
    var runner: BatchRunner? { state.withLock { $0.runner } }
    func set(_ runner: BatchRunner) { state.withLock { $0.runner = runner } }
}

// MARK: - The items as the batch engine asks for them

/// Sendable: its members never change.
struct BatchQuestions: Sendable {
    /// For the engine, in the order given.
    let items: [BatchItem]
    /// What is asked for each kind of item, by its number.
    private let questions: [Result<DownloadRequest, DownloadError>]

    init(_ items: [DownloadBatch.Item], _ configuration: DownloadConfiguration) {
        var kinds: [DownloadBatch.Item: Int] = [:]
        var questions: [Result<DownloadRequest, DownloadError>] = []
        self.items = items.map { item in
            var plain = item
            // One resource may go to several files.
            if item.mayBeWritten { plain.file = nil }
            let kind = kinds[plain] ?? questions.count
            if kind == questions.count {
                kinds[plain] = kind
                questions.append(Self.question(plain, configuration))
            }
            return BatchItem(
                url: item.text,
                method: item.request.method.rawValue,
                fields: item.request.headerFields.map { BatchItem.Field($0.name.rawName, $0.value) },
                body: item.body.map { Array($0) },
                force: item.options.cachePolicy == .reload,
                seed: item.options.usesSeeds,
                store: item.options.cachePolicy != .bypass,
                file: plain.file == nil ? item.file?.path(percentEncoded: false) : nil,
                kind: kind
            )
        }
        self.questions = questions
    }

    /// - Parameter item: with a file only where nothing can be written to it.
    private static func question(
        _ item: DownloadBatch.Item,
        _ configuration: DownloadConfiguration
    ) -> Result<DownloadRequest, DownloadError> {
        Result { () throws(DownloadError) in
            if let file = item.file {
                let advice = item.request.method == .head ? "ask with GET for a body to write" : "name it by a file URL"
                throw .invalidRequest("'\(file)' cannot be written: \(advice)")
            }
            let question = try DownloadRequest(
                item.request,
                body: item.body.map { .data($0) },
                configuration,
                item.options
            )
            guard !question.isPassed else {
                throw .invalidRequest(
                    "a batch cannot contain \(item.request.method) \(item.request.text): it contains GET and HEAD, and POST "
                        + "in Mode.fixedLifetime; send others by download(_:body:)"
                )
            }
            return question
        }
    }

    /// Whether the file of an item gets decoded bytes.
    func isDecoded(_ item: BatchItem) -> Bool {
        guard let kind = item.kind, questions.indices.contains(kind) else { return false }
        return (try? questions[kind].get())?.isDecoded ?? false
    }

    /// - Throws: `BatchRefusal`: what cannot be asked for, or that the manager has been closed.
    func route(
        _ item: BatchItem,
        _ engine: DownloadEngine,
        on loop: isolated EventLoop
    ) throws(BatchRefusal) -> BatchRoute {
        guard let kind = item.kind, questions.indices.contains(kind) else {
            throw BatchRefusal("'\(item.url)' is not of this batch")
        }
        switch questions[kind] {
        case .success(let plain):
            let question = engine.identified(plain)
            var ask = question.ask(engine.configuration, seed: engine.seed)
            // Else the batch says how urgent its downloads are.
            if question.options.priority == nil { ask.urgency = nil }
            guard let source = engine.source(of: question, ask.policy, on: loop) else {
                throw BatchRefusal(DownloadError.closed.description)
            }
            return .store(ask, source)
        case .failure(let error): throw BatchRefusal(error.description)
        }
    }
}

extension DownloadBatch.Item {
    /// Whether there is a body, and a file that it can go to, or none is wanted.
    fileprivate var mayBeWritten: Bool {
        guard let file else { return true }
        return file.isFileURL && !file.hasDirectoryPath && request.method != .head
    }
}
