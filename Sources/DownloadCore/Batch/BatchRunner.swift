// Runs a batch on a loop: a few items at a time, each through the download core. Every byte and outcome is counted for
// this batch alone.

import CacheStore
package import EventLoop
import HTTPCaching
import HTTPWire
package import Policies
import Synchronization

/// Runs one batch. ``check(on:)`` and ``run(on:)`` are called one after the other, on the loop of the resolver's
/// sources; everything else may be called on any thread.
///
/// Sendable: all mutable state is under its own mutex.
package final class BatchRunner: Sendable {
    fileprivate struct State {
        var batch: Batch
        var totals: BatchTotals
        /// The position of the first item that has failed.
        var firstFailed: Int?
        /// The position of the next item that a worker considers.
        var next = 0
        /// The tasks that process items; they are cancelled with the batch.
        var workers: [Task<Void, Never>] = []
        /// Whether an item has failed and no further item is begun.
        var isStopped = false
        /// Whether a caller has cancelled the batch.
        var isCancelled = false
        /// Whether an item has failed and ends all others.
        var isGivenUp = false

        var cancelsRest: Bool { isCancelled || isGivenUp }
    }

    let core: DownloadCore
    let accepted: Range<Int>
    let resolve: BatchResolver
    let follow: BatchFollower?
    let files: BatchFiles?
    let sizePriority: FetchPriority
    private let observe: (@Sendable (BatchChange) -> Void)?
    private let state: Mutex<State>

    /// Makes a runner.
    /// - Parameters:
    ///   - batch: the state to continue from; items that are not queued stay as they are.
    ///   - accepted: the statuses of a success, 200 to 299 by default; an item with another one has failed.
    ///   - resolve: finds the route of an item.
    ///   - observe: called on the loop with each change; it must be quick.
    ///   - follow: finds the item that a redirect leads to; if nil, a redirect is an answer like any other.
    ///   - files: the files that items are written to; if nil, an item with a file fails.
    ///   - sizePriority: the priority of requests for sizes.
    package init(
        _ batch: Batch,
        core: DownloadCore,
        accepted: Range<Int> = 200..<300,
        resolve: @escaping BatchResolver,
        observe: (@Sendable (BatchChange) -> Void)? = nil,
        follow: BatchFollower? = nil,
        files: BatchFiles? = nil,
        sizePriority: FetchPriority = .sizeCheck
    ) {
        self.core = core
        self.accepted = accepted
        self.resolve = resolve
        self.follow = follow
        self.files = files
        self.sizePriority = sizePriority
        self.observe = observe
        let firstFailed = batch.entries.firstIndex { $0.state == .failed }
        state = Mutex(State(batch: batch, totals: batch.totals, firstFailed: firstFailed))
    }

    /// The present state of the batch with its items.
    package var batch: Batch { state.withLock { $0.batch } }

    /// The present state and totals of the batch, without its items.
    package var progress: (state: BatchState, totals: BatchTotals) {
        state.withLock { ($0.batch.state, $0.totals) }
    }

    /// The first item of the list that has failed.
    package var firstError: BatchEntry? {
        state.withLock { state in state.firstFailed.map { state.batch.entries[$0] } }
    }

    package func entry(_ index: Int) -> BatchEntry { state.withLock { $0.batch.entries[index] } }

    // MARK: - From outside

    /// Finds out the sizes of the queued items, and downloads nothing. An empty batch is checked at once.
    package func check(on loop: isolated EventLoop) async {
        guard become(.checking) else { return }
        await work(.check, on: loop)
        become(state.withLock { $0.isCancelled } ? .cancelled : .checked)
    }

    /// Downloads the queued items, and waits for all of them. An empty batch is done at once.
    package func run(on loop: isolated EventLoop) async {
        guard become(.running) else { return }
        await work(.download, on: loop)
        let (totals, isCancelled) = state.withLock { ($0.totals, $0.isCancelled) }
        if isCancelled {
            become(.cancelled)
        } else if totals.queued > 0 {
            become(.stopped)
        } else {
            become(totals.failed + totals.cancelled > 0 ? .failed : .done)
        }
    }

    /// Cancels the items that are running or queued; items that are done stay done.
    package func cancel() {
        let (isIdle, workers) = state.withLock { state in
            // A batch that has ended cannot be cancelled.
            if state.batch.state.isEnd, state.batch.state != .checked { return (false, [Task<Void, Never>]()) }
            state.isCancelled = true
            return (!state.batch.state.isRunning, state.workers)
        }
        // Outside the mutex, because the cancellation handlers of the workers run on this thread at once.
        for worker in workers { worker.cancel() }
        guard isIdle else { return }
        cancelQueued()
        become(.cancelled)
    }

    /// Queues the items that failed or were cancelled, after the end of the batch; ``run(on:)`` then downloads them.
    /// - Returns: the number of these items.
    @discardableResult
    package func requeue() -> Int {
        let (count, wasEnded) = state.withLock { state in
            guard state.batch.state.mayBecome(.queued), state.batch.state.isEnd else { return (0, false) }
            state.isCancelled = false
            state.firstFailed = nil
            var count = 0
            for index in state.batch.entries.indices {
                let entry = state.batch.entries[index]
                guard entry.state == .failed || entry.state == .cancelled else { continue }
                count += 1
                state.change(index) { $0.requeue() }
            }
            return (count, true)
        }
        if wasEnded { become(.queued) }
        return count
    }

    /// Queues a batch that was only checked, or that has stopped, so that ``run(on:)`` downloads its queued items.
    package func goOn() {
        guard [.checked, .stopped].contains(progress.state) else { return }
        become(.queued)
    }

    // MARK: - Workers

    private enum Work { case check, download }

    /// Marks duplicates, then processes items until none is left or the batch ends early.
    private func work(_ kind: Work, on loop: isolated EventLoop) async {
        await identify(on: loop)
        let count = state.withLock { state in
            state.next = 0
            state.isStopped = false
            state.isGivenUp = false
            return min(state.batch.options.concurrency, state.totals.queued)
        }
        var workers: [Task<Void, Never>] = []
        for _ in 0..<count {
            let worker = Task.immediate(executorPreference: loop.taskExecutor) {
                while let index = take() {
                    switch kind {
                    case .check: await look(index, on: loop)
                    case .download: await download(index, on: loop)
                    }
                }
            }
            workers.append(worker)
            let isCancelled = state.withLock { state in
                state.workers.append(worker)
                return state.cancelsRest
            }
            if isCancelled { worker.cancel() }
        }
        for worker in workers { await worker.value }
        let isCancelled = state.withLock { state in
            state.workers = []
            return state.cancelsRest
        }
        if isCancelled { cancelQueued() }
    }

    /// The position of the next item to process; nil if there is none.
    private func take() -> Int? {
        let index: Int? = state.withLock { state in
            guard !state.isStopped, !state.cancelsRest else { return nil }
            while state.next < state.batch.entries.count {
                defer { state.next += 1 }
                if state.batch.entries[state.next].state == .queued, !state.isSettled(state.next) {
                    state.change(state.next) { $0.state = .running }
                    return state.next
                }
            }
            return nil
        }
        if let index { observe?(.entry(index)) }
        return index
    }

    private func cancelQueued() {
        let cancelled = state.withLock { state in
            state.batch.entries.indices.filter { index in
                guard state.batch.entries[index].state == .queued else { return false }
                state.change(index) { $0.state = .cancelled }
                return true
            }
        }
        for index in cancelled { observe?(.entry(index)) }
    }

    /// Finds the items that repeat earlier ones, and those without a route. It goes in the given order, so that the
    /// later of two equal items is the duplicate.
    private func identify(on loop: isolated EventLoop) async {
        var first: [Identity: Int] = [:]
        var named: [String: Int] = [:]
        let batch = batch
        let isCheck = batch.state == .checking
        for (index, entry) in batch.entries.enumerated() where entry.outcome != .duplicate {
            do throws(BatchRefusal) {
                let identity = Identity(entry.item, try await resolve(entry.item, loop))
                if let earlier = first[identity] {
                    guard entry.state == .queued else { continue }
                    change(index) { entry in
                        entry.state = .done
                        entry.outcome = .duplicate
                        entry.check = isCheck ? .duplicate : nil
                        entry.duplicateOf = earlier
                    }
                } else {
                    first[identity] = index
                    if entry.state == .queued, let name = entry.item.file { try checkFile(name, index, &named) }
                }
            } catch {
                if entry.state == .queued { fail(index, error.description) }
            }
            // A long list must not hold up the loop.
            if index % 64 == 63 { await Task.yield() }
        }
    }

    /// Checks the file of an item.
    /// - Parameter named: the files of earlier items with their positions.
    /// - Throws: ``BatchRefusal`` if the item cannot be written to a file of that name.
    private func checkFile(_ name: String, _ index: Int, _ named: inout [String: Int]) throws(BatchRefusal) {
        guard let files else {
            throw BatchRefusal("there is no folder for '\(name)'; set 'cache.disk', or leave 'file' out")
        }
        if let refusal = files.refusal(of: name) { throw BatchRefusal(refusal) }
        if let earlier = named[name] {
            throw BatchRefusal("item \(earlier + 1) is written to '\(name)', too; give each its own file")
        }
        named[name] = index
    }

    private struct Identity: Hashable {
        let key: [UInt8]
        let item: String
        let body: [UInt8]?

        init(_ item: BatchItem, _ route: BatchRoute) {
            key = route.key.bytes
            let fields = item.fields.map { "\($0.name.lowercased()): \($0.value)" }
            let options = "\(item.force) \(item.seed) \(item.store) \(item.kind ?? 0) \(item.file ?? "")"
            self.item = ([item.method, options] + fields).joined(separator: "\n")
            body = item.body
        }
    }

    // MARK: - Changing

    /// Changes the state of the batch.
    /// - Returns: whether the change is legal and was made.
    @discardableResult
    private func become(_ next: BatchState) -> Bool {
        let became = state.withLock { state in
            guard state.batch.state.mayBecome(next) else { return false }
            state.batch.state = next
            return true
        }
        if became { observe?(.state(next)) }
        return became
    }

    func change(_ index: Int, _ body: (inout BatchEntry) -> Void) {
        state.withLock { $0.change(index, body) }
        observe?(.entry(index))
    }

    func received(_ index: Int, _ count: Int) {
        state.withLock { $0.change(index) { $0.received += Int64(count) } }
        observe?(.received(index, bytes: count))
    }

    /// Marks the item as failed; the batch's options decide about the other items.
    func fail(_ index: Int, _ reason: String, status: Int? = nil) {
        let toCancel: [Task<Void, Never>] = state.withLock { state in
            let isCheck = state.batch.state == .checking
            state.change(index) { entry in
                entry.state = .failed
                entry.check = isCheck ? .failed : entry.check
                entry.reason = reason
                entry.status = status
            }
            guard !isCheck else { return [] }
            switch state.batch.options.onError {
            case .continue: return []
            case .stop:
                state.isStopped = true
                return []
            case .cancelRest:
                state.isGivenUp = true
                return state.workers
            }
        }
        observe?(.entry(index))
        for worker in toCancel { worker.cancel() }
    }
}

