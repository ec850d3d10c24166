// A part that is arriving, and the life of its incomplete response: begun, extended by more parts, freshened, and
// stored as a whole.

import CacheStore
import Content
import EventLoop
import HTTPCaching
import HTTPWire
import Policies

/// An arriving part of a representation. Loop-bound. The bytes that arrived are stored at their offset, even if the part
/// is cut short.
final class IncomingRange {
    /// The length from which a part is written to the file of its representation, if there is one; a shorter part stays
    /// in memory.
    static let filed: Int64 = 256 * 1024

    private let context: FetchContext
    private let ask: CacheRequest
    private let partial: IncompleteResponse
    private let range: Range<Int64>
    private let stream: FetchStream

    init(
        _ context: FetchContext,
        _ ask: CacheRequest,
        _ partial: IncompleteResponse,
        _ range: Range<Int64>,
        _ stream: FetchStream
    ) {
        self.context = context
        self.ask = ask
        self.partial = partial
        self.range = range
        self.stream = stream
    }

    /// Starts the flow of bytes; from then on other requests find the part in the table.
    /// - Returns: the arriving part with a reader from its first byte on.
    /// - Throws: `FetchError.cancelled` if the fetch was cancelled.
    @discardableResult
    func begin(on loop: isolated EventLoop) throws(FetchError) -> RangeInFlight? {
        if stream.isCancelled { throw .cancelled }
        let count = range.upperBound - range.lowerBound
        let extents = partial.extents
        let spill = count > Self.filed ? extents.file?.part(at: range.lowerBound, count: count) : nil
        var options = GrowingBodyOptions(spill: spill, budget: context.budget)
        // A part without a file is held in memory as a whole.
        if spill == nil { options.keepsUpTo = Int(clamping: count) }
        options.watchesReaders = ask.onClientAbort != .finish
        let (body, writer) = Body.growing(options, expectedLength: count, on: loop)
        // The pump retains the registration: both last as long as bytes may come.
        let ticket = FetchRegistration(context.fetches, ask.key, on: loop) { body.readerCount }
        extents.begin(range, body)
        let reader = body.makeReader(on: loop)
        context.underWay.begin()
        let pump = BodyPump(
            stream: stream,
            body: body,
            writer: writer,
            isUnread: spill == nil,
            continuesWithoutReaders: { [self] in continuesWithoutReaders(body, isHeld: spill == nil, ticket) }
        ) { [self] _, writer in
            writer.finish()
            ended(body, isFiled: spill != nil)
        } broken: { [self] in
            ended(body, isFiled: spill != nil)
        }
        ticket.onStop = { [weak pump] in pump?.stop($0) }
        stream.flow(into: pump)
        return reader.map { RangeInFlight(range: range, reader: $0) }
    }

    /// Whether the fetch of the part goes on without readers.
    /// - Parameter ticket: the registration, which the pump retains through this closure.
    private func continuesWithoutReaders(_ body: Body, isHeld: Bool, _ ticket: FetchRegistration) -> Bool {
        guard ask.onClientAbort.goesOn(received: body.arrived, length: range.upperBound - range.lowerBound) else {
            context.notes.noteAbandoned(ask, received: body.arrived)
            return false
        }
        return body.isFiling || isHeld && body.isKeptWhole
    }

    private func ended(_ body: Body, isFiled: Bool) {
        let (context, ask, partial, range, extents) = (context, ask, partial, range, partial.extents)
        guard case .complete = body.end else {
            salvage(body)
            body.stopKeeping()
            extents.end(body)
            return context.partEnded(partial, ask)
        }
        guard isFiled, let file = extents.file else {
            if let whole = body.inMemory() { extents.add(range, whole) }
            body.stopKeeping()
            extents.end(body)
            return context.partEnded(partial, ask)
        }
        Task {
            // A failure to write the file loses the stored part, never the answer.
            if (try? await body.flush()) != nil, let filed = file.body(range) { extents.add(range, filed) }
            extents.end(body)
            context.partEnded(partial, ask)
        }
    }

    private func salvage(_ body: Body) {
        // The origin sent more bytes than the range has: it is unknown which of them belong to it, so none are kept.
        guard body.arrived <= range.upperBound - range.lowerBound else { return }
        partial.extents.keep(from: body, at: range.lowerBound)
    }
}

@available(*, unavailable) extension IncomingRange: Sendable {}

