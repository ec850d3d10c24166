// What a batch does with one item: looks for its size, or downloads it and reports the outcome.

import CacheStore
import EventLoop
import HTTPCaching
import HTTPWire
import Policies

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
                // A file is still to be written.
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

    /// Redirects that are followed for one item.
    private static let redirects = 10

    func download(_ index: Int, on loop: isolated EventLoop) async {
        var item = entry(index).item
        for followed in 0...Self.redirects {
            guard let next = await download(item, index, mayFollow: followed < Self.redirects, on: loop) else { return }
            item = next
        }
    }

    /// - Returns: the item that a redirect leads to; nil: the item at the index is over.
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
                // A refresh in the background would not be counted as this item's download, so a
                // batch accepts no stale answer.
                ask.request.fields.appendMember(.cacheControl, "min-fresh=0")
                // A placeholder is no download: the item waits for the response itself, however long that takes.
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

    /// The item was not asked for: it was refused, its batch was cancelled, or it is left out on purpose.
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

    /// Reads the body of a redirect, so that the redirect is stored where it may be.
    private func drain(_ answer: Answer, on loop: isolated EventLoop) async {
        defer { answer.reader?.close() }
        // What becomes of it does not count: the item is what the redirect leads to.
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
        // Nothing came from the origin for this item alone.
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
        // Cache-Status said whether the response would be stored; only its end shows whether it was.
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
    /// - Parameter isStored: it was stored before, and none of it counts as received.
    /// - Throws: ``BatchRefusal`` where the body ends early, or the file cannot be written.
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

    /// Why an answer that serves a client does not count as a download of the item; nil where it does count.
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