extension BatchRunner.State {
    fileprivate mutating func change(_ index: Int, _ body: (inout BatchEntry) -> Void) {
        totals.count(batch.entries[index], -1)
        body(&batch.entries[index])
        totals.count(batch.entries[index], 1)
        if batch.entries[index].state == .failed {
            firstFailed = min(firstFailed ?? index, index)
        } else if firstFailed == index {
            firstFailed = batch.entries.firstIndex { $0.state == .failed }
        }
    }

    /// Whether the item needs no more work: only sizes are looked for, and its size is known.
    fileprivate func isSettled(_ index: Int) -> Bool {
        batch.state == .checking && batch.entries[index].check != nil
    }
}

// MARK: - One item

extension BatchRunner {
    // MARK: - Sizes

    func look(_ index: Int, on loop: isolated EventLoop) async {
        let probe: Probe
        do throws(BatchRefusal) {
            switch try await resolve(entry(index).item, loop) {
            case .store(var ask, let source):
                ask.urgency = FetchUrgency(sizePriority)
                probe = await core.probe(ask, from: source, accepted: accepted, on: loop)
            case .other: probe = .unknownSize("it is not answered from the store")
            }
        } catch {
            return fail(index, error.description)
        }
        if Task.isCancelled { return change(index) { $0.state = .cancelled } }
        switch probe {
        case .valid(let length):
            change(index) { entry in
                // The item is not done before its file is written.
                entry.state = entry.item.file == nil ? .done : .queued
                entry.check = .valid
                entry.size = length
            }
        case .sized(let length):
            change(index) { entry in
                entry.state = .queued
                entry.check = .sized
                entry.size = length
            }
        case .unknownSize(let reason):
            change(index) { entry in
                entry.state = .queued
                entry.check = .unknownSize
                entry.reason = reason
            }
        case .failed(_, let status?) where follow != nil && [301, 302, 303, 307, 308].contains(status):
            change(index) { entry in
                entry.state = .queued
                entry.check = .unknownSize
                entry.reason = "the origin answered \(status), which leads on"
            }
        case .failed(let reason, let status): fail(index, reason, status: status)
        }
    }