/// An arriving part with a reader of it. Loop-bound, because its reader is.
struct RangeInFlight {
    let range: Range<Int64>
    let reader: BodyReader
}

extension Extents {
    /// Adds the bytes that arrived of a body that was cut short.
    /// - Parameter start: the position of its first byte in the representation.
    func keep(from body: Body, at start: Int64) {
        let (filed, rest) = body.salvage()
        if filed > 0, let part = file?.body(start..<start + filed) { add(start..<start + filed, part) }
        if let rest, filed == 0 || file != nil {
            add(start + filed..<start + filed + Int64(rest.capacity), .complete(rest))
        }
    }
}

// MARK: - The life of an incomplete response

extension FetchContext {
    /// Whether the response to the range request of `plan` could not be stored.
    func isUnstored(_ plan: RangeFetchPlan, _ ask: CacheRequest) -> Bool {
        // Inspection needs the body from its first byte, which a part does not have.
        plan.partial == nil
            && (ask.phases?.expect ?? .anything != .anything
                || notes.recentlyUnstoredParts.contains(ask.key, now: clock.now()))
    }

    /// Updates the head of stored parts by the fields of a part or of a check (RFC 9111 sections 3.4 and 4.3.4), unless
    /// these are for one user alone.
    /// - Returns: the updated head.
    @discardableResult
    func freshen(
        _ partial: IncompleteResponse,
        by answer: ResponseHead,
        _ times: ResponseTimes,
        _ ask: CacheRequest
    ) -> StoredHead {
        let head = Caching.joined(
            partial.head,
            part: answer,
            times: times,
            request: ask.request,
            policy: ask.policy
        )
        guard ask.shares(head) else { return head }
        let before = partial.token
        partial.update(head)
        if case .refuse = Caching.decideKeep(head, policy: ask.policy) { partials.remove(partial) }
        // The parts were invalidated meanwhile, by rules for the old head or for the new one.
        if !invalidations.isUnchanged(before) || !invalidations.isUnchanged(partial.token) { partials.remove(partial) }
        return head
    }

    /// Makes an incomplete response without parts.
    /// - Parameter head: the head of the whole representation, with its length.
    func newPartial(_ ask: CacheRequest, _ token: InvalidationToken, _ head: StoredHead, _ placement: TierPlacement)
        -> IncompleteResponse
    {
        let length = head.bodyLength ?? 0
        let file = placement.onDisk && length > IncomingRange.filed ? store.files?.makeSparse() : nil
        return IncompleteResponse(key: ask.key, token: token, head: head, extents: Extents(length: length, file: file))
    }

    /// Adds an incomplete response to the table, unless its key was invalidated since its first part was requested.
    func keep(_ partial: IncompleteResponse) {
        var before: [IncompleteResponse] = []
        _ = invalidations.ifUnchanged(partial.token) { before = partials.insert(partial) }
        withExtendedLifetime(before) {}
    }

    /// Called when a part has ended, complete or cut short. If all bytes are there, the response is stored as a
    /// complete one. Any thread.
    func partEnded(_ partial: IncompleteResponse, _ ask: CacheRequest) {
        if partial.extents.isComplete, partial.beginCompletion() {
            Task { [self] in
                await complete(partial, ask)
                underWay.end()
            }
        } else {
            if partial.extents.isEmpty { partials.remove(partial) }
            partials.shrink()
            underWay.end()
        }
    }

    private func complete(_ partial: IncompleteResponse, _ ask: CacheRequest) async {
        let extents = partial.extents
        var head = partial.head
        head.bodyLength = extents.length
        head.fields.set(.contentLength, String(extents.length))
        let placement = TierPlacement(ask.policy, self, length: Int(clamping: extents.length))
        let whole = placement.inMemory || extents.file == nil ? try? await extents.gather(budget) : nil
        let sealed = placement.onDisk && extents.file != nil ? try? await extents.seal() : nil
        if let body = sealed?.body ?? whole {
            await withUnsafeContinuation { (done: UnsafeContinuation<Void, Never>) in
                store.commit(
                    head,
                    ask,
                    partial.token,
                    body: body,
                    whole: whole,
                    spill: sealed?.spill,
                    placement: placement,
                    otherwise: .noMemory
                ) { [self] reason in
                    if placement.refusal == nil { notes.noteStoring(ask, reason) }
                    done.resume()
                }
            }
        }
        partials.remove(partial)
    }
}
