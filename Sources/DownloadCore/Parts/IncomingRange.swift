// A part that is arriving: its bytes go to the readers, and those that have arrived are kept.

import CacheStore
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