    // MARK: - Downloads

    /// The largest number of redirects that are followed for one item.
    private static let redirects = 10

    func download(_ index: Int, on loop: isolated EventLoop) async {
        var item = entry(index).item
        for followed in 0...Self.redirects {
            guard let next = await download(item, index, mayFollow: followed < Self.redirects, on: loop) else { return }
            item = next
        }
    }

    /// Downloads the item at an index.
    /// - Returns: the item that a redirect leads to; nil if the item at the index has ended.
    private func download(
        _ item: BatchItem,
        _ index: Int,
        mayFollow: Bool,
        on loop: isolated EventLoop
    ) async -> BatchItem? {
        let answer: Answer
        var shown: ((String) -> String)?
        do throws(BatchRefusal) {
            switch try await resolve(item, loop) {
            case .store(var ask, let source):
                // A batch accepts no stale answer, because the refresh behind it would not count as this item's
                // download.
                ask.request.fields.appendMember(.cacheControl, "min-fresh=0")
                // A placeholder is no download, so the item waits for the response itself, however long that takes.
                ask.phases?.placeholder = nil
                ask.phases?.fallback = nil
                ask.policy.otherVariant = .none
                ask.onClientAbort = .finish
                ask.urgency = ask.urgency ?? FetchUrgency(.prefetch)
                shown = ask.shown
                answer = await core.answer(ask, from: source, on: loop)
            case .other(_, let make): answer = try await make()
            }
        } catch {
            end(index, item, error)
            return nil
        }
        guard mayFollow, answer.failure == nil, !Task.isCancelled else {
            await take(answer, index, shown, on: loop)
            return nil
        }
        do throws(BatchRefusal) {
            if let next = try follow?(item, answer.head, loop) {
                await drain(answer, on: loop)
                return next
            }
        } catch {
            answer.reader?.close()
            fail(index, item, error)
            return nil
        }
        await take(answer, index, shown, on: loop)
        return nil
    }

