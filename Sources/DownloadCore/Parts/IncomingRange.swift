// A part that is arriving, and the life of the incomplete response that it belongs to: begun, joined with more parts,
// freshened, and stored as a whole.

import CacheStore
import Content
import EventLoop
import HTTPCaching
import HTTPWire
import Policies

/// Loop-bound. Whether all of it came or not: the bytes that did belong to the representation, at their place.
final class IncomingRange {
    /// Longer parts go to the file of the representation, where it has one.
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
    /// - Returns: what is arriving, with a reader from its first byte on.
    /// - Throws: `FetchError.cancelled` where the fetch was given up.
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
        // Its end is the pump's: both last as long as bytes may come.
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

    /// - Parameter ticket: held by the pump through this.
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
        // The origin sent more than the range: which bytes belong to it is unknown, so none are kept.
        guard body.arrived <= range.upperBound - range.lowerBound else { return }
        partial.extents.keep(from: body, at: range.lowerBound)
    }
}

@available(*, unavailable) extension IncomingRange: Sendable {}

/// A part on its way with a reader of it. Loop-bound: its reader is.
struct RangeInFlight {
    let range: Range<Int64>
    let reader: BodyReader
}

extension Extents {
    /// Adds what came of a body that was cut short.
    /// - Parameter start: the place of its first byte.
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
        // Inspection needs the body from its first byte, and a part does not have it.
        plan.partial == nil
            && (ask.phases?.expect ?? .any != .any || notes.recentlyUnstoredParts.contains(ask.key, now: clock.now()))
    }

    /// The head of stored parts takes over the fields of a part or of a check (RFC 9111 sections 3.4 and 4.3.4), where
    /// they are not for one user alone.
    /// - Returns: the head with these fields.
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
        // Invalidated meanwhile, under the rules of the old head or under those of the new one.
        if !invalidations.isUnchanged(before) || !invalidations.isUnchanged(partial.token) { partials.remove(partial) }
        return head
    }

    /// - Parameter head: that of the whole, with its length.
    func newPartial(_ ask: CacheRequest, _ token: InvalidationToken, _ head: StoredHead, _ placement: TierPlacement)
        -> IncompleteResponse
    {
        let length = head.bodyLength ?? 0
        let file = placement.onDisk && length > IncomingRange.filed ? store.files?.makeSparse() : nil
        return IncompleteResponse(key: ask.key, token: token, head: head, extents: Extents(length: length, file: file))
    }

    /// Makes an incomplete response findable, unless its key was invalidated since its first part was requested.
    func keep(_ partial: IncompleteResponse) {
        var before: [IncompleteResponse] = []
        _ = invalidations.ifUnchanged(partial.token) { before = partials.insert(partial) }
        withExtendedLifetime(before) {}
    }

    /// A part has ended, complete or cut short. If all bytes are there, the response is stored as a
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