    /// Ends an item that was not requested: it was refused, its batch was cancelled, or it is left out on purpose.
    private func end(_ index: Int, _ item: BatchItem, _ refusal: BatchRefusal) {
        if Task.isCancelled { return cancelled(index) }
        guard refusal.isSkip else { return fail(index, item, refusal) }
        change(index) { entry in
            entry.state = .done
            entry.outcome = .skipped
            entry.reason = refusal.description
        }
    }

    private func fail(_ index: Int, _ item: BatchItem, _ refusal: BatchRefusal) {
        let isOwn = item.url == entry(index).item.url
        fail(index, isOwn ? refusal.description : "a redirect led to \(item.url.prefix { $0 != "?" }): \(refusal)")
    }

    /// Reads the body of a redirect, so that the redirect is stored if it may be.
    private func drain(_ answer: Answer, on loop: isolated EventLoop) async {
        defer { answer.reader?.close() }
        // A failure here does not count, because the item is what the redirect leads to.
        var left = 1 << 20
        while left > 0, let piece = try? await answer.reader?.next(maxBytes: 1 << 18, on: loop) { left -= piece.count }
    }

    private func take(
        _ answer: Answer,
        _ index: Int,
        _ shown: ((String) -> String)?,
        on loop: isolated EventLoop
    ) async {
        defer { answer.reader?.close() }
        if Task.isCancelled { return cancelled(index) }
        let status = answer.head.status
        if let failure = answer.failure { return fail(index, failure.description) }
        guard accepted.contains(status) else { return fail(index, answer.head.refusal(shown), status: status) }
        if status == 206 { return fail(index, "the origin answered 206, and no part was asked for", status: status) }
        if let reason = substitute(answer) { return fail(index, reason, status: status) }
        let cache = answer.cacheStatus
        // Whether the origin sent nothing for this item alone.
        let isStored = cache?.hit == true || cache?.detail == CacheStatus.Detail.revalidated.rawValue
        var file: BatchFile?
        do throws(BatchRefusal) {
            let item = entry(index).item
            if let files, let name = item.file { file = try await files.begin(name, for: item, answer.head.fields) }
            if !isStored { change(index) { $0.size = answer.length ?? $0.size } }
            if !isStored || file != nil { try await read(answer, index, isStored: isStored, into: file, on: loop) }
        } catch {
            await file?.abandon()
            return Task.isCancelled ? cancelled(index) : fail(index, error.description, status: status)
        }
        let isEndProven = answer.reader?.isEndProven ?? true
        answer.reader?.close()
        // Cache-Status predicts whether the response will be stored; only the end of storing shows whether it was.
        let unstored = isStored ? nil : isEndProven ? await answer.storing?.wait(on: loop) : .unprovenEnd
        if Task.isCancelled, isStored ? file != nil : answer.storing?.isOver == false {
            await file?.abandon()
            return cancelled(index)
        }
        do throws(BatchRefusal) {
            if !isEndProven, let file {
                await file.abandon()
                throw BatchRefusal("the body may have been cut, so that no file was written")
            }
            try await file?.finish(isStored: isStored || answer.storing != nil && unstored == nil)
        } catch {
            return fail(index, error.description, status: status)
        }
        change(index) { entry in
            entry.state = .done
            entry.outcome = unstored == nil ? Self.outcome(answer) : .notStored
            entry.size = isStored ? answer.length : entry.received
            entry.status = status
            let refusal = unstored?.rawValue ?? cache?.detail ?? "no cache was asked"
            entry.reason = entry.outcome == .notStored ? refusal : nil
        }
    }

    /// Reads the body to its end, and writes it to the item's file if it has one.
    /// - Parameter isStored: whether the body was stored before, so that none of it counts as received.
    /// - Throws: ``BatchRefusal`` if the body ends early, or the file cannot be written.
    private func read(
        _ answer: Answer,
        _ index: Int,
        isStored: Bool,
        into file: BatchFile?,
        on loop: isolated EventLoop
    ) async throws(BatchRefusal) {
        while true {
            let next: BodyPiece?
            do throws(BodyError) {
                next = try await answer.reader?.next(maxBytes: 1 << 18, on: loop)
            } catch {
                throw BatchRefusal("the body ended early: \(error)")
            }
            guard let piece = next else { return }
            if !isStored { received(index, piece.count) }
            try await file?.append(piece)
        }
    }

    private func cancelled(_ index: Int) { change(index) { $0.state = .cancelled } }

    private static func outcome(_ answer: Answer) -> BatchOutcome {
        guard let cache = answer.cacheStatus else { return .notStored }
        if cache.hit { return cache.detail == CacheStatus.Detail.seed.rawValue ? .seed : .valid }
        if cache.detail == CacheStatus.Detail.revalidated.rawValue { return .revalidated }
        return cache.stored ? .downloaded : .notStored
    }

    /// The reason why an answer that would serve a client does not count as a download of the item; nil if it counts.
    private func substitute(_ answer: Answer) -> String? {
        guard let cache = answer.cacheStatus else { return nil }
        switch cache.detail {
        case CacheStatus.Detail.staleIfError.rawValue:
            let what = cache.forwardStatus.map { "answered \($0)" } ?? "could not be asked"
            return "the origin \(what), and the stale stored response stays"
        case CacheStatus.Detail.fallback.rawValue, CacheStatus.Detail.placeholder.rawValue:
            return "only the \(cache.detail ?? "") came: the origin did not answer"
        case CacheStatus.Detail.otherVariant.rawValue where !cache.hit:
            return "only another variant came: the origin did not answer"
        case StaleAllowance.offline.rawValue: return "what is stored is stale, \(FetchError.offlineAdvice)"
        default: return cache.hit && (cache.ttl ?? 0) < 0 ? "what is stored is stale, and was not checked" : nil
        }
    }
}
